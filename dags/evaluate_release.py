"""### evaluate_release: the number that is published

Started by a person with *Trigger*: candidate and baseline (folders; an arm that was evaluated before is not run again),
suite, further seeds of the recipe, decision rule, notes. The plan is made first; the run then waits at `approve`
(*Required actions*) until a person approves, before any pod starts.

**Before you start.** Register the rule first: a rule that is younger than the run labels everything exploratory.

**When it fails.** As `evaluate_selection`. *Reject* at `approve` ends the run with nothing computed.

**Whom it hurts.** The release manager: the number is not there, and no partial one is shown in its place.
"""

# An Airflow DAG.
from checkpoint_eval.flow import evaluation_dag

dag = evaluation_dag("release", doc_md=__doc__)
