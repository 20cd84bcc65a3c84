"""The shipped DAGs run in the Airflow of `tests/checkpoint_eval`: AIRFLOW_HOME is read once in a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkpoint_eval.conftest import airflow_db, airflow_home, run_dag

__all__ = ["airflow_db", "airflow_home", "run_dag"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Warnings that Airflow's own code earns are not ours to mend."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            for category in ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning", "UserWarning"):
                for module in (r"airflow\.", r"sqlalchemy\.", r"kubernetes\.", r"pydantic\.", r"pathspec\."):
                    item.add_marker(pytest.mark.filterwarnings(f"ignore::{category}:{module}"))


@pytest.fixture(scope="session")
def dags_folder() -> Path:
    """The folder of the shipped DAG files."""
    return Path(__file__).parents[2] / "dags"
