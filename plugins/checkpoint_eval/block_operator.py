"""Asks a person to explain a block, in Airflow's *Required actions*, until one has: here or anywhere else.

What an explanation does is `eval_tasks.determinism.explain`'s, the same as for the command line and the REST API.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.exceptions import HITLTimeoutError, HITLTriggerEventError
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import ParamValidationError

from checkpoint_eval.flow import airflow_errors
from checkpoint_eval.steps import now, open_catalog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from eval_tasks.records import Block
    from eval_tasks.records.determinism import BlockOutcome

OUTCOMES: tuple[BlockOutcome, ...] = ("baseline kept", "baseline adopted", "runs suspect")

_REASON = "What happened, so that somebody can check it in a year."

# How often it is looked whether the block was explained elsewhere meanwhile.
LOOKS_EVERY = timedelta(hours=1)


class ExplainBlockOperator(HITLOperator):
    """Waits, without a worker slot, for the outcome and the reason; gives who explained the block, and how.

    An answer without a reason, or with an outcome that such a block cannot have, changes nothing and is asked for anew;
    the log says why. A block that was explained elsewhere ends the wait.
    """

    template_fields: Sequence[str] = (*HITLOperator.template_fields, "block_id")

    def __init__(self, *, block_id: str, looks_every: timedelta = LOOKS_EVERY, **kwargs: Any) -> None:
        super().__init__(
            subject="What happened to block {{ params.block_id }}?",
            body="",
            options=list(OUTCOMES),
            response_timeout=looks_every,
            **kwargs,
        )
        # Airflow hands the DAG's parameters in as the operator's; the form asks for this one alone.
        reason = Param("", type="string", title="Reason", description=_REASON)
        self.params = ParamsDict({"reason": reason})
        self.block_id = block_id

    def execute(self, context: Context) -> str:
        """Ask, unless the block has been explained."""
        with airflow_errors():
            block = open_catalog().catalog.block(self.block_id)
        if block.explained_at is not None:
            return self._said(block)
        self.body = body_of(block)
        self.options = list(outcomes_of(block))
        return super().execute(context)  # type: ignore[no-any-return]

    def execute_complete(self, context: Context, event: dict[str, Any]) -> str:
        """Record the answer; ask again where it is none."""
        from eval_tasks.determinism import explain
        from eval_tasks.errors import UserError

        try:
            answer = super().execute_complete(context, event)
            user = answer["responded_by_user"]
            by = str((user or {}).get("name") or (user or {}).get("id") or "")
            if not by:
                raise UserError("nobody is named as the one who answers")
            block = explain(
                open_catalog(),
                self.block_id,
                by=by,
                reason=str(answer["params_input"].get("reason") or "").strip(),
                outcome=answer["chosen_options"][0],
                now=now(),
            )
        except HITLTimeoutError:
            return self.execute(context)
        except (HITLTriggerEventError, ParamValidationError, UserError, ValueError) as error:
            self.log.warning("the answer is not taken: %s", error)
            return self.execute(context)
        return self._said(block)

    def _said(self, block: Block) -> str:
        said = f"{block.explained_by}: {block.outcome}: {block.explanation}"
        self.log.info("block %s was explained by %s", block.block_id, said)
        return said


def outcomes_of(block: Block) -> tuple[BlockOutcome, ...]:
    """What a person may say of such a block: rows are adopted where a run of the fixed suite showed other ones."""
    return tuple(outcome for outcome in OUTCOMES if block.may_adopt or outcome != "baseline adopted")


def body_of(block: Block) -> str:
    """What a person needs to know, as Markdown."""
    from eval_tasks.blocking import block_lines

    where = block.environment or block.fingerprint[:12]
    facts = "\n".join(f"* {line}" for line in block_lines(block))
    meaning = {
        "baseline kept": "the cause was found and is gone; the old rows stand",
        "baseline adopted": "the change is wanted; the new rows stand from now on",
        "runs suspect": "the old rows stand, and runs since the last good night stay suspect until they are cleared",
    }
    choices = "\n".join(f"* **{outcome}**: {meaning[outcome]}" for outcome in outcomes_of(block))
    return f"Evaluations in **{where}** wait: {block.kind}, since {block.opened_at} (UTC).\n\n{facts}\n\n{choices}"
