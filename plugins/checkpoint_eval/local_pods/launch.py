"""A pod -> what its supervisor needs: argument vectors, environments, directories. Starts nothing.

The environment is built up, never inherited: PATH, HOME, LANG, the names that the server was told to pass, then the
pod's own list. What the server's environment holds otherwise stays there.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from checkpoint_eval.local_pods.quantities import quantity
from checkpoint_eval.local_pods.selectors import Object

NODE_NAME = "local"
NODE_IP = "127.0.0.1"
MARK = "LOCAL_PODS_DIR"  # in the environment of every process of a pod, so that orphans can be found
_REFERENCE = re.compile(r"\$\$|\$\((?P<name>[-\w.]+)\)")


class MissingReferenceError(Exception):
    """A secret or config map that the pod requires; there are none here."""


def launch_spec(pod: Object, pod_dir: Path, pass_env: Sequence[str], now: float | None = None) -> dict[str, Any]:
    """The content of launch.json. Raises MissingReferenceError."""
    spec = pod["spec"]
    directories = _volume_directories(spec, pod_dir)
    deadline = spec.get("activeDeadlineSeconds")
    inits = [_container(pod, c, pod_dir, directories, pass_env) for c in spec.get("initContainers") or []]
    mains = [_container(pod, c, pod_dir, directories, pass_env) for c in spec["containers"]]
    return {
        "containers": [*inits, *mains],
        "grace_seconds": spec["terminationGracePeriodSeconds"],
        "deadline_at": None if deadline is None else (time.time() if now is None else now) + deadline,
    }


def _volume_directories(spec: dict[str, Any], pod_dir: Path) -> dict[str, Path]:
    """Real directories of the emptyDir and hostPath volumes, by volume name."""
    found = {}
    for volume in spec.get("volumes") or []:
        if (host := volume.get("hostPath")) is not None:
            found[volume["name"]] = Path(host["path"])
            if host.get("type") == "DirectoryOrCreate":
                found[volume["name"]].mkdir(parents=True, exist_ok=True)
        if volume.get("emptyDir") is not None:
            found[volume["name"]] = pod_dir / "volumes" / volume["name"]
            found[volume["name"]].mkdir(parents=True, exist_ok=True)
    return found


def _container(
    pod: Object, container: dict[str, Any], pod_dir: Path, directories: Mapping[str, Path], pass_env: Sequence[str]
) -> dict[str, Any]:
    home = pod_dir / "home"
    home.mkdir(exist_ok=True)
    message_path = pod_dir / f"{container['name']}.termination"
    mounts = {
        mount["mountPath"].rstrip("/"): str(directories[mount["name"]])
        for mount in container.get("volumeMounts") or []
        if mount["name"] in directories and not mount.get("subPath")
    }
    env = _base_environment(home, pass_env)
    env |= {name: _below_mount(value, mounts) for name, value in _own_environment(pod, container).items()}
    env |= {"TERMINATION_MESSAGE_PATH": str(message_path), MARK: str(pod_dir), "HOSTNAME": pod["metadata"]["name"]}
    if not any("gpu" in resource for resource in requests(container)):
        env["CUDA_VISIBLE_DEVICES"] = ""  # as a device plug-in: a pod that asked for none sees none
    argv = [_expand(part, env) for part in [*container["command"], *(container.get("args") or [])]]
    if Path(argv[0]).name in ("python", "python3") and "/" not in argv[0]:
        argv[0] = sys.executable
    limit = (container["resources"].get("limits") or {}).get("memory")
    return {
        "name": container["name"],
        "argv": argv,
        "env": env,
        "cwd": container.get("workingDir") or str(home),
        "memory_bytes": None if limit is None else int(quantity(limit)),
        "log": str(pod_dir / f"{container['name']}.log"),
        "message_path": str(message_path),
        "message_policy": container["terminationMessagePolicy"],
    }


def requests(container: dict[str, Any]) -> dict[str, Any]:
    """What a container asks for: its requests, and its limits where it has no request (as in Kubernetes)."""
    resources = container["resources"]
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def _base_environment(home: Path, pass_env: Sequence[str]) -> dict[str, str]:
    # The interpreter's own folder, not the resolved one: a virtual environment is a link.
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    env = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}
    for name in sorted(os.environ):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in pass_env):
            env[name] = os.environ[name]
    return env


def _own_environment(pod: Object, container: dict[str, Any]) -> dict[str, str]:
    for source in container.get("envFrom") or []:
        for kind, reference in (("secret", source.get("secretRef")), ("configmap", source.get("configMapRef"))):
            if reference is not None and not reference.get("optional"):
                raise MissingReferenceError(f'{kind} "{reference.get("name")}" not found')
    env: dict[str, str] = {}
    for variable in container.get("env") or []:
        source = variable.get("valueFrom")
        if not source:
            env[variable["name"]] = _expand(str(variable.get("value") or ""), env)
        elif "fieldRef" in source:
            env[variable["name"]] = _field(pod, source["fieldRef"]["fieldPath"])
        else:
            reference = source.get("secretKeyRef") or source.get("configMapKeyRef") or {}
            kind = "secret" if source.get("secretKeyRef") else "configmap"
            if not reference.get("optional"):
                raise MissingReferenceError(f'{kind} "{reference.get("name")}" not found')
    return env


def _field(pod: Object, path: str) -> str:
    fixed = {"spec.nodeName": NODE_NAME, "status.podIP": NODE_IP, "status.hostIP": NODE_IP}
    return fixed.get(path) or str(pod["metadata"][path.removeprefix("metadata.")])


def _expand(text: str, env: Mapping[str, str]) -> str:
    """``$(NAME)`` as Kubernetes expands it: unknown names stay as they are, ``$$`` is one dollar."""
    return _REFERENCE.sub(lambda m: "$" if m[0] == "$$" else env.get(m["name"], m[0]), text)


def _below_mount(value: str, mounts: Mapping[str, str]) -> str:
    for mount, directory in mounts.items():
        if value == mount or value.startswith(mount + "/"):
            return directory + value[len(mount) :]
    return value
