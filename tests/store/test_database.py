"""Transactions: who waits, who tries again, and what a user is told."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from eval_tasks.errors import InfraError, UserError
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from eval_tasks.store import database as database_module
from eval_tasks.store.database import Database
from tests.store.samples import run


def test_sqlite_is_opened_for_many_writers(store: Store, settings: Settings) -> None:
    database = Database(settings.catalog_url)
    pragmas = ("journal_mode", "foreign_keys", "busy_timeout", "synchronous")
    values = database.read(lambda c: [c.execute(text(f"PRAGMA {name}")).scalar_one() for name in pragmas])
    database.close()
    assert values == ["wal", 1, 15_000, 1]


def test_a_writer_has_the_lock_from_the_start(store: Store, settings: Settings) -> None:
    outside = sqlite3.connect(settings.catalog_url.removeprefix("sqlite:///"), timeout=0)

    def begin_too(_: object) -> None:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            outside.execute("BEGIN IMMEDIATE")

    database = Database(settings.catalog_url)
    database.write(begin_too)
    database.read(lambda _: outside.execute("BEGIN IMMEDIATE"))
    outside.close()
    database.close()


def test_a_lock_that_stays_ends_as_an_infrastructure_error(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "RETRY_SECONDS", (0.0, 0.0))
    holder = sqlite3.connect(settings.catalog_url.removeprefix("sqlite:///"), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    database = Database(settings.catalog_url, busy_seconds=0.01)
    with pytest.raises(InfraError, match=r"catalog\.db: database is locked"):
        database.write(lambda _: None)
    holder.execute("ROLLBACK")
    holder.close()
    assert database.write(lambda _: "written") == "written"
    database.close()


def test_a_lock_that_goes_away_is_waited_for(store: Store, settings: Settings) -> None:
    holder = sqlite3.connect(
        settings.catalog_url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False
    )
    holder.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, lambda: holder.execute("ROLLBACK"))
    timer.start()
    database = Database(settings.catalog_url, busy_seconds=0.01)
    assert database.write(lambda _: "written") == "written"
    timer.join()
    holder.close()
    database.close()


def test_a_transaction_that_fails_leaves_nothing(store: Store, settings: Settings) -> None:
    database = Database(settings.catalog_url)

    def half(connection: object) -> None:
        store.catalog.runs()
        connection.execute(text("INSERT INTO environments (env_fingerprint, record) VALUES ('f', '{}')"))  # type: ignore[attr-defined]
        raise KeyError("half way")

    with pytest.raises(KeyError):
        database.write(half)
    assert database.read(lambda c: c.execute(text("SELECT count(*) FROM environments")).scalar_one()) == 0
    database.close()


def test_a_full_disk_is_not_tried_again(store: Store, settings: Settings) -> None:
    database = Database(settings.catalog_url)
    calls = []

    def full(_: object) -> None:
        calls.append(1)
        raise OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))

    with pytest.raises(InfraError, match=r"catalog\.db: database or disk is full"):
        database.write(full)
    assert calls == [1]
    database.close()


@pytest.mark.parametrize(("sqlstate", "tries"), [("40001", 3), ("40P01", 3), (None, 3), ("42601", 1)])
def test_what_a_server_may_do_better_next_time_is_tried_again(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch, sqlstate: str | None, tries: int
) -> None:
    class ServerError(Exception):
        pass

    monkeypatch.setattr(database_module, "RETRY_SECONDS", (0.0, 0.0))
    database = Database(settings.catalog_url)
    calls = []

    def refuse(_: object) -> None:
        calls.append(1)
        cause = ServerError("no")
        cause.sqlstate = sqlstate  # type: ignore[attr-defined]
        raise OperationalError("UPDATE", {}, cause)

    with pytest.raises(InfraError, match=r"catalog\.db: no"):
        database.write(refuse)
    assert len(calls) == tries
    database.close()


def test_a_place_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError, match=r"cannot make the catalog's folder .*file/home"):
        open_store(Settings(home=tmp_path / "file" / "home"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("not a url", "the catalog URL is not one"),
        ("mysql://u:secret@host/db", r"mysql://u:\*\*\*@host/db: mysql is not supported"),
        ("sqlite://", "needs a file"),
        ("postgresql+nosuch://u:secret@host/db", r"u:\*\*\*@host/db: no driver"),
    ],
)
def test_a_wrong_url_is_said_without_its_password(url: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        Database(url)
    assert "secret" not in str(caught.value)


def _create_runs(home: Path, first: int) -> None:
    with open_store(Settings(home=home)) as store:
        for number in range(first, first + 25):
            store.catalog.create_run(run(number))
            store.catalog.update_run(run(number).run_id, status="running")


def test_processes_that_open_an_empty_home_and_write_at_once_all_succeed(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("fork")
    processes = [spawn.Process(target=_create_runs, args=(tmp_path / "home", 100 * n)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    with open_store(Settings(home=tmp_path / "home")) as store:
        assert len(store.catalog.runs(status="running")) == 100
