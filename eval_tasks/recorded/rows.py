"""A file of JSON lines -> rows with their place, and what every format's row comes down to."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_tasks.errors import UserError

_ROUNDING = 1e-3
"""How far above 0 a sum of rounded logarithms may come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRow:
    """One recorded answer. `where` names file and line for messages; `item_id` is what the file calls the item.

    `output` is a text, `choice_logprobs` one sum of natural logs per choice; both None: the item has no answer.
    `greedy`: whether greedy decoding would have written each choice; empty where the file does not say.
    `content`: the columns of the item as the file has them, where it does; `target`: its gold answer, likewise.
    """

    where: str
    item_id: str
    output: str | None = None
    choice_logprobs: tuple[float, ...] | None = None
    greedy: tuple[bool, ...] = ()
    content: Mapping[str, Any] = field(default_factory=dict)
    target: Any = None


def text_of(path: Path) -> str:
    """The file's text. Raises UserError when it cannot be read as UTF-8."""
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read as text: {error}") from error


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) for each line. Raises UserError for a line that is no JSON object, such as a torn last one."""
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(
                f"{where}: not JSON ({error.msg}); the file is torn there, or is of another format"
            ) from error
        if not isinstance(row, dict):
            raise UserError(f"{where}: expected a JSON object, got {type(row).__name__}")
        yield where, row


def identifier(where: str, value: object) -> str:
    """An item id as text. Raises UserError for what is neither text nor an integer."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise UserError(f"{where}: item id {value!r}; expected text or an integer")
    return str(value)


def truth(where: str, value: object) -> bool:
    """A truth value, also written as text. Raises UserError for anything else."""
    if isinstance(value, str) and value in ("True", "False"):
        return value == "True"
    if isinstance(value, bool):
        return value
    raise UserError(f"{where}: {value!r} says not whether greedy decoding agrees; expected true or false")


def logprob(where: str, value: object) -> float:
    """A logprob, NaN for null or a number that is none. Raises UserError for what is no number, or above 0."""
    if value is None:
        return math.nan
    try:
        if isinstance(value, bool):
            raise ValueError("a truth value")
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: logprob {value!r}; expected a number") from error
    if number > _ROUNDING:
        raise UserError(f"{where}: logprob {value!r} is above 0; give natural logarithms, not probabilities or logits")
    return number
