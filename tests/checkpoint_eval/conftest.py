"""An Airflow of its own for these tests: a temporary home, a fresh SQLite database, the repository's plugins.

AIRFLOW_HOME is read once, when Airflow is first imported, so it is set here, before any test module of this folder is
collected. The database is made on first use (about five seconds), by the tests that ask for `airflow_db`;
`run_dag` runs a DAG built inside a test through `dag.test()`, deferred tasks and mapped ones included. The DAGs folder
is an empty one, since `dag.test()` parses all of it at every call: a test of the shipped DAGs names their folder.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
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

# The database and the logs lie in the home by default. No more than this is set, since tests of whole installations,
# which choose their own home, inherit it.
os.environ |= {
    "AIRFLOW_HOME": str(_HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(_HOME / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(_REPOSITORY / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
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
    foreign.append(pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning"))
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


class PodServer:
    """A live local pod API in a process of its own: start, stop, kill, and the real Kubernetes client for it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.state = folder / "state"
        self.kubeconfig = folder / "kubeconfig"
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> PodServer:
        """Start and wait until it is ready."""
        ready = self.state / "ready.json"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "checkpoint_eval.local_pods", "--state", str(self.state)]
        self.process = subprocess.Popen(
            [*command, "--kubeconfig", str(self.kubeconfig), *self.arguments],
            env=os.environ | {"PYTHONPATH": f"{_REPOSITORY / 'plugins'}{os.pathsep}{_REPOSITORY}"},
        )
        end = time.monotonic() + 60
        while not ready.exists():
            assert self.process.poll() is None, f"the pod API ended with {self.process.returncode}"
            assert time.monotonic() < end, "the pod API was not ready within a minute"
            time.sleep(0.05)
        return self

    @property
    def url(self) -> str:
        """Where it listens."""
        return str(json.loads((self.state / "ready.json").read_text("utf-8"))["url"])

    def kill(self) -> None:
        """As `kill -9`."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """As a service manager would; its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(timeout=30)

    def client(self) -> Any:
        """`kubernetes.client.CoreV1Api` through the kubeconfig that it wrote."""
        from kubernetes import client, config

        return client.CoreV1Api(config.new_client_from_config(str(self.kubeconfig)))


@pytest.fixture(scope="session")
def pod_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodServer]:
    """One pod API for all tests that only use it: 64 cores to admit, one image that never pulls."""
    arguments = (
        "--cpu",
        "64",
        "--refuse-image",
        "registry.example/absent:1",
        "--kill-on-exit",
        "--pass-env",
        "PYTHONPATH",
    )
    server = PodServer(tmp_path_factory.mktemp("pods"), *arguments).start()
    yield server
    assert server.stop() == 0


@pytest.fixture
def start_pod_server(tmp_path: Path) -> Iterator[Callable[..., PodServer]]:
    """`start_pod_server(*arguments)`: a pod API of the test's own; whatever it leaves is ended after the test."""
    started: list[PodServer] = []

    def start(*arguments: str) -> PodServer:
        started.append(PodServer(tmp_path / f"pods-{len(started)}", *arguments).start())
        return started[-1]

    yield start
    for server in started:
        if server.process is not None and server.process.poll() is None:
            server.kill()
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("LOCAL_PODS_DIR", "").startswith(str(server.state)):
                    process.kill()
