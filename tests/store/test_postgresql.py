"""The catalog on a real PostgreSQL server, started by the test as a user without rights, and its connections cut."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text

from eval_tasks.errors import UserError
from eval_tasks.settings import Settings
from eval_tasks.store import Store, migrate, open_store, schema
from eval_tasks.store.database import Database
from tests.store.catalog.test_calibrations import calibration
from tests.store.test_queue import batch

pytestmark = pytest.mark.full

_NAMES = count()


def _programs() -> Path | None:
    on_path = shutil.which("initdb")
    found = [Path(on_path).parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return found[-1] if found else None


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """``postgresql+psycopg://eval@127.0.0.1:port`` of a server of this module's own."""
    pytest.importorskip("psycopg", reason="no psycopg: pip install 'psycopg[binary]'")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    with TemporaryDirectory(prefix="pg-") as folder, socket.socket() as probe:
        if user:
            shutil.chown(folder, user)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()

        def start(*command: str) -> None:
            subprocess.run(command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=120)

        data, control = f"{folder}/data", str(programs / "pg_ctl")
        start(str(programs / "initdb"), "-D", data, "-A", "trust", "-U", "eval")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
        start(control, "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://eval@127.0.0.1:{port}"
        finally:
            start(control, "-D", data, "-w", "-m", "immediate", "stop")


def _administer(server: str, statement: str) -> None:
    engine = create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


def _cut(server: str, name: str) -> None:
    """End every session on a database, as an operator or a restart does."""
    _administer(server, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")


@pytest.fixture
def url(server: str) -> str:
    """A database of the test's own, at this version's schema."""
    name = f"catalog{next(_NAMES)}"
    _administer(server, f"CREATE DATABASE {name}")
    migrate(f"{server}/{name}")
    return f"{server}/{name}"


@pytest.fixture
def postgres_store(url: str, tmp_path: Path) -> Iterator[Store]:
    with open_store(Settings(home=tmp_path / "home", catalog_url=url)) as opened:
        yield opened


def test_of_many_that_save_at_once_each_is_kept_under_its_own_version(postgres_store: Store) -> None:
    save = postgres_store.catalog.save_calibration
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda k: save(calibration(rounds=k)), range(8)))
    assert sorted(c.version for c in made) == list(range(1, 9))
    stored = postgres_store.catalog.calibrations(["b" * 32])
    assert {(c.version, c.rounds) for c in stored} == {(c.version, c.rounds) for c in made}


def test_a_catalog_of_a_newer_version_is_refused_without_advice_to_migrate(url: str, tmp_path: Path) -> None:
    database = Database(url)
    database.write(lambda c: c.execute(text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")))
    database.close()
    with pytest.raises(UserError, match=r"is at revision 9999.*newer checkpoint-eval"):
        open_store(Settings(home=tmp_path / "home", catalog_url=url))


def _count_in_a_child(store: Store, answers: Any) -> None:
    answers.put([store.queue.counts("run")["pending"] for _ in range(20)])


def test_a_forked_child_does_not_share_its_parents_connection(postgres_store: Store) -> None:
    postgres_store.queue.enqueue("run", [batch(n, f"i{n}") for n in range(5)])
    fork = multiprocessing.get_context("fork")
    answers = fork.SimpleQueue()
    children = [fork.Process(target=_count_in_a_child, args=(postgres_store, answers)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0, 0]
    assert [answers.get() for _ in children] == [[5] * 20] * 4
    assert postgres_store.queue.counts("run")["pending"] == 5


@pytest.mark.parametrize("asks_again", [True, False], ids=["before-a-statement", "before-the-commit"])
def test_a_connection_that_is_cut_is_tried_again_and_nothing_doubles(server: str, url: str, asks_again: bool) -> None:
    database = Database(url)
    database.write(lambda c: c.execute(text("CREATE TABLE lines (line int)")))
    calls: list[int] = []

    def work(connection: Connection) -> None:
        calls.append(1)
        connection.execute(text("INSERT INTO lines VALUES (1)"))
        if len(calls) == 1:
            _cut(server, url.rsplit("/", 1)[1])
        if asks_again:
            connection.execute(text("SELECT 1"))

    database.write(work)
    assert len(calls) == 2
    assert database.read(lambda c: c.execute(text("SELECT count(*) FROM lines")).scalar_one()) == 1
    database.close()


def test_of_claimers_at_once_one_wins_each_batch(postgres_store: Store, url: str, tmp_path: Path) -> None:
    postgres_store.queue.enqueue("run", [batch(n, f"i{n}") for n in range(40)])

    def claim(owner: str) -> list[int]:
        with open_store(Settings(home=tmp_path / owner, catalog_url=url)) as store:
            return [n for n in range(40) if store.queue.try_claim("run", n, owner, 600, 0.0)]

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(claim, [f"owner{n}" for n in range(6)]))
    assert sorted(n for numbers in won for n in numbers) == list(range(40))
