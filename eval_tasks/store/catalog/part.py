"""What every part of the catalog stands on: records to rows and back, over one Database."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, Table, select, update

from eval_tasks.digests import canonical_json
from eval_tasks.errors import DataError, UnknownError, did_you_mean
from eval_tasks.records import from_json, to_json
from eval_tasks.store.database import Database, insert_of
from eval_tasks.store.text import storable_value

R = TypeVar("R")


class CatalogPart:
    """One noun of the catalog; its methods are the catalog's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _find(self, record_type: type[R], statement: Select[Any]) -> list[R]:
        """The records that a ``select(table.c.record)`` gives."""
        rows = self._database.read(lambda connection: connection.execute(statement).scalars().all())
        return [decode(record_type, row) for row in rows]

    def _find_one(self, record_type: type[R], statement: Select[Any]) -> R | None:
        """The first record of `statement`, or None."""
        found = self._find(record_type, statement.limit(1))
        return found[0] if found else None


def encode(record: object) -> str:
    """A record as canonical JSON text.

    Raises DataError for a number that JSON cannot carry, such as NaN, and for a value that `decode` would refuse.
    """
    value = storable_value(to_json(record))
    from_json(type(record), value)
    try:
        return canonical_json(value).decode("utf-8")
    except ValueError as error:
        raise DataError(f"a {type(record).__name__} cannot be stored: {error}") from error


def decode(record_type: type[R], text: str) -> R:
    """The record of a row. Raises DataError when it does not fit the record type."""
    return from_json(record_type, json.loads(text))


def put(connection: Connection, table: Table, key: dict[str, Any], values: dict[str, Any]) -> None:
    """Insert the row with that key, which is unique, or replace its other columns."""
    statement = insert_of(connection, table).values({**key, **values})
    connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=values))


def change(connection: Connection, table: Table, key: dict[str, Any], values: dict[str, Any]) -> None:
    """Set columns of the row with that key, which is there."""
    where = [table.c[name] == value for name, value in key.items()]
    connection.execute(update(table).where(*where).values(values))


def put_next_version(connection: Connection, table: Table, record: R, *, key: str, identity: str) -> R:
    """Insert a record under the next `version` of its `key`, unless its content is there; gives what is stored.

    `key` and `identity`: names of a field or property of the record and of a column; (key, version) is unique, and
    equal `identity` is equal content.
    """
    wanted = getattr(record, key)
    while True:
        rows = connection.execute(select(table.c.record).where(table.c[key] == wanted)).scalars()
        known: list[Any] = [decode(type(record), text) for text in rows]
        same: R | None = next((k for k in known if getattr(k, identity) == getattr(record, identity)), None)
        if same is not None:
            return same
        version = 1 + max((k.version for k in known), default=0)
        kept: R = replace(record, version=version)  # type: ignore[type-var]
        values = {key: wanted, "version": version, identity: getattr(kept, identity), "record": encode(kept)}
        # Another process may have taken the version since it was looked for.
        statement = insert_of(connection, table).values(values).on_conflict_do_nothing(index_elements=[key, "version"])
        # Not by rowcount: psycopg's is -1 for an INSERT that did nothing, too.
        if connection.execute(statement.returning(table.c.version)).first() is not None:
            return kept


def record_at(connection: Connection, table: Table, key: dict[str, Any]) -> str | None:
    """The record text of the row with that key, locked until the transaction ends, or None."""
    statement = select(table.c.record).where(*[table.c[name] == value for name, value in key.items()])
    text: str | None = connection.execute(statement.with_for_update()).scalar_one_or_none()
    return text


def unknown(what: str, name: str, known: Iterable[str]) -> UnknownError:
    """The error for a name that is not in the catalog, with close ones."""
    return UnknownError(f"no {what} {name!r} in the catalog; {did_you_mean(name, known)}")
