"""A database in, the same database at this version's schema out, or an error that says how to get there.

The embedded SQLite catalog is migrated when it is opened; PostgreSQL is shared, so an operator migrates it.
"""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from eval_tasks.errors import UserError
from eval_tasks.store.database import Database

VERSION_TABLE = "checkpoint_eval_version"

# Alembic keeps its migration context in a module global.
_ALEMBIC = threading.Lock()
_ADVISORY_LOCK = 0x6376616C  # any constant of ours


def migrate(url: str) -> str:
    """Bring the catalog at `url` to this version's schema; gives the revision. Safe to call again, and at once."""
    database = Database(url)
    try:
        return _migrate(database)
    finally:
        database.close()


def prepare(database: Database) -> None:
    """Make `database` ready: migrate SQLite. Raises UserError when a PostgreSQL catalog is behind, or either ahead."""
    scripts = _scripts()
    head = scripts.get_current_head()
    found = database.read(_revision)
    if found == head:
        return
    _refuse_newer(database, scripts, found)
    if database.dialect == "sqlite":
        _migrate(database)
    else:
        raise UserError(
            f"catalog {database.shown_url} is at revision {found or 'none'}, this version needs {head}; "
            "run: python -m eval_tasks migrate"
        )


def _migrate(database: Database) -> str:
    scripts = _scripts()
    head = str(scripts.get_current_head())
    found = database.read(_revision)
    _refuse_newer(database, scripts, found)
    if found != head:
        with _ALEMBIC:
            database.write(lambda connection: _upgrade(connection, database.dialect))
    return head


def _refuse_newer(database: Database, scripts: ScriptDirectory, found: str | None) -> None:
    known = {script.revision for script in scripts.walk_revisions()}
    if found is not None and found not in known:
        raise UserError(
            f"catalog {database.shown_url} is at revision {found}, which this version does not know: it was made by a "
            "newer checkpoint-eval; upgrade this one"
        )


def _upgrade(connection: Connection, dialect: str) -> None:
    """Two processes may get here at once: the second one waits, and finds nothing left to do."""
    if dialect == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
