"""Rows in, digests out: what makes two result rows the same.

The digest is taken over the exact bits of every field but `latency_ms`, with text as it can be stored. Canonical JSON
would not do here: it writes -0.0 as 0, and a row's identity is bitwise.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import fields, replace
from math import nan
from typing import Any

from eval_tasks.digests import digest_bytes, digest_parts
from eval_tasks.records import Response, Sample, Score
from eval_tasks.store.text import storable_text

# What not every row has counts only where it is there: the digests of rows without are those of earlier releases.
_OPTIONAL = ("greedy", "samples")
_RESPONSE_FIELDS = tuple(sorted(f.name for f in fields(Response) if f.name not in ("latency_ms", *_OPTIONAL)))
_SCORE_FIELDS = tuple(sorted(f.name for f in fields(Score) if f.name != "sample_values"))
_SAMPLE_FIELDS = tuple(sorted(f.name for f in fields(Sample)))
_PACK_INT = struct.Struct("<q").pack
_PACK_FLOAT = struct.Struct("<d").pack


def storable_response(response: Response) -> Response:
    """`response` as it comes back from storage: valid text, and plain floats, every NaN the same one."""
    return replace(
        response,
        reason=storable_text(response.reason),
        output=storable_text(response.output),
        logprobs=_plain(response.logprobs),
        token_logprobs=tuple(_plain(values) for values in response.token_logprobs),
        latency_ms=float(response.latency_ms),
        samples=tuple(
            replace(s, output=storable_text(s.output), token_logprobs=_plain(s.token_logprobs))
            for s in response.samples
        ),
    )


def storable_score(score: Score) -> Score:
    """`score` as it comes back from storage: valid text, and no value where the value is not a number."""
    if _is_storable(score):
        return score
    value = None if score.value is None or score.value != score.value else float(score.value)
    return replace(
        score,
        value=value,
        weight=float(score.weight),
        reason=storable_text(score.reason),
        extracted=None if score.extracted is None else storable_text(score.extracted),
        detail=storable_text(score.detail),
        stratum=None if score.stratum is None else storable_text(score.stratum),
        cluster=None if score.cluster is None else storable_text(score.cluster),
        sample_values=_plain(score.sample_values),
    )


def _is_storable(score: Score) -> bool:
    """Whether `storable_score` would change nothing: most scores, and half a million copies are seconds."""
    value = score.value
    if not (value is None or (type(value) is float and value == value)) or type(score.weight) is not float:
        return False
    texts = (score.reason, score.extracted, score.detail, score.stratum, score.cluster)
    return not score.sample_values and all(text is None or storable_text(text) is text for text in texts)


def row_digest(response: Response) -> str:
    """blake3 of a response's fields, latency apart: the same bits, the same digest."""
    return stored_row_digest(storable_response(response))


def score_digest(score: Score) -> str:
    """blake3 of a score's fields."""
    return stored_score_digest(storable_score(score))


def stored_row_digest(response: Response) -> str:
    """`row_digest` of a response that `storable_response` gave."""
    return _digest(response, _RESPONSE_FIELDS + tuple(name for name in _OPTIONAL if getattr(response, name)))


def stored_score_digest(score: Score) -> str:
    """`score_digest` of a score that `storable_score` gave."""
    return _digest(score, (*_SCORE_FIELDS, "sample_values") if score.sample_values else _SCORE_FIELDS)


def rows_digest(digests: Iterable[str]) -> str:
    """Digest of a sequence of row digests, order kept."""
    return digest_parts(digests)


def _plain(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(value) if value == value else nan for value in values)


def _digest(row: object, names: tuple[str, ...]) -> str:
    out: list[bytes] = []
    for name in names:
        _encode(getattr(row, name), out)
    return digest_bytes(b"".join(out))


def _encode(value: object, out: list[bytes]) -> None:
    """Append a type mark, a length and the bytes, so that no two values can run into each other."""
    kind = type(value)  # rather than a match: half of what a row costs is here
    if kind is str:
        data = value.encode("utf-8")  # type: ignore[attr-defined]
        out.append(b"s" + _PACK_INT(len(data)) + data)
    elif value is None:
        out.append(b"n")
    elif kind is float:
        out.append(b"f" + _PACK_FLOAT(value))
    elif kind is tuple:
        _encode_tuple(value, out)  # type: ignore[arg-type]
    elif kind is bool:
        out.append(b"b\x01" if value else b"b\x00")
    elif kind is int:
        out.append(b"i" + _PACK_INT(value))
    elif kind is Sample:
        _encode_tuple(tuple(getattr(value, name) for name in _SAMPLE_FIELDS), out)
    else:
        _encode(_without_subclass(value), out)


def _without_subclass(value: object) -> str | float | int:
    """The same value as its plain type: a string or number may come as a subclass, such as numpy's."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a result row cannot hold a {type(value).__name__}")


def _encode_tuple(values: tuple[Any, ...], out: list[bytes]) -> None:
    if values and type(values[0]) is float:
        out.append(b"F" + struct.pack(f"<q{len(values)}d", len(values), *values))
        return
    out.append(b"t" + _PACK_INT(len(values)))
    for entry in values:
        _encode(entry, out)
