"""A pinned `SourceSpec` in, its rows and their digest out: from any fsspec URI, or from the Hugging Face hub.

Rows whose bytes do not have the pinned digest are refused. Knows no benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import fsspec

from eval_tasks.datasets.hub import hub_files
from eval_tasks.datasets.rows import Row, format_of, parse_rows
from eval_tasks.digests import digest_bytes, digest_value
from eval_tasks.errors import DriftError, InfraError, UserError, did_you_mean
from eval_tasks.registry import SourceSpec
from eval_tasks.store import HubFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows in file order; `blake3` of the file, or of the (path, blake3) list of a hub split's files."""

    name: str
    rows: list[Row]
    blake3: str


def read_source(source: SourceSpec, base: Path, *, offline: bool | None = None, kept: HubFiles | None = None) -> Rows:
    """The rows of a source. A relative `uri` is relative to `base`; `offline` None follows HF_OFFLINE.

    `kept` is the store's copy of hub files, read before the hub is asked.

    Raises DriftError when the bytes are not the pinned ones, UserError when the file is absent or malformed or no row
    has what `where` asks for, InfraError when storage cannot be reached.
    """
    found = _from_hub(source, offline, kept) if source.uri is None else _from_file(source, source.uri, base)
    return _chosen(found, source.where)


def _chosen(found: Rows, where: Mapping[str, str | int | bool]) -> Rows:
    rows = found.rows
    for column, value in where.items():
        values = {row[column] for row in rows if isinstance(row.get(column), str | int)}
        rows = [row for row in rows if type(row.get(column)) is type(value) and row[column] == value]
        if not rows:
            known = did_you_mean(str(value), map(str, values)) if values else "it has no such column of text or numbers"
            raise UserError(f"no row of {found.name} has {value!r} in column {column!r} (source.where); {known}")
    return replace(found, rows=rows)


def _from_file(source: SourceSpec, uri: str, base: Path) -> Rows:
    place = uri if "://" in uri else str(base / uri)
    data = _read(place, uri)
    found = digest_bytes(data)
    _check_drift(place, source.blake3, found)
    return Rows(name=place, rows=parse_rows(data, source.format or format_of(place), place), blake3=found)


def _read(place: str, written: str) -> bytes:
    try:
        with fsspec.open(place, "rb") as stream:
            data: bytes = stream.read()
    except FileNotFoundError as error:
        raise UserError(f"no file {place} (source.uri is {written!r}, relative to the YAML file)") from error
    except (ImportError, ValueError) as error:
        raise UserError(f"cannot open {place}: {error}") from error
    except OSError as error:
        raise InfraError(f"cannot read {place}: {error}") from error
    return data


def _from_hub(source: SourceSpec, offline: bool | None, kept: HubFiles | None) -> Rows:
    name = f"{source.hub}@{(source.revision or '')[:12]} {source.split or ', '.join(source.files or ())}"
    rows: list[Row] = []
    digests = []
    for relative, data in hub_files(source, kept, offline=offline):
        digests.append([relative, digest_bytes(data)])
        rows += parse_rows(data, source.format or format_of(relative), f"{name} {relative}")
    found = digest_value(digests)
    _check_drift(name, source.blake3, found)
    return Rows(name=name, rows=rows, blake3=found)


def _check_drift(place: str, pinned: str | None, found: str) -> None:
    if pinned is not None and found != pinned:
        raise DriftError(
            f"{place} is not the data that was pinned: expected blake3 {pinned}, found {found}. Restore the file, or, "
            "if the change is meant, set 'blake3' to the found digest and give the benchmark a new 'version'"
        )
