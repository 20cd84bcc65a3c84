"""### regrade: what would another grader say of the outputs that are stored?

Started as a backfill over the days in which evaluations began: *Trigger*, *Backfill*, with the grader in the form, or

    airflow backfill create --dag-id regrade --from-date 2026-01-01 --to-date 2026-02-01 \\
      --reprocess-behavior completed --dag-run-conf '{"grader": "helpful"}'

There is one DAG run for each stored run of the window. The evaluated models never run; pods are a judge's. New score
sets stand beside the old ones, and what is scored already is left as it is, so that the same window again does nothing
new. Reprocess *All runs* ("completed"): *Missing runs* passes over a run that was regraded before, by any grader.

**When it fails.** `choose`: the grader is not registered, or does not fit the benchmark that the form names; the
message says which there are. It is skipped for runs that the form leaves out. `gate` waiting: a determinism block is
open on the judge's environment; explain it, and it goes on. `run_shard`: the pod's log and reason are in its log;
clear it, and only what has no verdict is asked. `regrade`: verdicts are missing; clear the failed shards first.

**Whom it hurts.** Nobody's numbers change until it is through: comparisons go on with the graders that they have.
"""

# An Airflow DAG.
from checkpoint_eval.regrade_flow import regrade_dag

dag = regrade_dag(doc_md=__doc__)
