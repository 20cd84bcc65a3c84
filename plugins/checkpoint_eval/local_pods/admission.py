"""A posted pod -> the pod as it is stored: checked, with Kubernetes' defaults. Pure, apart from a fresh uid.

What this server cannot do is refused here by name, rather than accepted and ignored.
"""

from __future__ import annotations

import re
import secrets
import time
from typing import Any
from uuid import UUID

from checkpoint_eval.local_pods.cluster import timestamp
from checkpoint_eval.local_pods.errors import bad_request, invalid
from checkpoint_eval.local_pods.quantities import quantity
from checkpoint_eval.local_pods.selectors import Object

GRACE_SECONDS = 30
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?")
_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "status.podIP", "status.hostIP")
_VOLUMES = ("emptyDir", "hostPath", "configMap", "secret", "projected", "downwardAPI")

Causes = list[tuple[str, str]]


def admit(body: Any, namespace: str) -> Object:
    """The stored form of a posted pod. Raises ApiError 400 or 422, with every cause at once."""
    _check_shape(body)
    meta: dict[str, Any] = {k: v for k, v in (body.get("metadata") or {}).items() if v is not None}
    if meta.get("namespace", namespace) != namespace:
        given = meta["namespace"]
        raise bad_request(
            f"the namespace of the object ({given}) does not match the namespace of the URL ({namespace})"
        )
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = f"{meta['generateName']}{secrets.token_hex(3)[:5]}"
    name = str(meta.get("name", ""))
    spec: dict[str, Any] = body["spec"]
    causes = [*_metadata_causes(meta, name), *_spec_causes(spec)]
    if causes:
        raise invalid(name, causes)
    meta |= {"namespace": namespace, "uid": _uid(), "creationTimestamp": timestamp()}
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "schedulerName": "default-scheduler",
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "securityContext": {},
        **{key: value for key, value in spec.items() if value is not None and key != "nodeName"},
    }
    spec["containers"] = [_container_defaults(c) for c in spec["containers"]]
    if spec.get("initContainers"):
        spec["initContainers"] = [_container_defaults(c) for c in spec["initContainers"]]
    status = {"phase": "Pending", "qosClass": "Burstable"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def _check_shape(body: Any) -> None:
    """Raise ApiError 400 where an object or a list of objects should be, and is not."""
    if not isinstance(body, dict) or body.get("kind", "Pod") != "Pod" or not isinstance(body.get("spec"), dict):
        raise bad_request("the body must be a Pod with a spec")
    _object(_object(body, "metadata"), "labels")
    _objects(body["spec"], "volumes")
    for container in [*_objects(body["spec"], "containers"), *_objects(body["spec"], "initContainers")]:
        for kind in ("requests", "limits"):
            _object(_object(container, "resources"), kind)
        for entry in [e for key in ("volumeMounts", "env", "envFrom") for e in _objects(container, key)]:
            _object(entry, "valueFrom")


def _object(parent: dict[str, Any], key: str) -> dict[str, Any]:
    value = parent.get(key) or {}
    if not isinstance(value, dict):
        raise bad_request(f"{key} must be an object, not {value!r}")
    return value


def _objects(parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = parent.get(key) or []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise bad_request(f"{key} must be a list of objects, not {value!r}")
    return value


def _uid() -> str:
    """A uid that begins with the time, so that uids sort by age (as UUID version 7)."""
    milliseconds = time.time_ns() // 1_000_000
    number = (milliseconds << 80) | (7 << 76) | (secrets.randbits(12) << 64) | (2 << 62) | secrets.randbits(62)
    return str(UUID(int=number))


def _container_defaults(container: dict[str, Any]) -> dict[str, Any]:
    defaults = {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
    }
    return defaults | {key: value for key, value in container.items() if value is not None}


def _metadata_causes(meta: dict[str, Any], name: str) -> Causes:
    causes: Causes = []
    if not _DNS_SUBDOMAIN.fullmatch(name) or len(name) > 253:
        causes.append(("metadata.name", f"Invalid value: {name!r}: a lowercase RFC 1123 subdomain is required"))
    for key, value in (meta.get("labels") or {}).items():
        if not _LABEL_KEY.fullmatch(str(key)):
            causes.append(("metadata.labels", f"Invalid value: {key!r}: not a label name"))
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value) or len(value) > 63:
            causes.append(("metadata.labels", f"Invalid value: {value!r}: a valid label is 63 characters or less"))
    for unsupported in ("finalizers", "ownerReferences"):
        if meta.get(unsupported):
            causes.append((f"metadata.{unsupported}", "Unsupported: local pods have no garbage collector"))
    return causes


def _spec_causes(spec: dict[str, Any]) -> Causes:
    causes: Causes = []
    containers, inits = spec.get("containers") or [], spec.get("initContainers") or []
    if len(containers) != 1:
        extra = ", ".join(repr(c.get("name")) for c in containers[1:]) or "none given"
        causes.append(("spec.containers", f"Unsupported: a local pod runs exactly one container ({extra})"))
    if (policy := spec.get("restartPolicy") or "Never") != "Never":
        causes.append(("spec.restartPolicy", f"Unsupported value: {policy!r}: supported values: 'Never'"))
    for volume in spec.get("volumes") or []:
        if not _DNS_LABEL.fullmatch(str(volume.get("name", ""))):  # it becomes a directory's name
            why = f"Invalid value: {volume.get('name')!r}: a lowercase RFC 1123 label is required"
            causes.append(("spec.volumes.name", why))
        kinds = [key for key, value in volume.items() if key != "name" and value is not None]
        if any(kind not in _VOLUMES for kind in kinds):
            causes.append((f"spec.volumes[{volume.get('name')}]", f"Unsupported volume {kinds}: use one of {_VOLUMES}"))
    names = {volume.get("name") for volume in spec.get("volumes") or []}
    listed = [str(container.get("name")) for container in [*inits, *containers]]
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        causes.append((f"spec.containers[{name}].name", f"Duplicate value: {name!r}"))
    for container in [*inits, *containers]:
        causes += _container_causes(container, names)
    for key in ("activeDeadlineSeconds", "terminationGracePeriodSeconds"):
        value = spec.get(key)
        if value is not None and (not isinstance(value, int) or value < (key == "activeDeadlineSeconds")):
            causes.append((f"spec.{key}", f"Invalid value: {value!r}: must be a positive whole number"))
    return causes


def _container_causes(container: dict[str, Any], volumes: set[Any]) -> Causes:
    causes: Causes = []
    name = str(container.get("name", ""))
    where = f"spec.containers[{name}]"
    if not _DNS_LABEL.fullmatch(name):
        causes.append((f"{where}.name", f"Invalid value: {name!r}: a lowercase RFC 1123 label is required"))
    if not container.get("image"):
        causes.append((f"{where}.image", "Required value"))
    if not container.get("command"):
        why = "Required value: images are labels only here, so there is no entry point to fall back to"
        causes.append((f"{where}.command", why))
    for key in ("command", "args"):
        parts = container.get(key) or []
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            causes.append((f"{where}.{key}", f"Invalid value: {parts!r}: must be a list of strings"))
    for kind in ("requests", "limits"):
        for resource, value in ((container.get("resources") or {}).get(kind) or {}).items():
            try:
                quantity(value)
            except ValueError as error:
                causes.append((f"{where}.resources.{kind}[{resource}]", f"Invalid value: {value!r}: {error}"))
    return [*causes, *_mount_causes(where, container, volumes), *_env_causes(where, container)]


def _mount_causes(where: str, container: dict[str, Any], volumes: set[Any]) -> Causes:
    causes: Causes = []
    for mount in container.get("volumeMounts") or []:
        if mount.get("name") not in volumes:
            causes.append((f"{where}.volumeMounts", f"Not found: {mount.get('name')!r}"))
        elif not str(mount.get("mountPath") or "").startswith("/"):
            causes.append((f"{where}.volumeMounts.mountPath", "Required value: an absolute path"))
    return causes


def _env_causes(where: str, container: dict[str, Any]) -> Causes:
    causes: Causes = []
    for variable in container.get("env") or []:
        if not re.fullmatch(r"[^=\x00]+", str(variable.get("name") or "")):
            causes.append((f"{where}.env.name", f"Invalid value: {variable.get('name')!r}: not a variable's name"))
        causes += _variable_causes(f"{where}.env[{variable.get('name')}]", variable.get("valueFrom") or {})
    return causes


def _variable_causes(where: str, source: dict[str, Any]) -> Causes:
    path = (source.get("fieldRef") or {}).get("fieldPath")
    if path is not None and path not in _FIELDS:
        return [(f"{where}.valueFrom.fieldRef", f"Unsupported value: {path!r}: supported values: {', '.join(_FIELDS)}")]
    if source.get("resourceFieldRef") is not None:
        return [(f"{where}.valueFrom.resourceFieldRef", "Unsupported: use fieldRef or a plain value")]
    return []
