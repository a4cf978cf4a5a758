"""A relay in front of a TCP server whose line can be cut, silenced and mended, for machines without privileges."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from types import TracebackType

from tests.faults.services_under_fault import HOST


class Relay:
    """Listens on `port` and passes everything on to `target_port`, as a context.

    `cut` resets every connection and refuses new ones; `silence` keeps them and lets nothing through, as a network that
    drops packets does; `mend` ends both.
    """

    def __init__(self, target_port: int) -> None:
        self._target = (HOST, target_port)
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        self._passing = threading.Event()
        self._passing.set()
        self._refusing = False
        self._open: set[socket.socket] = set()

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()
        self._passing.set()

    def cut(self) -> None:
        self._refusing = True
        for end in list(self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def silence(self) -> None:
        self._passing.clear()

    def mend(self) -> None:
        self._refusing = False
        self._passing.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed: the end of the context
            while True:
                near, _ = self._listener.accept()
                if self._refusing:
                    near.close()
                    continue
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        self._passing.wait()
        with near, contextlib.suppress(OSError), socket.create_connection(self._target) as far:
            self._open |= {near, far}
            try:
                self._pass_on(near, far)
            finally:
                self._open -= {near, far}

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        while True:
            readable, _, _ = select.select([near, far], [], [], 0.5)
            self._passing.wait()
            for end in readable:
                data = end.recv(65536)
                if not data:
                    return
                (far if end is near else near).sendall(data)
