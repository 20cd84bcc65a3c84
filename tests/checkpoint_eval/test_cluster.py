"""The real pod operator on a cluster: a live local pod API, or whatever TEST_CLUSTER_KUBECONFIG leads to.

`make test-cluster KUBECONFIG=...` runs these on a kind or real cluster. The shards are shell scripts, so that any small
image with a shell and awk will do (TEST_CLUSTER_IMAGE), in a namespace that exists (TEST_CLUSTER_NAMESPACE).
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import yaml

from checkpoint_eval.pods import shard_pod_kwargs, shard_pods
from eval_tasks.settings import EnvironmentSpec, Limits, Settings

if TYPE_CHECKING:
    from tests.checkpoint_eval.conftest import PodServer  # pragma: no cover

pytestmark = pytest.mark.full

ABSENT_IMAGE = "registry.example/absent:1"
LEAVE = "printf '%s' '{}' > $TERMINATION_MESSAGE_PATH; exit {}"


class Cluster:
    """Where the tests run, and what their shards are made of."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.image = os.environ.get("TEST_CLUSTER_IMAGE") or "busybox:1.37"
        self.namespace = os.environ.get("TEST_CLUSTER_NAMESPACE") or "default"

    def client(self) -> Any:
        """`kubernetes.client.CoreV1Api`."""
        from kubernetes import client, config

        return client.CoreV1Api(config.new_client_from_config(str(self.kubeconfig)))

    def pods(self, dag_id: str) -> list[Any]:
        """The pods of a DAG that are there."""
        found: list[Any] = self.client().list_namespaced_pod(self.namespace, label_selector=f"dag_id={dag_id}").items
        return found


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    given = os.environ.get("TEST_CLUSTER_KUBECONFIG")
    if given:
        return Cluster(Path(given).expanduser())
    server: PodServer = request.getfixturevalue("pod_server")
    return Cluster(server.kubeconfig)


class Outcome:
    """What `dag.test()` left: states by map index, and the errors that a person would read."""

    def __init__(self, run: Any, errors: dict[int, str]) -> None:
        instances = [ti for ti in run.get_task_instances() if ti.task_id == "run_shard"]
        self.states = {ti.map_index: str(ti.state) for ti in instances}
        self.names = {ti.map_index: ti.rendered_map_index for ti in instances}
        self.errors = errors


@pytest.fixture
def run_pods(
    run_dag: Callable[..., Any], cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Outcome]]:
    """`run_pods(dag_id, scripts, ...)`: one shard pod per shell script, through the real operator."""
    from airflow.sdk import DAG

    used: list[str] = []
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "somebody-elses"))

    def run(dag_id: str, scripts: list[str], kubeconfig: Path | None = None, **environment: Any) -> Outcome:
        connection = {"conn_type": "kubernetes", "extra": {"kube_config_path": str(kubeconfig or cluster.kubeconfig)}}
        monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", json.dumps(connection))
        used.append(dag_id)
        errors: dict[int, str] = {}

        def note(context: Any) -> None:
            errors[context["ti"].map_index] = str(context["exception"])

        values = {"image": cluster.image, "service_account": "default", "cpu": "100m", "memory": "64Mi"}
        wanted = shard_pod_kwargs(
            plan_uri="blob:plan",
            run_id="0123456789abcdef" * 2,
            shards=range(len(scripts)),
            group="logprob",
            tier="health",
            environment=EnvironmentSpec(name="e", **(values | {"namespace": cluster.namespace} | environment)),
            limits=Limits(pod_deadline_seconds=100),
            settings=Settings(home=tmp_path),
        )
        for mapping, script in zip(wanted, scripts, strict=True):
            template = json.loads(json.dumps(mapping["pod_template_dict"]))
            template["spec"]["containers"][0]["command"] = ["sh", "-c", script]
            mapping |= {"pod_template_dict": template, "arguments": []}
        with DAG(dag_id, schedule=None) as dag:
            shard_pods(
                task_id="run_shard",
                poll_seconds=0.2,
                log_seconds=1,
                retries=1,
                retry_delay=datetime.timedelta(0),
                on_failure_callback=note,
            ).expand_kwargs(wanted)
        return Outcome(run_dag(dag), errors)

    yield run
    for dag_id in used:
        for pod in cluster.pods(dag_id):
            cluster.client().delete_namespaced_pod(pod.metadata.name, cluster.namespace, grace_period_seconds=0)


def test_pods_run_and_leave_nothing_behind(
    run_pods: Callable[..., Outcome], cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = run_pods(
        "pods_succeed",
        [
            "echo hello",
            "touch $TMPDIR/scratch",
            # A character whose bytes are written seconds apart arrives whole.
            r"printf 'torn \303'; sleep 2; printf '\244 whole\n'; echo done",
        ],
    )
    assert outcome.states == {0: "success", 1: "success", 2: "success"}
    assert outcome.names == {0: "shard 0", 1: "shard 1", 2: "shard 2"}
    assert "torn ä whole" in "".join(capfd.readouterr())
    assert cluster.pods("pods_succeed") == []


def test_a_failure_names_its_reason_and_is_retried_only_when_that_can_help(
    run_pods: Callable[..., Outcome], cluster: Cluster
) -> None:
    outcome = run_pods(
        "pods_fail",
        [
            LEAVE.format("InfraError: store unreachable", 4),
            LEAVE.format("UserError: no such plan", 2),
            """exec awk 'BEGIN { x = "x"; for (i = 0; i < 28; i++) x = x x; system("sleep 30") }'""",
        ],
    )
    assert outcome.states == {0: "failed", 1: "failed", 2: "failed"}
    assert "Error (exit code 4): InfraError: store unreachable" in outcome.errors[0]
    assert "Error (exit code 2): UserError: no such plan" in outcome.errors[1]
    assert "OOMKilled (exit code 137)" in outcome.errors[2]
    tries = [pod.metadata.labels["checkpoint-eval/shard"] for pod in cluster.pods("pods_fail")]
    assert sorted(tries) == ["0", "0", "1", "2", "2"]


def test_a_pod_that_is_deleted_under_the_operator_is_run_again(
    run_pods: Callable[..., Outcome], cluster: Cluster
) -> None:
    """As an eviction or a lost node does: the object is gone."""
    deleted: list[str] = []

    def evict() -> None:
        end = time.monotonic() + 120
        while not deleted and time.monotonic() < end:
            for pod in cluster.pods("pods_evicted"):
                if pod.status.phase == "Running":
                    cluster.client().delete_namespaced_pod(pod.metadata.name, cluster.namespace, grace_period_seconds=0)
                    deleted.append(pod.metadata.name)
                    return
            time.sleep(0.1)

    thread = threading.Thread(target=evict)
    thread.start()
    outcome = run_pods("pods_evicted", ["sleep 6"])
    thread.join()
    assert len(deleted) == 1
    assert outcome.states == {0: "success"}


def test_an_image_that_cannot_be_pulled_fails_soon_and_leaves_no_pod(
    run_pods: Callable[..., Outcome], cluster: Cluster
) -> None:
    outcome = run_pods("pods_image", ["true"], image=ABSENT_IMAGE)
    assert outcome.states == {0: "failed"}
    assert "ImagePull" in outcome.errors[0]
    assert cluster.pods("pods_image") == []


def test_one_name_is_one_pod(cluster: Cluster) -> None:
    """A create that was sent twice, for a lost answer, makes no second pod for a shard."""
    from kubernetes.client.exceptions import ApiException

    container = {"name": "base", "image": cluster.image, "command": ["sh", "-c", "sleep 60"]}
    pod = {"metadata": {"name": "shard-once"}, "spec": {"containers": [container], "restartPolicy": "Never"}}
    core = cluster.client()
    core.create_namespaced_pod(cluster.namespace, pod)
    try:
        with pytest.raises(ApiException) as refused:
            core.create_namespaced_pod(cluster.namespace, pod)
        assert refused.value.status == 409
    finally:
        core.delete_namespaced_pod("shard-once", cluster.namespace, grace_period_seconds=0)


def test_a_task_that_is_marked_failed_while_it_waits_ends_its_pod(airflow_home: Path, cluster: Cluster) -> None:
    from airflow.providers.cncf.kubernetes.triggers.pod import KubernetesPodTrigger

    core = cluster.client()
    container = {"name": "base", "image": cluster.image, "command": ["sh", "-c", "sleep 60"]}
    spec = {"containers": [container], "restartPolicy": "Never"}
    core.create_namespaced_pod(cluster.namespace, {"metadata": {"name": "marked-failed"}, "spec": spec})
    trigger = KubernetesPodTrigger(
        pod_name="marked-failed",
        pod_namespace=cluster.namespace,
        trigger_start_time=datetime.datetime.now(datetime.UTC),
        base_container_name="base",
        connection_extras={"kube_config_path": str(cluster.kubeconfig)},
        termination_grace_period=1,
    )
    asyncio.run(trigger.on_kill())
    end = time.monotonic() + 60
    while any(pod.metadata.name == "marked-failed" for pod in core.list_namespaced_pod(cluster.namespace).items):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_kubeconfig_that_is_not_there_is_named_and_not_tried_again(
    run_pods: Callable[..., Outcome], tmp_path: Path
) -> None:
    outcome = run_pods("pods_nowhere", ["true"], kubeconfig=tmp_path / "absent")
    assert outcome.states == {0: "failed"}
    assert "connection 'kubernetes_default' leads to no cluster" in outcome.errors[0]


class Refusing(BaseHTTPRequestHandler):
    """An API server whose role for us lacks a verb: lists nothing, and refuses to create."""

    SAYS = (
        'pods is forbidden: User "system:serviceaccount:airflow:worker" cannot create resource "pods" in API group "" '
        'in the namespace "default"'
    )
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """An empty list."""
        self._send(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []})

    def do_POST(self) -> None:
        """Forbidden."""
        self.asked.append(self.path)
        self._send(403, {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": self.SAYS})

    def _send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def test_a_verb_that_is_missing_is_named_and_asked_for_once(run_pods: Callable[..., Outcome], tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "users": [{"name": "u", "user": {}}],
                "current-context": "c",
            }
        ),
        "utf-8",
    )
    try:
        outcome = run_pods("pods_forbidden", ["true"], kubeconfig=kubeconfig)
    finally:
        server.shutdown()
        server.server_close()
    assert outcome.states == {0: "failed"}
    assert 'cannot create resource "pods"' in outcome.errors[0]
    assert "give Airflow's service account that verb" in outcome.errors[0]
    assert len(Refusing.asked) == 1
