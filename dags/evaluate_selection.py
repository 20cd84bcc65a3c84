"""### evaluate_selection: which checkpoint ships?

Started by `watch_checkpoints` for every k-th checkpoint and for promoted ones. Paired comparison with the baseline that
the configuration names, under a rule that was registered before the run. `select` chooses among the checkpoints so far,
and says how much better the best looks than it is.

**When it fails.** As `evaluate_health`: `resolve` names the broken file, `run_shard` shows the pod's log and reason,
`grade` says which shards lack rows; clear those tasks, and only what is missing is computed. A quarantined benchmark is
not compared: its five raw outputs are in the log of `guard` and `publish` and in the report.

**Whom it hurts.** Whoever is to choose a checkpoint; no number is published from an incomplete run.
"""

# An Airflow DAG.
from checkpoint_eval.flow import evaluation_dag

dag = evaluation_dag("selection", doc_md=__doc__)
