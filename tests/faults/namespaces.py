"""Two network namespaces of our own with a cable between them, where the machine lets us make them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

NEAR, FAR = "10.203.77.1", "10.203.77.2"


class NotAllowed(Exception):
    """This process may not make network namespaces."""


@dataclass(frozen=True)
class Cable:
    """Namespaces `near` and `far`, whose addresses are NEAR and FAR."""

    near: str
    far: str

    def cut(self) -> None:
        """Packets are dropped: nobody is told."""
        _ip("-n", self.far, "link", "set", "far", "down")

    def mend(self) -> None:
        _ip("-n", self.far, "link", "set", "far", "up")

    def read(self, url: str) -> str:
        """What an HTTP server in `far` answers."""
        program = f"import urllib.request as u; print(u.urlopen({url!r}, timeout=5).read().decode())"
        return subprocess.run(
            [*inside(self.far), sys.executable, "-c", program], check=True, capture_output=True, text=True
        ).stdout


def inside(namespace: str) -> list[str]:
    """The words before a command that is to run in a namespace."""
    return ["ip", "netns", "exec", namespace]


@contextlib.contextmanager
def cable() -> Iterator[Cable]:
    """Raises `NotAllowed`."""
    made = Cable(f"lrn{os.getpid()}", f"lrf{os.getpid()}")
    try:
        try:
            for namespace in (made.near, made.far):
                _ip("netns", "add", namespace)
                _ip("-n", namespace, "link", "set", "lo", "up")
            _ip("-n", made.near, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", made.far)
            for namespace, name, address in ((made.near, "near", NEAR), (made.far, "far", FAR)):
                _ip("-n", namespace, "address", "add", f"{address}/24", "dev", name)
                _ip("-n", namespace, "link", "set", name, "up")
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotAllowed(str(error)) from error
        yield made
    finally:
        for namespace in (made.near, made.far):
            with contextlib.suppress(OSError, subprocess.CalledProcessError):
                _ip("netns", "delete", namespace)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
