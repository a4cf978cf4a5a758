"""The services start as they do in their containers: another user, a root that cannot be written, a small /tmp."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lean_worker.engines.embedded.layout import default_root
from services.queue.server import EmbeddedServer
from tests.operations.dockerfiles import ROOT
from tests.operations.stack import answers, free_port, wait_until

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="apt-get install bubblewrap")


@contextmanager
def contained(folder: Path, command: str, variables: dict[str, str], *binds: str) -> Iterator[Path]:
    """Run `lean-reward COMMAND` in it; yields its log."""
    box = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    # The checkout, its interpreter and Lean may lie in this machine's own /tmp.
    for needed in (ROOT, Path(sys.prefix), default_root()):
        if needed.exists():
            box += ["--ro-bind", str(needed), str(needed)]
    box += ["--unshare-user", "--unshare-pid", "--uid", "10001", "--gid", "10001", "--die-with-parent", *binds]
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **variables}
    log = folder / f"{command}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*box, sys.executable, "-m", "services.runtime.cli", command],
            env=environment,
            cwd=ROOT,
            stdout=file,
            stderr=file,
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def queue() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


def shared(queue: EmbeddedServer) -> list[str]:
    """The queue's socket lies in /tmp, which is the container's own: let it in."""
    socket = queue.url.rpartition("@")[2]
    return ["--bind", str(Path(socket).parent), str(Path(socket).parent)]


def test_the_gateway_writes_nothing(queue: EmbeddedServer, tmp_path: Path) -> None:
    port = free_port()
    variables = {"LEAN_REWARD_QUEUE_URL": queue.url, "LEAN_REWARD_GATEWAY_PORT": str(port)}
    with contained(tmp_path, "gateway", variables, *shared(queue)) as log:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/healthz"), 30, f"alive, log {log}")


@pytest.mark.lean
def test_the_embedded_worker_writes_nothing_but_snapshots(queue: EmbeddedServer, tmp_path: Path) -> None:
    port, home, snapshots = free_port(), default_root(), tmp_path / "snapshots"
    snapshots.mkdir()
    variables = {
        "LEAN_REWARD_QUEUE_URL": queue.url,
        "LEAN_REWARD_WORKER_PORT": str(port),
        "LEAN_REWARD_WORKER_COUNT": "1",
        "LEAN_REWARD_LEAN_HOME": str(home),
    }
    binds = [*shared(queue), "--bind", str(snapshots), str(home / "snapshots")]
    with contained(tmp_path, "lean-worker", variables, *binds) as log:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/readyz"), 120, f"ready, log {log}")
    assert list(snapshots.glob("*.img"))


def test_the_evaluator_writes_nothing(tmp_path: Path) -> None:
    port = free_port()
    with contained(tmp_path, "evaluator", {"LEAN_REWARD_EVALUATOR_PORT": str(port)}) as log:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/readyz"), 60, f"ready, log {log}")
