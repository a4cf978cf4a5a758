"""Disks that fill up under load: refused with the right word, nothing lost, and well again when there is room."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from lean_worker.engines.embedded.layout import Installation
from tests.faults.lean_home import copied
from tests.faults.services_under_fault import WHOLE_SUITE, Platform, until
from tests.faults.traffic import Traffic, cheap

pytestmark = WHOLE_SUITE
Recovered = Callable[[float], None]


@contextlib.contextmanager
def small_disk(folder: Path, size_mb: int) -> Iterator[Path]:
    """A file system of its own at `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("this process may not mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all the room that is left; answers the file that holds it."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filler


def refused(platform: Platform) -> bool:
    """Whether one more candidate is refused because the queue does not write."""
    body = {"candidates": [cheap().wire()], "cutoff": {"deadline_s": 2}}  # one that is let in still is not checked
    answer = httpx.post(f"{platform.url}/v1/proofs/score", json=body, timeout=30)
    if answer.status_code == 200:
        return False
    assert (answer.status_code, answer.json()["code"]) == (503, "queue_unavailable")
    assert "retry-after" in answer.headers
    return True


def test_the_disk_of_redis_is_full(tmp_path: Path, recovered: Recovered) -> None:
    with small_disk(tmp_path / "redis", 16) as disk:
        platform = Platform(tmp_path)
        gateway = platform.gateway[0]
        try:
            platform.start()
            with Traffic(platform.url) as traffic:
                traffic.flows(1)
                platform.a_busy_worker()
                filler = fill(disk)
                # The trainers may be waiting for batches that were let in before, so we ask ourselves.
                until(lambda: refused(platform), "it refuses")
                assert gateway.count("lean_reward_problems_total", code="queue_unavailable") > 0
                time.sleep(2)
                filler.unlink()
                recovered(traffic.flows())
            traffic.ask_again()
            traffic.ledger.verify()
            platform.wait_ready()
        finally:
            platform.stop()


def test_no_room_for_the_snapshots_of_lean(tmp_path: Path, installation: Installation) -> None:
    home = copied(installation, tmp_path / "home")
    with small_disk(home.snapshots, 64) as disk:
        platform = Platform(tmp_path, workers=1, variables={"LEAN_REWARD_LEAN_HOME": str(home.root)})
        gateway, worker = platform.gateway[0], platform.worker[0]
        try:
            platform.start_redis()
            gateway.start()
            worker.start()
            until(lambda: worker.said("engine_unavailable"), f"the engine does not start, log {worker.log}")
            assert worker.said("ENOSPC")
            assert worker.count("lean_reward_engine_warm_ups_total", result="failed") >= 1
            assert not worker.ready()
            answer = httpx.post(f"{platform.url}/v1/proofs/score", json={"candidates": [cheap().wire()]}, timeout=30)
            assert (answer.status_code, answer.json()["code"]) == (503, "lean_unavailable")
            subprocess.run(["mount", "-o", "remount,size=512m", str(disk)], check=True)
            until(worker.ready, "it starts by itself when there is room")
            with Traffic(platform.url, trainers=1) as traffic:
                traffic.flows(1)
            traffic.ledger.verify()
        finally:
            platform.stop()
