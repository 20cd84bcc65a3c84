"""A chat endpoint in this process, on a port of its own: it answers by a script and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CUT = "cut"
Answer = tuple[int, dict[str, str], object] | str
"""(status, headers, body as JSON or text), or CUT: the connection ends in the middle of the body."""


def reply(text: str | None, **fields: Any) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "r1", "model": "judge-2026", "system_fingerprint": "fp_1", "choices": [choice]}
    return 200, {}, {**body, "usage": {"prompt_tokens": 11, "completion_tokens": 3}, **fields}


@dataclass
class FakeEndpoint:
    """`script(body, number of the request with this body, from 0)` gives the answer; `asked` are all bodies."""

    script: Callable[[dict[str, Any], int], Answer]
    key: str = ""
    base_url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, path: str, authorization: str, body: dict[str, Any]) -> Answer:
        with self._lock:
            number = self.asked.count(body)
            self.asked.append(body)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if path != "/v1/chat/completions":
                return 404, {}, {"error": f"no {path}"}
            if self.key and authorization != f"Bearer {self.key}":
                return 401, {}, {"error": {"message": f"Incorrect API key provided: {authorization}"}}
            return self.script(body, number)
        finally:
            with self._lock:
                self._at_once -= 1


@contextmanager
def serving(script: Callable[[dict[str, Any], int], Answer], key: str = "") -> Iterator[FakeEndpoint]:
    """The endpoint, answering until the block ends."""
    fake = FakeEndpoint(script, key)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answer = fake.take(self.path, self.headers.get("authorization", ""), body)
            if isinstance(answer, str):
                self._cut()
                return
            status, headers, content = answer
            data = (content if isinstance(content, str) else json.dumps(content)).encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def _cut(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    fake.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
