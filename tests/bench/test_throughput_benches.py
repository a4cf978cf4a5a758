"""The load benches run, count what they say they count, and find equal servers equal in their verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from bench.cost_curves import exponent
from bench.processes import running

pytestmark = pytest.mark.slow


def bench(*words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def test_throughput_of_every_kind_over_the_null_lean() -> None:
    kinds = ["lean", "hybrid", "evaluator", "trajectories", "singles"]
    found = bench("bench.throughput", "--lean", "null", "--what", *kinds, "--count", "32", "--rounds", "1")
    assert [row["what"] for row in found["runs"]] == kinds
    for row in found["runs"]:
        assert row["per_s"] > 0
        assert set(row["cpu_ms_each"]) == {"queue", "evaluator", "gateway", "workers", "all"}
    assert found["machine"]["cores"] >= 1


def test_two_servers_side_by_side_agree_on_every_verdict() -> None:
    with running("null", workers=1) as platform:
        words = ("--ours", platform.url, "--theirs", platform.url, "--count", "12", "--rounds", "1")
        found = bench("bench.versus", *words, "--concurrency", "4")
    assert [(row["headers"], row["different_verdicts"]) for row in found["runs"]] == [("warm", 0), ("cold", 0)]
    assert all(row[side]["undecided"] == 0 for row in found["runs"] for side in ("ours", "theirs"))


def test_the_exponent_of_a_power_is_found() -> None:
    sizes = [64.0, 256.0, 1024.0]
    assert exponent(sizes, [3 * size**1.5 for size in sizes]) == 1.5
