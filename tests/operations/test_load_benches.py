"""The benches of docs/operations.md run, small: what they measure is for a quiet machine, what they count is not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.operations.dockerfiles import ROOT


def bench(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.stdout, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def test_overload_lets_in_what_fits_and_tells_the_rest_when_to_come() -> None:
    options = [
        "--seconds",
        "5",
        "--engines",
        "4",
        "--check",
        "0.1",
        "--batch",
        "10",
        "--deadline",
        "2",
        "--size",
        "200",
    ]
    status, report = bench("bench.overload", *options, "--trainers", "3", "--load", "4")
    assert set(report["answers"]) == {"200", "429"}, "every request has an answer, and no other"
    assert report["retry_after_s"]["median"] >= 1
    assert report["of_trainers"]["least"] > 0
    assert status == (0 if all(report["met"].values()) else 1)


def test_a_small_fleet_is_idle_and_then_works() -> None:
    options = ["--workers", "20", "--trainers", "3", "--gateways", "1", "--check", "0.1", "--batch", "16"]
    status, report = bench("bench.queue_load", *options, "--seconds", "2", "--settle", "1", "--processes", "1")
    assert status == 0
    assert report["idle"]["checks_per_s"] == 0
    assert report["loaded"]["checks_per_s"] > 0
    assert report["loaded"]["unavailable"] == 0
    assert report["loaded"]["clients"] >= 3 * 20
