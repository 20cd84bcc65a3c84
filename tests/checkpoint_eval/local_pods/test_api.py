"""The real Kubernetes client against a live server: names, selectors, watches, logs, patches, refusals."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import urllib3
from kubernetes import watch
from kubernetes.client.exceptions import ApiException

from .conftest import Space, pod_body, until


def status_of(error: pytest.ExceptionInfo[ApiException]) -> dict[str, Any]:
    return {"http": error.value.status, **json.loads(error.value.body)}


def test_a_pod_runs_from_pending_to_succeeded(space: Space) -> None:
    created = space.create("a", "print('hello')")
    assert created.status.phase == "Pending"
    pod = space.wait("a")
    state = pod.status.container_statuses[0].state.terminated
    assert (pod.status.phase, state.exit_code, state.reason) == ("Succeeded", 0, "Completed")
    assert pod.spec.node_name == "local"
    assert space.log("a") == "hello\n"
    assert space.reasons("a") == ["Scheduled", "Pulled", "Created", "Started"]
    conditions = {c.type: (c.status, c.reason) for c in pod.status.conditions}
    assert conditions["PodScheduled"] == ("True", None)
    assert conditions["Ready"] == ("False", "PodCompleted")


def test_a_taken_name_is_a_conflict(space: Space) -> None:
    space.create("a")
    with pytest.raises(ApiException) as refusal:
        space.create("a")
    assert status_of(refusal)["http"] == 409
    assert status_of(refusal)["reason"] == "AlreadyExists"


def test_an_unknown_pod_is_not_found(space: Space) -> None:
    with pytest.raises(ApiException) as refusal:
        space.read("nobody")
    assert status_of(refusal)["message"] == 'pods "nobody" not found'
    assert status_of(refusal)["code"] == 404


def test_lists_by_selectors_and_in_pages(space: Space) -> None:
    for name, labels in (("a", {"shard": "0"}), ("b", {"shard": "1"}), ("c", {"shard": "1", "done": "yes"})):
        space.create(name, labels=labels)
    assert space.names(label_selector="shard=1,done!=yes,!airflow-worker") == ["b"]
    assert space.names(label_selector="shard in (0,1)") == ["a", "b", "c"]
    assert space.names(field_selector="metadata.name=c") == ["c"]
    page = space.core.list_namespaced_pod(space.name, limit=2)
    rest = space.core.list_namespaced_pod(space.name, limit=2, _continue=page.metadata._continue)
    assert [p.metadata.name for p in (*page.items, *rest.items)] == ["a", "b", "c"]
    assert rest.metadata._continue is None


def test_a_bad_selector_is_a_bad_request(space: Space) -> None:
    with pytest.raises(ApiException) as refusal:
        space.names(field_selector="spec.color=red")
    assert status_of(refusal)["message"] == "field label not supported: spec.color"


def test_a_watch_sees_the_whole_life(space: Space) -> None:
    start = space.core.list_namespaced_pod(space.name).metadata.resource_version
    seen: list[tuple[str, str]] = []
    space.create("a", "pass")
    deleted = False
    stream = watch.Watch().stream(
        space.core.list_namespaced_pod, space.name, resource_version=start, timeout_seconds=20
    )
    for event in stream:
        phase = event["object"].status.phase
        seen.append((event["type"], phase))
        if phase == "Succeeded" and not deleted:
            deleted = True
            space.core.delete_namespaced_pod("a", space.name)
        if event["type"] == "DELETED":
            break
    assert seen[0] == ("ADDED", "Pending")
    assert ("MODIFIED", "Succeeded") in seen
    assert seen[-1][0] == "DELETED"


def test_logs_follow_until_the_end(space: Space) -> None:
    space.create("a", "import time\nfor i in range(3): print('line', i, flush=True); time.sleep(0.3)")
    until(lambda: space.logged("a", "line 0"))
    assert space.read("a").status.phase == "Running"
    assert space.log("a", follow=True) == "line 0\nline 1\nline 2\n"


def test_logs_with_times_tails_and_torn_text(space: Space, pod_server: Any) -> None:
    script = r"""
import sys, time
out = sys.stdout.buffer
out.write(b'one\n')
out.flush()
time.sleep(1.2)
out.write(b'\xc3\n')
"""
    space.create("a", script)
    space.wait("a")
    assert space.log("a", tail_lines=1) == "\\xc3\n"
    first, second = space.log("a", timestamps=True).splitlines()
    assert first.endswith("Z one")
    # The client has no argument for sinceTime, though the API has.
    url = f"{pod_server.url}/api/v1/namespaces/{space.name}/pods/a/log?sinceTime={second.split()[0]}"
    token = json.loads((pod_server.state / "token.json").read_text())["token"]
    answer = urllib3.PoolManager().request("GET", url, headers={"Authorization": f"Bearer {token}"})
    assert answer.data == b"\xc3\n"


def test_logs_of_a_container_that_waits_or_is_unknown_are_refused(space: Space) -> None:
    space.create("a", container={"image": "registry.example/absent:1"})
    until(lambda: "BackOff" in space.reasons("a"))
    with pytest.raises(ApiException) as refusal:
        space.log("a")
    assert status_of(refusal)["message"].endswith("is waiting to start: ImagePullBackOff")
    with pytest.raises(ApiException) as refusal:
        space.log("a", container="other")
    assert status_of(refusal)["message"] == "container other is not valid for pod a"


def test_labels_are_patched_and_what_runs_is_not(space: Space) -> None:
    space.create("a", labels={"shard": "1"})
    space.wait("a")
    space.core.patch_namespaced_pod("a", space.name, {"metadata": {"labels": {"already_checked": "True"}}})
    assert space.read("a").metadata.labels == {"shard": "1", "already_checked": "True"}
    with pytest.raises(ApiException) as refusal:
        space.core.patch_namespaced_pod("a", space.name, {"spec": {"nodeName": "other"}})
    assert status_of(refusal)["code"] == 422


def test_the_status_subresource_and_the_namespace_are_there(space: Space) -> None:
    space.create("a")
    space.wait("a")
    assert space.core.read_namespaced_pod_status("a", space.name).status.phase == "Succeeded"
    assert space.core.read_namespace(space.name).status.phase == "Active"
    assert space.name in [n.metadata.name for n in space.core.list_namespace().items]


def test_no_route_answers_without_the_token(pod_server: Any) -> None:
    http = urllib3.PoolManager()
    for path in ("/version", "/readyz", "/api/v1/pods", "/api/v1/namespaces/default/pods/a/log", "/nowhere"):
        assert http.request("GET", pod_server.url + path).status == 401
        assert http.request("GET", pod_server.url + path, headers={"Authorization": "Bearer x"}).status == 401


def test_forbidden_verbs_are_refused_in_kubernetes_words(start_pod_server: Callable[..., Any]) -> None:
    core = start_pod_server("--forbid", "create:pods", "--forbid", "watch:events").client()
    with pytest.raises(ApiException) as refusal:
        core.create_namespaced_pod("default", pod_body("a"))
    assert status_of(refusal)["http"] == 403
    assert status_of(refusal)["message"] == (
        'pods is forbidden: User "local-pods" cannot create resource "pods" in API group "" in the namespace "default"'
    )
    assert core.list_namespaced_event("default").items == []
    with pytest.raises(ApiException):
        list(watch.Watch().stream(core.list_namespaced_event, "default", timeout_seconds=1))


def test_the_triggerers_asynchronous_client_watches_events(space: Space, pod_server: Any) -> None:
    import kubernetes_asyncio as asynchronous

    async def reasons() -> list[str]:
        configuration = asynchronous.client.Configuration()
        await asynchronous.config.load_kube_config(str(pod_server.kubeconfig), client_configuration=configuration)
        found = []
        async with asynchronous.client.ApiClient(configuration) as api:
            watcher = asynchronous.watch.Watch()
            core = asynchronous.client.CoreV1Api(api)
            selector = "involvedObject.name=a"
            async for event in watcher.stream(
                core.list_namespaced_event, namespace=space.name, field_selector=selector, timeout_seconds=10
            ):
                found.append(event["object"].reason)
                if event["object"].reason == "Started":
                    break
            await watcher.close()
        return found

    threading.Timer(0.3, lambda: space.create("a")).start()
    assert asyncio.run(reasons())[-1] == "Started"


def test_an_idle_watch_ends_at_its_time(space: Space) -> None:
    begin = time.monotonic()
    assert list(watch.Watch().stream(space.core.list_namespaced_pod, space.name, timeout_seconds=1)) == []
    assert 0.9 < time.monotonic() - begin < 5
