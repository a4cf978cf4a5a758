"""What every contract test shares: the live server, proofs with known verdicts, and a proxy that makes trouble."""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

URL = os.environ["LEAN_REWARD_CLIENT_URL"]
"""The gateway that `lean-reward up` started around these tests."""

STATEMENT = "theorem t (a b : Nat) : a + b = b + a"
RIGHT = f"Here it is.\n```lean\n{STATEMENT} := by omega\n```"
WRONG = f"Here it is.\n```lean\n{STATEMENT} := by rfl\n```"
CHEAT = f"Here it is.\n```lean\n{STATEMENT} := sorryAx _ true\n```"
RESPONSES = (RIGHT, WRONG, CHEAT)
REWARDS = (1.0, 0.0, 0.0)


class Trouble:
    """A proxy in front of the live server that can refuse, delay and overload. `url` stays the same over restarts."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.overloads = 0
        self.failures = 0
        self.seen = 0
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        trouble = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                trouble._pass_on(self)

            do_GET = do_POST

            def log_message(self, *_: object) -> None: ...

        class Server(ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True
            block_on_close = False
            request_queue_size = 128

            def handle_error(self, *_: object) -> None: ...  # clients that go away in the middle are the point

        self._server = Server(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @contextmanager
    def down_for(self, seconds: float) -> Iterator[None]:
        """Nobody listens for so long; the block runs meanwhile."""
        self.stop()
        timer = threading.Timer(seconds, self.start)
        timer.start()
        try:
            yield
        finally:
            timer.join()

    def _pass_on(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
        self.seen += 1
        if self.overloads > 0:
            self.overloads -= 1
            self._answer(handler, 429, b'{"detail":"too much"}', {"Retry-After": "1"})
            return
        if self.failures > 0:
            self.failures -= 1
            self._answer(handler, 503, b'{"detail":"down"}', {})
            return
        time.sleep(self.delay_s)
        target = urlsplit(URL)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=120)
        kept = {k: v for k, v in handler.headers.items() if k.lower() in ("content-type", "authorization")}
        connection.request(handler.command, handler.path, body, kept)
        answer = connection.getresponse()
        kept = {"Content-Type": answer.getheader("Content-Type", "")}
        self._answer(handler, answer.status, answer.read(), kept)

    @staticmethod
    def _answer(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        handler.send_response(status)
        for name, value in (
            {"Content-Type": "application/json"} | headers | {"Content-Length": str(len(body))}
        ).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)
