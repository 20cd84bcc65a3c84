"""Any Python string in, a string that UTF-8 can carry out."""

from __future__ import annotations

from collections.abc import Mapping


def storable_text(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD, and surrogate pairs joined to the character they mean.

    Decoded model output can hold half of a pair. The item must be kept, and neither Parquet nor a database takes it.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def storable_value(value: object) -> object:
    """A JSON value with `storable_text` applied to every string in it, keys included."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {storable_text(str(key)): storable_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [storable_value(entry) for entry in value]
    return value
