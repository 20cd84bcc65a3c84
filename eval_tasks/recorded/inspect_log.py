"""An Inspect log in JSON -> recorded rows, one per sample. Binary `.eval` files are turned into JSON by inspect itself.

Only `id`, `epoch`, `output` and `error` of a sample are read; its own scores are not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval_tasks.errors import UserError
from eval_tasks.recorded.rows import RecordedRow, identifier, text_of


def rows_of(path: Path) -> Iterator[RecordedRow]:
    """The samples of one log. Raises UserError for what is no log in JSON, or for a sample of a second epoch."""
    if path.suffix == ".eval":
        raise UserError(f"{path} is a binary log; write it as JSON first: inspect log convert --to json")
    try:
        log = json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: not JSON ({error.msg}); the log is torn there") from error
    samples = log.get("samples") if isinstance(log, dict) else None
    if not isinstance(samples, list):
        raise UserError(f"{path} is no log of inspect: it has no list 'samples' (a log of headers alone has none)")
    for number, sample in enumerate(samples, start=1):
        where = f"{path}, sample {number}"
        if not isinstance(sample, dict) or "id" not in sample:
            raise UserError(f"{where}: no field 'id'")
        if sample.get("epoch", 1) != 1:
            raise UserError(
                f"{where}: epoch {sample['epoch']} of {sample['id']!r}; an item has one answer: run one epoch"
            )
        yield RecordedRow(where=where, item_id=identifier(where, sample["id"]), output=_output(where, sample))


def _output(where: str, sample: dict[str, Any]) -> str | None:
    """The completion; None for a sample that ended in an error or whose model gave nothing."""
    output = sample.get("output") or {}
    if sample.get("error") or not isinstance(output, dict):
        return None
    choices = output.get("choices") or []
    content = choices[0].get("message", {}).get("content") if choices else output.get("completion")
    if isinstance(content, list):  # parts: reasoning, images and text
        content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict) and p.get("type") == "text")
    if content is not None and not isinstance(content, str):
        raise UserError(f"{where}: the completion is a {type(content).__name__}; expected text")
    return content
