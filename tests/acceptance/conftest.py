"""The whole platform as a user starts it: `lean-reward up` as a child process, real HTTP, the embedded Lean."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

_READY = re.compile(r"lean-reward is ready at (http://\S+) after ([0-9.]+) s")


@dataclass
class Platform:
    """A running `lean-reward up`."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def client(self, timeout_s: float = 180.0) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=timeout_s)


def start_platform(log: Path, *arguments: str, **environment: str) -> Platform:
    """Start `lean-reward up` on a free port and wait until it says that it is ready."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.runtime.cli", "up", "--port", "0", *arguments],
            stderr=errors,
            env={**os.environ, "LEAN_REWARD_LOG_FORMAT": "json", **environment},
            text=True,
        )
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        if ready := _READY.search(log.read_text()):
            return Platform(ready.group(1), process, log)
        time.sleep(0.1)
    process.kill()
    raise AssertionError(f"`lean-reward up` did not become ready:\n{log.read_text()[-4000:]}")


def stop_platform(platform: Platform, limit_s: float = 60.0) -> float:
    """Send SIGTERM, wait for a clean end, return the seconds that it took."""
    started = time.monotonic()
    platform.process.send_signal(signal.SIGTERM)
    assert platform.process.wait(timeout=limit_s) == 0, platform.log.read_text()[-4000:]
    return time.monotonic() - started


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    running = start_platform(tmp_path_factory.mktemp("platform") / "up.log", "--workers", "2")
    yield running
    stop_platform(running)
