"""Migrations make the database that the code expects, and refuse one that they do not know."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from eval_tasks.errors import UserError
from eval_tasks.settings import Settings
from eval_tasks.store import migrate, open_store, schema
from eval_tasks.store.database import Database, insert_of
from eval_tasks.store.tables import metadata

HEAD = schema._scripts().get_current_head()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/with space/catalog.db"


def test_migrating_from_nothing_gives_the_tables_of_the_code(url: str) -> None:
    assert migrate(url) == HEAD
    database = Database(url)
    options = {"version_table": schema.VERSION_TABLE, "compare_type": True}
    assert database.read(lambda c: compare_metadata(MigrationContext.configure(c, opts=options), metadata)) == []
    database.close()


def test_migrating_again_keeps_what_is_there(url: str) -> None:
    migrate(url)
    database = Database(url)
    database.write(lambda c: c.execute(text("INSERT INTO environments (env_fingerprint, record) VALUES ('f', '{}')")))
    assert migrate(url) == HEAD
    assert database.read(lambda c: c.execute(text("SELECT count(*) FROM environments")).scalar_one()) == 1
    database.close()


def test_a_catalog_of_the_first_schema_is_brought_along(url: str) -> None:
    database = Database(url)

    def first(connection: object) -> None:
        config = schema._config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")

    database.write(first)
    database.write(lambda c: c.execute(text("INSERT INTO environments (env_fingerprint, record) VALUES ('f', '{}')")))
    schema.prepare(database)
    assert database.read(lambda c: c.execute(text("SELECT count(*) FROM environments")).scalar_one()) == 1
    assert "agreement_sets" in database.read(lambda c: inspect(c).get_table_names())
    database.close()


def test_the_way_back_removes_every_table(url: str) -> None:
    migrate(url)
    database = Database(url)

    def downgrade(connection: object) -> None:
        config = schema._config()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")

    database.write(downgrade)
    assert database.read(lambda c: inspect(c).get_table_names()) == [schema.VERSION_TABLE]
    database.close()


def test_a_migration_that_fails_leaves_an_empty_database(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("half way")

    monkeypatch.setattr("alembic.op.create_index", fail)
    with pytest.raises(KeyError):
        migrate(url)
    monkeypatch.undo()
    database = Database(url)
    assert database.read(lambda c: inspect(c).get_table_names()) == []
    database.close()
    assert migrate(url) == HEAD


def test_a_catalog_of_a_newer_version_is_refused(settings: Settings) -> None:
    open_store(settings).close()
    database = Database(settings.catalog_url)
    database.write(lambda c: c.execute(text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")))
    database.close()
    with pytest.raises(UserError, match=r"catalog\.db is at revision 9999.*newer checkpoint-eval"):
        open_store(settings)
    with pytest.raises(UserError, match="9999"):
        migrate(settings.catalog_url)


def test_a_shared_catalog_that_is_behind_is_not_migrated_by_itself(url: str) -> None:
    database = Database(url)
    database.dialect = "postgresql"
    with pytest.raises(UserError, match=r"at revision none, this version needs \d+; run: python -m eval_tasks migrate"):
        schema.prepare(database)
    assert database.read(lambda c: inspect(c).get_table_names()) == []
    database.close()


def test_every_table_can_be_said_in_postgresql() -> None:
    said = {
        table.name: str(CreateTable(table).compile(dialect=postgresql.dialect())) for table in metadata.sorted_tables
    }
    assert "seq SERIAL NOT NULL" in said["runs"]
    assert "key BYTEA" in said["work_items"]
    assert "batch INTEGER NOT NULL" in said["work_batches"]
    assert "step BIGINT" in said["checkpoints"]


def test_an_upsert_is_said_in_the_dialect_of_its_connection() -> None:
    class Connection:
        dialect = postgresql.dialect()

    statement = insert_of(Connection(), metadata.tables["rules"]).on_conflict_do_nothing()  # type: ignore[arg-type]
    assert str(statement.compile(dialect=postgresql.dialect())).endswith("ON CONFLICT DO NOTHING")
