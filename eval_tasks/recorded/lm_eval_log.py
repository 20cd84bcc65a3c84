"""`--log_samples` files of lm-evaluation-harness -> recorded rows. Raw responses are read, never its filtered ones.

The file has one row per document and filter; rows of one document must agree. Its sanitiser has written numbers as
text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.recorded.rows import RecordedRow, identifier, json_lines, logprob, truth


def rows_of(path: Path) -> Iterator[RecordedRow]:
    """The documents of one file. Raises UserError naming the line for a row that is none of such a file."""
    seen: dict[str, tuple[Any, Any]] = {}
    for where, row in json_lines(path):
        for name in ("doc_id", "resps"):
            if name not in row:
                raise UserError(f"{where}: no field {name!r}, which --log_samples writes; {did_you_mean(name, row)}")
        doc_id = identifier(where, row["doc_id"])
        if doc_id in seen:
            resps, filters = seen[doc_id]
            if row["resps"] == resps and row.get("filter") not in filters:
                filters.add(row.get("filter"))
                continue
            raise UserError(f"{where}: doc_id {doc_id} is there twice, and not as one answer under two filters")
        seen[doc_id] = row["resps"], {row.get("filter")}
        output, answers = _response(where, row["resps"])
        doc = row.get("doc")
        yield RecordedRow(
            where=where,
            item_id=doc_id,
            output=output,
            choice_logprobs=None if answers is None else tuple(logprob(where, value) for value, _ in answers),
            greedy=() if answers is None else tuple(truth(where, is_greedy) for _, is_greedy in answers),
            content=doc if isinstance(doc, dict) else {},
            target=row.get("target"),
        )


def _response(where: str, resps: object) -> tuple[str | None, list[tuple[Any, Any]] | None]:
    """The text, or (logprob, is greedy) of all choices, of a document's requests."""
    if not isinstance(resps, list) or not resps or not all(isinstance(r, list) and r for r in resps):
        raise UserError(f"{where}: resps {resps!r:.80}; expected a list with a list per request")
    if any(len(requests) > 1 for requests in resps):
        raise UserError(f"{where}: {max(map(len, resps))} answers to one request; repeats cannot be imported")
    answers = [requests[0] for requests in resps]
    if len(answers) == 1 and isinstance(answers[0], str):
        return answers[0], None
    if not all(isinstance(answer, list) and len(answer) == 2 for answer in answers):
        raise UserError(f"{where}: resps {resps!r:.80}; expected one text, or (logprob, is greedy) per choice")
    return None, [(value, is_greedy) for value, is_greedy in answers]
