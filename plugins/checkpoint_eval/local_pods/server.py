"""One running server over one state directory: socket, token, kubeconfig, ready file, graceful end."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
import yaml

from checkpoint_eval.local_pods.api import Api
from checkpoint_eval.local_pods.cluster import Cluster
from checkpoint_eval.local_pods.kubelet import Kubelet, Node
from checkpoint_eval.local_pods.supervisor import write_atomically
from eval_tasks.errors import UserError

HOST = "127.0.0.1"
STOP_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """How to run. `port` 0 is the port of the last start with this state directory, or any free one."""

    state_dir: Path
    kubeconfig: Path
    port: int = 0
    node: Node = field(default_factory=Node)
    refused: frozenset[tuple[str, str]] = frozenset()
    kill_on_exit: bool = False


def serve(options: ServerOptions) -> None:
    """Serve until SIGTERM or SIGINT. Running pods go on, unless `kill_on_exit`. Raises UserError."""
    state_dir = options.state_dir.resolve()
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    ready = state_dir / "ready.json"
    with _only_server(state_dir), _bound_socket(options.port, state_dir / "port.json") as listener:
        ready.unlink(missing_ok=True)
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        token = _token(state_dir / "token.json")
        options.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        _write_kubeconfig(options.kubeconfig, url, token)
        ready_body = {"url": url, "pid": os.getpid(), "kubeconfig": str(options.kubeconfig)}
        for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again once it has stopped
            signal.signal(number, lambda *_: None)
        try:
            asyncio.run(_serve(options, state_dir, listener, token, ready, ready_body))
        finally:
            ready.unlink(missing_ok=True)


async def _serve(
    options: ServerOptions, state_dir: Path, listener: socket.socket, token: str, ready: Path, ready_body: object
) -> None:
    cluster = Cluster(state_dir)
    kubelet = Kubelet(cluster, options.node)
    api = Api(cluster, kubelet, token, options.refused)
    config = uvicorn.Config(
        api.app(), log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    passes = asyncio.create_task(kubelet.run())
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    write_atomically(ready, ready_body)
    while not server.should_exit and not serving.done() and not passes.done():
        await asyncio.sleep(0.05)
    server.should_exit = True  # without passes no pod would ever start: better an end that a service manager sees
    cluster.close()
    if options.kill_on_exit:
        await kubelet.stop_all(STOP_SECONDS)
    await serving
    passes.cancel()
    with suppress(asyncio.CancelledError):
        await passes


@contextmanager
def _only_server(state_dir: Path) -> Iterator[None]:
    with (state_dir / "server.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another local pod server uses {state_dir}; stop it, or give another --state") from None
        yield


@contextmanager
def _bound_socket(port: int, port_file: Path) -> Iterator[socket.socket]:
    """A bound socket on loopback. The port is kept for the next start, since kubeconfig files name it."""
    before = 0
    if port == 0 and port_file.exists():
        before = int(json.loads(port_file.read_text("utf-8"))["port"])
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port or before))
        except OSError as error:
            if port:
                raise UserError(
                    f"port {port} on {HOST} is taken ({error.strerror}); give another --port, or 0"
                ) from error
            listener.bind((HOST, 0))
        write_atomically(port_file, {"port": listener.getsockname()[1]})
        yield listener


def _token(path: Path) -> str:
    """The same token at every start with this state directory."""
    if not path.exists():
        write_atomically(path, {"token": secrets.token_urlsafe(32)})
    return str(json.loads(path.read_text("utf-8"))["token"])


def _write_kubeconfig(path: Path, url: str, token: str) -> None:
    name = "local-pods"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    write_atomically(path, yaml.safe_dump(content, sort_keys=False))
