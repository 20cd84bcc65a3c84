"""Instruction ids -> checks with validated arguments. An unknown id, argument or relation is an error, not a pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eval_tasks.errors import UserError, did_you_mean

RELATIONS = ("less than", "at least")
SKIPPED_PREFIX = "language:"

Check = Callable[..., bool]
Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction of one item: its id, and its check with the arguments bound."""

    instruction_id: str
    check: Check
    arguments: Mapping[str, Any]

    def followed(self, text: str) -> bool:
        """Whether `text` follows it; an empty or blank text follows nothing."""
        return bool(text.strip()) and self.check(text, **self.arguments)


_CHECKS: dict[str, tuple[Check, Mapping[str, Reader]]] = {}


def instruction(instruction_id: str, **arguments: Reader) -> Callable[[Check], Check]:
    """Register the decorated check; each argument has a reader that validates it (`count`, `text`, ...)."""

    def register(check: Check) -> Check:
        _CHECKS[instruction_id] = (check, arguments)
        return check

    return register


def instruction_ids() -> list[str]:
    """All instruction ids that can be checked, sorted."""
    return sorted(_CHECKS)


def is_skipped(instruction_id: str) -> bool:
    """Whether the instruction would need a language detector, which we do not have."""
    return instruction_id.startswith(SKIPPED_PREFIX)


def bind(instruction_id: str, kwargs: Mapping[str, Any]) -> Instruction:
    """The check of `instruction_id` with `kwargs`; those that are None count as absent, a 0 is a 0.

    Raises UserError naming the id, the argument and what it could have been.
    """
    if instruction_id not in _CHECKS:
        raise UserError(f"unknown instruction {instruction_id!r}; {did_you_mean(instruction_id, _CHECKS)}")
    check, readers = _CHECKS[instruction_id]
    given = {name: value for name, value in kwargs.items() if value is not None}
    for name in given:
        if name not in readers:
            raise UserError(f"instruction {instruction_id!r} takes no {name!r}; {did_you_mean(name, readers)}")
    arguments = {}
    for name, read in readers.items():
        if name not in given:
            raise UserError(f"instruction {instruction_id!r} lacks its argument {name!r}")
        try:
            arguments[name] = read(given[name])
        except ValueError as problem:
            raise UserError(f"instruction {instruction_id!r}: {name} is {given[name]!r}: {problem}") from problem
    return Instruction(instruction_id=instruction_id, check=check, arguments=arguments)


def count(value: Any) -> int:
    """A whole number, at least 0; tables may carry it as a float."""
    whole = value.is_integer() if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 0:
        raise ValueError("must be a whole number, at least 0")
    return int(value)


def position(value: Any) -> int:
    """A whole number, at least 1."""
    if count(value) < 1:
        raise ValueError("must be a whole number, at least 1")
    return int(value)


def text(value: Any) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("must be a string that is not empty")
    return value


def texts(value: Any) -> list[str]:
    """A list of strings, at least one."""
    if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
        raise ValueError("must be a list of strings")
    return [text(entry) for entry in value]


def character(value: Any) -> str:
    """One character."""
    stripped = text(value).strip()
    if len(stripped) != 1:
        raise ValueError("must be one character")
    return stripped


def relation(value: Any) -> str:
    """One of `RELATIONS`."""
    if value not in RELATIONS:
        raise ValueError(
            "must be " + " or ".join(repr(known) for known in RELATIONS) + f"; {did_you_mean(str(value), RELATIONS)}"
        )
    return str(value)


def holds(relation: str, found: int, limit: int) -> bool:
    """Whether `found` is less than, or at least, `limit`."""
    return found < limit if relation == "less than" else found >= limit
