"""### evaluate_release: the number that is published

Started by a person with *Trigger*: candidate and baseline (folders; an arm that was evaluated before is not run again),
suite, further seeds of the recipe, decision rule, notes. The plan is made first, `power` says what it can find and
takes, and the run then waits at `approve` (*Required actions*) until a person who has read that approves, before any
pod starts.

**Before you start.** Register the rule first: a rule that is younger than the run labels everything exploratory. Ask
whether the suite can answer: the smallest true difference between two checkpoints, in points, that is found four times
in five, by the number of items and by how many of them two such runs answer differently:

| items | 2 % | 5 % | 10 % | 20 % |
|---|---|---|---|---|
| 500 | 1.77 | 2.79 | 3.95 | 5.59 |
| 2,000 | 0.89 | 1.40 | 1.98 | 2.80 |
| 5,000 | 0.56 | 0.89 | 1.25 | 1.77 |
| 10,000 | 0.40 | 0.63 | 0.89 | 1.25 |
| 50,000 | 0.18 | 0.28 | 0.40 | 0.56 |

Between two recipes the seeds decide, however many the items: where training again moves a score by 0.6 points (standard
deviation), 2, 3, 5 and 10 seeds of each show 3.09, 1.77, 1.19 and 0.79 points. With the past of your own suite:
*python -m eval_tasks power SUITE --target-points 1*.

**When it fails.** As `evaluate_selection`. *Reject* at `approve` ends the run with nothing computed.

**Whom it hurts.** The release manager: the number is not there, and no partial one is shown in its place.
"""

# An Airflow DAG.
from checkpoint_eval.flow import evaluation_dag

dag = evaluation_dag("release", doc_md=__doc__)
