"""The HTTP face: Kubernetes' paths and bodies in front of a `Cluster` and a `Kubelet`. Decides nothing itself."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from checkpoint_eval.local_pods import statuses
from checkpoint_eval.local_pods.admission import admit
from checkpoint_eval.local_pods.cluster import Cluster
from checkpoint_eval.local_pods.errors import (
    ApiError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
    unauthorized,
)
from checkpoint_eval.local_pods.kubelet import Kubelet
from checkpoint_eval.local_pods.logs import FOLLOW_SECONDS, read_log
from checkpoint_eval.local_pods.parameters import body, flag, grace, log_options, whole_number
from checkpoint_eval.local_pods.selectors import Object, selector

Handler = Callable[[Request], Awaitable[Response]]

WATCH_SECONDS = 1800.0
VERSION = {"major": "1", "minor": "33", "gitVersion": "v1.33.0+local-pods", "platform": "local/process"}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "watch"]
_KINDS = {"pods": "Pod", "events": "Event", "namespaces": "Namespace"}


class Api:
    """The routes. `forbidden` holds (verb, resource) pairs that are refused with 403, for tests."""

    def __init__(
        self, cluster: Cluster, kubelet: Kubelet, token: str, refused: frozenset[tuple[str, str]] = frozenset()
    ) -> None:
        self.cluster = cluster
        self.kubelet = kubelet
        self._token = token
        self._refused = refused

    def app(self) -> Starlette:
        """The ASGI application."""
        core, space, pod = "/api/v1", "/api/v1/namespaces/{namespace}", "/api/v1/namespaces/{namespace}/pods/{name}"
        table: list[tuple[str, str, Handler]] = [
            ("GET", "/version", _fixed(VERSION)),
            ("GET", "/healthz", _ok),
            ("GET", "/livez", _ok),
            ("GET", "/readyz", _ok),
            ("GET", "/api", _fixed({"kind": "APIVersions", "versions": ["v1"]})),
            ("GET", "/apis", _fixed({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
            ("GET", core, _fixed(_discovery())),
            ("GET", f"{core}/namespaces", self.list_namespaces),
            ("GET", space, self.read_namespace),
            ("GET", f"{core}/pods", self.list_pods),
            ("GET", f"{core}/events", self.list_events),
            ("GET", f"{space}/events", self.list_events),
            ("GET", f"{space}/pods", self.list_pods),
            ("POST", f"{space}/pods", self.create_pod),
            ("DELETE", f"{space}/pods", self.delete_pods),
            ("GET", pod, self.read_pod),
            ("PATCH", pod, self.patch_pod),
            ("DELETE", pod, self.delete_pod),
            ("GET", f"{pod}/status", self.read_status),
            ("GET", f"{pod}/log", self.read_log),
        ]
        routes = [Route(path, self._guarded(handler), methods=[method]) for method, path, handler in table]
        return Starlette(routes=routes, exception_handlers={404: self._no_route, 405: self._no_route})

    def _guarded(self, handler: Handler) -> Handler:
        """The token is asked for on every route; refusals become `v1.Status` bodies."""

        async def guarded(request: Request) -> Response:
            try:
                self._authenticate(request)
                return await handler(request)
            except ApiError as error:
                return JSONResponse(error.status(), error.code)

        return guarded

    def _authenticate(self, request: Request) -> None:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            raise unauthorized()

    async def _no_route(self, request: Request, _error: Exception) -> Response:
        async def refuse(request: Request) -> Response:
            raise not_found("path", request.url.path)

        return await self._guarded(refuse)(request)

    def _may(self, request: Request, verb: str, resource: str) -> tuple[str, str]:
        """(namespace, name) of the request, when the verb is not refused."""
        namespace, name = request.path_params.get("namespace", ""), request.path_params.get("name", "")
        if (verb, resource) in self._refused:
            raise forbidden(verb, resource, namespace or None, name or None)
        return namespace, name

    async def list_namespaces(self, request: Request) -> Response:
        """Every namespace that a pod lies in, and `default`."""
        self._may(request, "list", "namespaces")
        names = sorted({"default", *(pod["metadata"]["namespace"] for pod in self.cluster.pods())})
        return JSONResponse(self._list_body("namespaces", [_namespace(name) for name in names]))

    async def read_namespace(self, request: Request) -> Response:
        """Any namespace exists."""
        namespace, _ = self._may(request, "get", "namespaces")
        return JSONResponse(_namespace(namespace))

    async def list_pods(self, request: Request) -> Response:
        """List or watch pods."""
        return self._list(request, "pods")

    async def list_events(self, request: Request) -> Response:
        """List or watch events."""
        return self._list(request, "events")

    def _list(self, request: Request, resource: str) -> Response:
        query = request.query_params
        watching = flag(request, "watch")
        namespace, _ = self._may(request, "watch" if watching else "list", resource)
        matches = selector(resource, query.get("labelSelector"), query.get("fieldSelector"))
        if watching:
            return self._watch(request, resource, namespace or None)
        found = [o for o in self.cluster.objects(resource, namespace or None) if matches(o)]
        limit, after = whole_number(request, "limit"), query.get("continue")
        if after:
            found = [o for o in found if f"{o['metadata']['namespace']}/{o['metadata']['name']}" > after]
        body = self._list_body(resource, found[:limit] if limit else found)
        if limit and len(found) > limit:
            last = found[limit - 1]["metadata"]
            body["metadata"] |= {"continue": f"{last['namespace']}/{last['name']}"}
            body["metadata"] |= {"remainingItemCount": len(found) - limit}
        return JSONResponse(body)

    def _list_body(self, resource: str, items: list[Object]) -> dict[str, Any]:
        meta = {"resourceVersion": str(self.cluster.version)}
        return {"kind": f"{_KINDS[resource]}List", "apiVersion": "v1", "metadata": meta, "items": items}

    def _watch(self, request: Request, resource: str, namespace: str | None) -> Response:
        query = request.query_params
        matches = selector(resource, query.get("labelSelector"), query.get("fieldSelector"))
        since = whole_number(request, "resourceVersion")
        seconds = float(whole_number(request, "timeoutSeconds") or WATCH_SECONDS)
        present = [o for o in self.cluster.objects(resource, namespace) if matches(o)] if not since else []
        start = since or self.cluster.version

        async def lines() -> AsyncIterator[bytes]:
            for item in present:
                yield json.dumps({"type": "ADDED", "object": item}).encode() + b"\n"
            bookmarks = flag(request, "allowWatchBookmarks")
            events = self.cluster.watch(resource, namespace, matches, start, seconds, bookmarks=bookmarks)
            async for event in events:
                yield json.dumps(event).encode() + b"\n"

        return StreamingResponse(lines(), media_type="application/json")

    async def create_pod(self, request: Request) -> Response:
        """Admit a pod."""
        namespace, _ = self._may(request, "create", "pods")
        pod = admit(await body(request), namespace)
        if self.cluster.has_pod(namespace, pod["metadata"]["name"]):
            raise already_exists("pods", pod["metadata"]["name"])
        return JSONResponse(pod if "dryRun" in request.query_params else self.cluster.save_pod(pod), 201)

    async def read_pod(self, request: Request) -> Response:
        """One pod."""
        return JSONResponse(self.cluster.pod(*self._may(request, "get", "pods")))

    async def read_status(self, request: Request) -> Response:
        """One pod, by its status subresource; the status is this server's to write."""
        return JSONResponse(self.cluster.pod(*self._may(request, "get", "pods/status")))

    async def patch_pod(self, request: Request) -> Response:
        """Merge labels and annotations; what a pod runs cannot be changed."""
        pod = self.cluster.pod(*self._may(request, "patch", "pods"))
        name = pod["metadata"]["name"]
        patch = await body(request)
        if not isinstance(patch, dict):
            raise bad_request("only merge patches are taken, as a JSON object")
        version = (patch.get("metadata") or {}).get("resourceVersion")
        if version and version != pod["metadata"]["resourceVersion"]:
            raise conflict("pods", name, "the object has been modified; please apply your changes to the latest")
        changes = {key for key in patch if key not in ("metadata", "kind", "apiVersion")}
        if changes:
            raise invalid(name, [(key, "Forbidden: only metadata of a local pod can be patched") for key in changes])
        meta = dict(pod["metadata"])
        for key in ("labels", "annotations"):
            merged = {**(meta.get(key) or {}), **((patch.get("metadata") or {}).get(key) or {})}
            meta[key] = {k: v for k, v in merged.items() if v is not None}
        return JSONResponse(self.cluster.save_pod({**pod, "metadata": meta}))

    async def delete_pod(self, request: Request) -> Response:
        """End a pod within its grace period."""
        pod = self.cluster.pod(*self._may(request, "delete", "pods"))
        options = await body(request, empty={})
        for key, wanted in (options.get("preconditions") or {}).items():
            if wanted is not None and pod["metadata"].get(key) != wanted:
                raise conflict(
                    "pods", pod["metadata"]["name"], f"the {key} is {pod['metadata'].get(key)}, not {wanted}"
                )
        return JSONResponse(self.kubelet.delete(pod, grace(request, options)))

    async def delete_pods(self, request: Request) -> Response:
        """End all pods that the selectors choose."""
        namespace, _ = self._may(request, "deletecollection", "pods")
        query, options = request.query_params, await body(request, empty={})
        matches = selector("pods", query.get("labelSelector"), query.get("fieldSelector"))
        chosen = [pod for pod in self.cluster.objects("pods", namespace) if matches(pod)]
        ended = [self.kubelet.delete(pod, grace(request, options)) for pod in chosen]
        return JSONResponse(self._list_body("pods", ended))

    async def read_log(self, request: Request) -> Response:
        """A container's output."""
        pod = self.cluster.pod(*self._may(request, "get", "pods/log"))
        name, spec = pod["metadata"]["name"], pod["spec"]
        container = request.query_params.get("container") or spec["containers"][0]["name"]
        known = [c["name"] for c in [*spec["containers"], *(spec.get("initContainers") or [])]]
        if container not in known:
            raise bad_request(f"container {container} is not valid for pod {name}")
        if flag(request, "previous"):
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        state = _container_state(pod, container)
        if "waiting" in state:
            why = state["waiting"].get("reason", "ContainerCreating")
            raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {why}')
        path = self.cluster.pod_dir(pod) / f"{container}.log"
        chunks = read_log(
            path, log_options(request), follow=flag(request, "follow"), finished=self._finished(pod, container)
        )
        return StreamingResponse(chunks, media_type="text/plain")

    def _finished(self, pod: Object, container: str) -> Callable[[], Awaitable[bool]]:
        namespace, name, uid = (pod["metadata"][key] for key in ("namespace", "name", "uid"))

        async def finished() -> bool:
            await asyncio.sleep(FOLLOW_SECONDS)
            if self.cluster.closed or not self.cluster.has_pod(namespace, name):
                return True
            now = self.cluster.pod(namespace, name)
            ended = "terminated" in _container_state(now, container) or now["status"]["phase"] in statuses.TERMINAL
            return ended or now["metadata"]["uid"] != uid

        return finished


def _container_state(pod: Object, container: str) -> dict[str, Any]:
    listed = [*(pod["status"].get("containerStatuses") or []), *(pod["status"].get("initContainerStatuses") or [])]
    return next((s["state"] for s in listed if s["name"] == container), {"waiting": {}})


def _fixed(body: dict[str, Any]) -> Handler:
    async def handler(_request: Request) -> Response:
        return JSONResponse(body)

    return handler


async def _ok(_request: Request) -> Response:
    return PlainTextResponse("ok")


def _namespace(name: str) -> Object:
    meta = {"name": name, "uid": name, "labels": {"kubernetes.io/metadata.name": name}}
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": meta, "status": {"phase": "Active"}}


def _discovery() -> dict[str, Any]:
    rows = [("pods", True, _VERBS), ("events", True, ["get", "list", "watch"]), ("namespaces", False, ["get", "list"])]
    resources = [
        {"name": name, "singularName": "", "namespaced": namespaced, "kind": _KINDS[name], "verbs": verbs}
        for name, namespaced, verbs in rows
    ]
    return {"kind": "APIResourceList", "groupVersion": "v1", "resources": resources}
