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
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text

from eval_tasks.errors import InfraError, UserError
from eval_tasks.settings import Settings
from eval_tasks.store import Store, migrate, open_store, schema
from eval_tasks.store import database as database_module
from eval_tasks.store.database import Database
from eval_tasks.store.tables import metadata
from tests.store.catalog.test_calibrations import calibration
from tests.store.test_queue import batch

pytestmark = pytest.mark.full

_NAMES = count()
_REVISIONS = sorted(script.revision for script in schema._scripts().walk_revisions())


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
        rules = Path(data, "pg_hba.conf")  # everybody is trusted but this one
        rules.write_text(f"host all locked 127.0.0.1/32 scram-sha-256\n{rules.read_text('utf-8')}", "utf-8")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
        start(control, "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://eval@127.0.0.1:{port}"
        finally:
            start(control, "-D", data, "-w", "-m", "immediate", "stop")


def _administer(server: str, statement: str) -> list[str]:
    """The first column of what a statement gives, if it gives rows."""
    engine = create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        result = connection.execute(text(statement))
        found = [str(row[0]) for row in result] if result.returns_rows else []
    engine.dispose()
    return found


def _cut(server: str, name: str) -> None:
    """End every session on a database, as an operator or a restart does."""
    _administer(server, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")


def _crash(server: str) -> None:
    """Stop the server as a power cut does, and start it again."""
    (data,) = _administer(server, "SHOW data_directory")
    programs = _programs()
    assert programs is not None
    subprocess.run(
        [str(programs / "pg_ctl"), "-D", data, "-w", "-m", "immediate", "restart"],
        user="postgres" if os.geteuid() == 0 else None,
        cwd="/",
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
    )


@pytest.fixture
def empty(server: str) -> str:
    """A database of the test's own, without a table."""
    name = f"catalog{next(_NAMES)}"
    _administer(server, f"CREATE DATABASE {name}")
    return f"{server}/{name}"


@pytest.fixture
def url(empty: str) -> str:
    """A database of the test's own, at this version's schema."""
    migrate(empty)
    return empty


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


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
@pytest.mark.parametrize("revision", _REVISIONS)
def test_every_revision_is_brought_forward_with_what_it_holds(
    revision: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("empty") if kind == "postgresql" else f"sqlite:///{tmp_path}/catalog.db"
    database = Database(url)

    def earlier(connection: Connection) -> None:
        config = schema._config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    database.write(earlier)
    database.write(lambda c: c.execute(text("INSERT INTO environments (env_fingerprint, record) VALUES ('f', '{}')")))
    assert migrate(url) == _REVISIONS[-1]
    assert database.read(lambda c: c.execute(text("SELECT env_fingerprint FROM environments")).all()) == [("f",)]
    options = {"version_table": schema.VERSION_TABLE, "compare_type": True}
    assert database.read(lambda c: compare_metadata(MigrationContext.configure(c, opts=options), metadata)) == []
    database.close()


def test_a_server_that_crashes_in_a_transaction_is_waited_for_and_nothing_doubles(server: str, url: str) -> None:
    database = Database(url)
    database.write(lambda c: c.execute(text("CREATE TABLE lines (line int)")))
    calls: list[int] = []

    def work(connection: Connection) -> None:
        calls.append(1)
        connection.execute(text("INSERT INTO lines VALUES (1)"))
        if len(calls) == 1:
            _crash(server)
        connection.execute(text("SELECT 1"))

    database.write(work)
    assert len(calls) == 2
    assert database.read(lambda c: c.execute(text("SELECT count(*) FROM lines")).scalar_one()) == 1
    database.close()


def test_what_was_claimed_before_a_crash_of_the_server_is_still_claimed(server: str, postgres_store: Store) -> None:
    postgres_store.queue.enqueue("run", [batch(0, "a"), batch(1, "b")])
    assert postgres_store.queue.try_claim("run", 0, "before", 600, 0.0)
    _crash(server)
    assert not postgres_store.queue.try_claim("run", 0, "after", 600, 0.0)
    assert postgres_store.queue.try_claim("run", 1, "after", 600, 0.0)
    assert postgres_store.queue.try_complete("run", 0, "before", "r0")
    assert postgres_store.queue.counts("run") == {"pending": 0, "running": 1, "done": 1}


@pytest.mark.parametrize(
    ("user", "place", "said"),
    [
        ("locked", "{address}/postgres", "password authentication failed"),
        ("eval", "{address}/nosuch", 'database "nosuch" does not exist'),
        ("eval", "127.0.0.1:1/catalog", "refused"),
    ],
    ids=["wrong-password", "no-such-database", "no-server"],
)
def test_a_catalog_that_cannot_be_reached_is_named_without_its_password(
    server: str, monkeypatch: pytest.MonkeyPatch, user: str, place: str, said: str
) -> None:
    monkeypatch.setattr(database_module, "RETRY_SECONDS", (0.0,))
    if not _administer(server, "SELECT 1 FROM pg_roles WHERE rolname = 'locked'"):
        _administer(server, "CREATE ROLE locked LOGIN PASSWORD 'another'")
    where = place.format(address=server.rpartition("@")[2])
    database = Database(f"postgresql+psycopg://{user}:s3cret@{where}")
    with pytest.raises(InfraError, match=said) as caught:
        database.read(lambda _: None)
    assert where in str(caught.value)
    assert "s3cret" not in str(caught.value)
    database.close()
