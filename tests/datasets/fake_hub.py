"""A hub on loopback that speaks what `huggingface_hub` asks for a data set: its tree, and its files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest


@dataclass
class FakeHub:
    """`files` of (repository, revision), by path. `token` opens gated ones; `busy` answers 429 to everything."""

    files: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    token: str = "hf_right"
    busy: bool = False
    broken: bool = False
    asked: list[str] = field(default_factory=list)
    url: str = ""


def answer(hub: FakeHub, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
    """(status, headers, body) of one request."""
    hub.asked.append(path)
    if hub.busy:
        return 429, {"Retry-After": "3600"}, b"{}"
    if hub.broken:
        return 500, {}, b"{}"
    parts = unquote(urlsplit(path).path).strip("/").split("/")
    parts = parts[1:] if parts[0] == "api" else parts
    repository, revision, name = "/".join(parts[1:3]), parts[4], "/".join(parts[5:])
    if not any(known == repository for known, _ in hub.files):
        return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
    if repository in hub.gated and authorization != f"Bearer {hub.token}":
        return (403 if authorization else 401), {"X-Error-Code": "GatedRepo"}, b"{}"
    if (repository, revision) not in hub.files:
        return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
    files = hub.files[repository, revision]
    if parts[3] == "tree":
        tree = [{"type": "file", "path": p, "size": len(b), "oid": sha1(b).hexdigest()} for p, b in files.items()]
        return 200, {"Content-Type": "application/json"}, json.dumps(tree).encode()
    if name not in files:
        return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"
    body = files[name]
    return 200, {"ETag": f'"{sha1(body).hexdigest()}"', "X-Repo-Commit": revision}, body


@contextmanager
def reached(hub: FakeHub, patch: pytest.MonkeyPatch, cache: Path) -> Iterator[FakeHub]:
    """The running hub as the one that the client asks, with a cache of its own, no token and no waiting."""
    from huggingface_hub import constants

    patch.setenv("HF_OFFLINE", "0")
    patch.delenv("HF_TOKEN", raising=False)
    patch.setattr(constants, "HF_HUB_CACHE", str(cache))
    patch.setattr(constants, "HF_TOKEN_PATH", str(cache / "no-token"))
    patch.setattr(constants, "HF_HUB_OFFLINE", False)
    patch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    with serving(hub):
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.url)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr(constants, "ENDPOINT", hub.url)
        yield hub


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """The hub on a free port, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            status, headers, body = answer(hub, self.path, self.headers.get("authorization", ""))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
