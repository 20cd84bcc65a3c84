"""### evaluate_health: is the training run alive?

Started by `watch_checkpoints` for every checkpoint that lands. Compares with the checkpoint before it, where the
configuration says so. It finds large effects only (divergence, a broken tokenizer, a forgotten domain): it is not a
progress curve. `health` holds this checkpoint against earlier ones and raises one alert for what began; each detection
raises a false alarm in at most one of a hundred training runs.

**When it fails.** `resolve`: the checkpoint is broken; the message names file and reason, nothing else is held up.
`run_shard`: open the task's log: the pod's own log is in it, with the reason it ended; clear the task to run what is
left, finished batches are kept. `grade`: rows are missing; clear the failed shards first. `gate` waiting: a determinism
block is open on this environment; explain it, and runs go on by themselves.

**Whom it hurts.** Training goes on whatever happens here. The researcher of the training run has no health verdict for
this step until it is cleared.
"""

# An Airflow DAG.
from checkpoint_eval.flow import evaluation_dag

dag = evaluation_dag("health", doc_md=__doc__)
