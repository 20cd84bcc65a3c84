"""A SQLAlchemy URL in, transactions out. The one place that knows what SQLite and PostgreSQL need.

Many pods write at once: on SQLite a writer takes the write lock when it begins (``BEGIN IMMEDIATE``), so that it never
fails half way, and waits for it. What a lock, a lost connection or a serialisation conflict breaks is tried again with
backoff, and ends as InfraError; so a transaction's function must be safe to call twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from eval_tasks.errors import InfraError, UserError

T = TypeVar("T")

BUSY_SECONDS = 15.0
RETRY_SECONDS = (0.1, 0.4, 1.6, 4.0)
# serialization_failure, deadlock_detected, lock_not_available, too_many_connections, cannot_connect_now
_RETRIED_SQLSTATES = frozenset({"40001", "40P01", "55P03", "53300", "57P03"})


class Database:
    """Transactions on one catalog database."""

    def __init__(self, url: str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.url = _parsed(url)
        self.dialect = self.url.get_backend_name()
        self.shown_url = self.url.render_as_string(hide_password=True)
        if self.dialect not in ("sqlite", "postgresql"):
            raise UserError(f"catalog {self.shown_url}: {self.dialect} is not supported; use sqlite or postgresql")
        self.engine = self._connectable(busy_seconds)

    def read(self, work: Callable[[Connection], T]) -> T:
        """`work` in a transaction that only reads."""
        return self._attempt(work, writes=False)

    def write(self, work: Callable[[Connection], T]) -> T:
        """`work` in a transaction that writes, alone on SQLite; committed when it returns."""
        return self._attempt(work, writes=True)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _connectable(self, busy_seconds: float) -> Engine:
        try:
            if self.dialect == "sqlite":
                return _sqlite_engine(self.url, busy_seconds)
            engine = create_engine(self.url, pool_pre_ping=True)
            _keep_to_one_process(engine)
            return engine
        except (ModuleNotFoundError, NoSuchModuleError) as error:
            raise UserError(f"catalog {self.shown_url}: no driver for it is installed ({error})") from error

    def _attempt(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        for delay in (*RETRY_SECONDS, None):
            try:
                with self.engine.connect().execution_options(writes=writes) as connection, connection.begin():
                    return work(connection)
            except PoolTimeoutError as error:
                failure: Exception = error
            except DBAPIError as error:
                if not _may_pass(error):
                    raise self._refused(error) from error
                failure = error
            if delay is not None:
                time.sleep(delay)
        raise self._refused(failure) from failure

    def _refused(self, error: Exception) -> Exception:
        cause = getattr(error, "orig", None) or error
        if isinstance(error, OperationalError | InterfaceError | PoolTimeoutError):
            return InfraError(f"catalog {self.shown_url}: {str(cause).strip()}")
        return error


def insert_of(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT of `table` that can say ON CONFLICT, which both databases have and SQL's standard has not."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        raise UserError(
            "the catalog URL is not one: it should read sqlite:///path or postgresql+psycopg://..."
        ) from error


def _may_pass(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed when tried again."""
    text = str(error.orig)
    locked = "database is locked" in text or "database table is locked" in text or "database schema is locked" in text
    sqlstate = getattr(error.orig, "sqlstate", "")  # SQLite's errors have none; None: the server did not answer
    unreachable = sqlstate is None and isinstance(error, OperationalError)
    return locked or unreachable or sqlstate in _RETRIED_SQLSTATES or error.connection_invalidated


def _sqlite_engine(url: URL, busy_seconds: float) -> Engine:
    if not url.database or url.database == ":memory:":
        raise UserError("the catalog needs a file, not a SQLite database in memory: pods are other processes")
    path = Path(url.database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfraError(f"cannot make the catalog's folder {path.parent}: {error.strerror}") from error
    engine = create_engine(url, connect_args={"timeout": busy_seconds})
    _keep_to_one_process(engine)

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # sqlite3 would begin, too late, by itself
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=NORMAL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _keep_to_one_process(engine: Engine) -> None:
    """A forked child, as of Airflow's task runner, opens connections of its own: one of both sides serves neither."""

    @event.listens_for(engine, "connect")
    def _remember(_: Any, record: Any) -> None:
        record.info["pid"] = os.getpid()

    @event.listens_for(engine, "checkout")
    def _refuse_after_fork(_: Any, record: Any, proxy: Any) -> None:
        if record.info["pid"] != os.getpid():
            record.dbapi_connection = proxy.dbapi_connection = None
            raise DisconnectionError("a database connection must not be used on both sides of a fork")
