"""Real receivers on loopback: a webhook that can be told to fail or to hang, and an SMTP server."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


class Webhook:
    """An HTTP server. `status`: what it answers; `hang_seconds`: how long it waits before it does."""

    def __init__(self, port: int = 0) -> None:
        self.received: list[dict[str, Any]] = []
        self.n_requests = 0
        self.status = 200
        self.hang_seconds = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.n_requests += 1
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                time.sleep(outer.hang_seconds)
                if outer.status == 200:
                    outer.received.append(payload)
                self.send_response(outer.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """As Apprise wants it."""
        return f"json://127.0.0.1:{self.port}/hook"

    @property
    def titles(self) -> list[str]:
        return [payload["title"] for payload in self.received]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Webhook:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class MailServer:
    """As much of SMTP as a mail client speaks to send."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self._say("220 mail.example ready")
                while line := self.rfile.readline().decode().strip():
                    verb = line[:4].upper()
                    if verb == "DATA":
                        self._say("354 go on")
                        outer.mails.append(message_from_bytes(self._data(), policy=policy.default))
                        self._say("250 taken")
                    elif verb == "QUIT":
                        self._say("221 bye")
                        return
                    else:
                        self._say("250 ok")

            def _data(self) -> bytes:
                lines = []
                while (line := self.rfile.readline()) != b".\r\n":
                    lines.append(line[1:] if line.startswith(b"..") else line)
                return b"".join(lines)

            def _say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """As Apprise wants it: unencrypted, from a sender to one reader."""
        return (
            f"mailto://127.0.0.1:{self.port}?smtp=127.0.0.1&mode=insecure&from=eval@example.org&to=oncall@example.org"
        )

    def __enter__(self) -> MailServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
