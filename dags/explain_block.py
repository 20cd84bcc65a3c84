"""### explain_block: what happened, and may evaluation go on?

A determinism block holds every evaluation in its environment. `ask` waits for a person under *Required actions*: it
shows the fingerprint, the first items that differ with both values, and since when rows are in doubt. Choose an
outcome and give a reason; both are kept, with your name. Then the waiting evaluations go on by themselves, in the
order in which they were started. Started by `determinism_nightly`, and by evaluations that found a difference; once
for each block.

An answer without a reason is not taken, and `ask` asks again. A block that was explained on the command line or by the
REST API ends the wait within an hour; of two people who explain at once the first counts, and the log of `ask` says
who it was.

**When it fails.** `ask`: the block of the form does not exist, or the catalog was away: clear the task. The block
stands until it is explained, whatever becomes of this run: `python -m eval_tasks blocks explain`.

**Whom it hurts.** Everybody whose checkpoints wait in that environment: `python -m eval_tasks blocks list` and `gate`.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from checkpoint_eval.block_operator import ExplainBlockOperator
from checkpoint_eval.flow import DEFAULT_ARGS

with DAG(
    dag_id="explain_block",
    description="A person says what happened to a block, and evaluation goes on.",
    schedule=None,
    catchup=False,
    tags=["checkpoint-eval", "determinism"],
    doc_md=__doc__,
    params={
        "block_id": Param(
            "", type="string", minLength=1, title="Block", description="Its id: python -m eval_tasks blocks list"
        )
    },
    default_args=DEFAULT_ARGS,
) as dag:
    ExplainBlockOperator(task_id="ask", block_id="{{ params.block_id }}")
