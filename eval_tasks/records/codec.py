"""Record <-> JSON value. Strict: an unknown or missing field, or a wrong type, is an error that names it."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from eval_tasks.errors import DataError

R = TypeVar("R")


_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


def _adapter(record_type: Any) -> TypeAdapter[Any]:
    if record_type not in _ADAPTERS:
        record_type.__pydantic_config__ = ConfigDict(extra="forbid", ser_json_inf_nan="constants")
        _ADAPTERS[record_type] = TypeAdapter(record_type)
    return _ADAPTERS[record_type]


def to_json(record: object) -> dict[str, Any]:
    """A record as a JSON-ready dict (tuples become lists, nested records become dicts)."""
    value: dict[str, Any] = _adapter(type(record)).dump_python(record, mode="json")
    return value


def from_json(record_type: type[R], value: object) -> R:
    """The record that `to_json` gave. Raises DataError naming the field when `value` does not fit."""
    try:
        record: R = _adapter(record_type).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "value"
        raise DataError(f"stored {record_type.__name__} does not fit: {where}: {first['msg']}") from error
    return record
