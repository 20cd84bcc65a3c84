"""Plain JSONL -> recorded rows: `item_id` and `output`, or `choice_logprobs` (and `greedy`). All else is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.recorded.rows import RecordedRow, identifier, json_lines, logprob, truth


def rows_of(path: Path) -> Iterator[RecordedRow]:
    """The rows of one file. Raises UserError naming the line for one without an id or an answer."""
    for where, row in json_lines(path):
        if "item_id" not in row:
            raise UserError(f"{where}: no field 'item_id'; {did_you_mean('item_id', row)}")
        answers = [name for name in ("output", "choice_logprobs") if name in row]
        if len(answers) != 1:
            found = "both" if answers else f"neither; {did_you_mean('output', row)}"
            raise UserError(f"{where}: expected one of 'output' and 'choice_logprobs', found {found}")
        output, values = row.get("output"), row.get("choice_logprobs")
        if output is not None and not isinstance(output, str):
            raise UserError(f"{where}: output is a {type(output).__name__}; expected text, or null for none")
        if values is not None and not isinstance(values, list):
            raise UserError(f"{where}: choice_logprobs {values!r}; expected a list of numbers, one per choice")
        greedy = row.get("greedy") or []
        if greedy and (not isinstance(greedy, list) or len(greedy) != len(values or ())):
            raise UserError(f"{where}: greedy {greedy!r}; expected a list of true and false, one per choice_logprob")
        yield RecordedRow(
            where=where,
            item_id=identifier(where, row["item_id"]),
            output=output,
            choice_logprobs=None if values is None else tuple(logprob(where, value) for value in values),
            greedy=tuple(truth(where, value) for value in greedy),
        )
