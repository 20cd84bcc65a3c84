"""An Airflow of its own for these tests: a temporary home, a fresh SQLite database, the repository's plugins.

AIRFLOW_HOME is read once, when Airflow is first imported, so it is set here, before any test module of this folder is
collected. The database is made on first use (about five seconds), by the tests that ask for `airflow_db`;
`run_dag` runs a DAG built inside a test through `dag.test()`, deferred tasks and mapped ones included. The DAGs folder
is an empty one, since `dag.test()` parses all of it at every call: a test of the shipped DAGs names their folder.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG

_REPOSITORY = Path(__file__).parents[2]
_HOME = Path(tempfile.mkdtemp(prefix="checkpoint-eval-airflow-"))
(_HOME / "dags").mkdir()
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)

for _name in [name for name in os.environ if name.startswith(("AIRFLOW", "CHECKPOINT_EVAL_", "KUBE"))]:
    del os.environ[_name]

os.environ |= {
    "AIRFLOW_HOME": str(_HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(_HOME / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(_REPOSITORY / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_HOME / 'airflow.db'}",
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(_HOME / "logs"),
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Warnings stay errors for our code; the ones that Airflow's own code earns are not ours to mend."""
    foreign = [
        pytest.mark.filterwarnings(f"ignore::{category}:{module}")
        for category in ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning", "UserWarning")
        for module in (r"airflow\.", r"sqlalchemy\.", r"kubernetes\.", r"kubernetes_asyncio\.", r"pydantic\.")
    ]
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            for mark in foreign:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """The temporary AIRFLOW_HOME. Airflow may not have been imported from another home before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import airflow.configuration

    assert str(_HOME) == airflow.configuration.AIRFLOW_HOME
    return _HOME


@pytest.fixture(scope="session")
def airflow_db(airflow_home: Path) -> Path:
    """`airflow_home` with an empty metadata database in it, as `dag.test()` and the models need."""
    subprocess.run(
        [sys.executable, "-c", "from airflow.utils.db import initdb; initdb()"],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return airflow_home


@pytest.fixture
def run_dag(airflow_db: Path) -> Callable[..., DagRun]:
    """`run_dag(dag, **options of dag.test) -> DagRun`: saves the DAG as the processor would, then runs it here."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    def run(dag: DAG, **options: Any) -> DagRun:
        DagBundlesManager().sync_bundles_to_db()
        bag = DagBag(dag_folder=str(airflow_db / "dags"))
        bag.bag_dag(dag)
        sync_bag_to_db(bag, "dags-folder", None)
        return dag.test(**options)

    return run
