"""The platform as a user runs it, against its own engines driven directly: rates, starts, stops, memory, fairness.

    python -m bench.end_to_end --count 1024 --rounds 2

In each round the same candidates run once on two engines driven directly (`bench.engine_direct`) and once over HTTP
through a fresh `lean-reward up` with two engines, so that the ratio holds when the machine's speed drifts. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil

from bench.candidates import Candidate, read_candidates
from bench.engine_direct import drive

_READY = re.compile(r"is ready at (http://\S+) after ([0-9.]+) s")
_TIMEOUT_S = 20.0
ENGINES = 2


class Platform:
    """A `lean-reward up` with two engines; a context manager that stops it and notes how long that took."""

    def __enter__(self) -> Platform:
        self._log = tempfile.TemporaryFile("w+")
        begin = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "services.runtime.cli", "up", "--port", "0", "--workers", str(ENGINES)],
            stderr=self._log,
            env={**os.environ, "LEAN_REWARD_LOG_LEVEL": "warning"},
        )
        while (ready := _READY.search(self._text())) is None:
            if self.process.poll() is not None or time.monotonic() - begin > 120:
                raise RuntimeError(f"`lean-reward up` is not ready: {self._text()[-2000:]}")
            time.sleep(0.02)
        self.ready_s = time.monotonic() - begin
        self.url = ready.group(1)
        return self

    def __exit__(self, *_: object) -> None:
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        self.stop_s = time.monotonic() - begin
        self._log.close()

    def _text(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def score(self, candidates: Sequence[Candidate], **options: Any) -> tuple[float, dict[str, Any]]:
        """(seconds, answer) of one batch over HTTP."""
        rows = [
            {"id": c.id, "code": c.code, "header": c.header, **({"statement": c.statement} if c.statement else {})}
            for c in candidates
        ]
        body = {
            "candidates": rows,
            "mode": "lean",
            "lean_timeout_s": _TIMEOUT_S,
            "cutoff": {"deadline_s": 900},
            **options,
        }
        begin = time.monotonic()
        answer = httpx.post(f"{self.url}/v1/proofs/score", json=body, timeout=1000)
        if answer.status_code != 200:
            raise RuntimeError(f"{answer.status_code}: {answer.text[:2000]}\n{self._text()[-4000:]}")
        return time.monotonic() - begin, answer.json()

    def engine_rss_mb(self) -> list[int]:
        """Resident memory of each Lean process, largest first."""
        engines = [child for child in self._children() if _is_engine(child)]
        return sorted((round(engine.memory_info().rss / 1e6) for engine in engines), reverse=True)

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds so far of each of our processes, engines left out."""
        spent: dict[str, float] = {}
        for child in self._children():
            if not _is_engine(child):
                command = child.cmdline()
                name = command[-1] if command[-1] in ("gateway", "lean-worker") else Path(command[0]).name
                times = child.cpu_times()
                spent[name] = spent.get(name, 0.0) + times.user + times.system
        return spent

    def _children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


def _is_engine(process: psutil.Process) -> bool:
    return Path(process.cmdline()[0]).name == "node"


def over_http(candidates: Sequence[Candidate]) -> dict[str, Any]:
    with Platform() as platform:
        before = platform.cpu_s()
        seconds, answer = platform.score(candidates)
        spent = {name: value - before.get(name, 0.0) for name, value in platform.cpu_s().items()}
        rss = platform.engine_rss_mb()
    wrong = {
        result["id"]: f"{result['reason']}, expected {candidate.expected}"
        for candidate, result in zip(candidates, answer["results"], strict=True)
        if candidate.expected not in (None, result["reason"])
    }
    return {
        "wall_s": round(seconds, 2),
        "candidates_per_s": round(len(candidates) / seconds, 2),
        "ready_s": round(platform.ready_s, 2),
        "stop_idle_s": round(platform.stop_s, 2),
        "engine_rss_mb": rss,
        "cpu_ms_per_candidate": {name: round(value / len(candidates) * 1e3, 3) for name, value in spent.items()},
        "wrong": wrong,
    }


def fairness(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """Two equal batches at once, and one candidate of higher priority behind a large batch."""
    half = len(candidates) // 2
    with Platform() as platform, ThreadPoolExecutor(3) as threads:
        both = [threads.submit(platform.score, part) for part in (candidates[:half], candidates[half : 2 * half])]
        times = [future.result()[0] for future in both]
        fresh = [Candidate(c.id, f"{c.code}\n-- again", c.statement, c.header, c.expected) for c in candidates]
        large = threads.submit(platform.score, fresh)
        time.sleep(1.0)
        statement = "theorem urgent (a b : Nat) : a + b = b + a"
        urgent = Candidate("urgent", f"{statement} := by omega", statement, "", "ok")
        urgent_s, _ = platform.score([urgent], priority=10)
        still_running = not large.done()
        large.result()
    return {
        "two_batches_s": [round(seconds, 2) for seconds in times],
        "slower_over_faster": round(max(times) / min(times), 3),
        "urgent_behind_large_s": round(urgent_s, 3),
        "large_was_still_running": still_running,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, default=Path("examples/proofs.jsonl"))
    parser.add_argument("--count", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--without", nargs="*", default=[], metavar="GROUP", help="leave out the file's groups of these names"
    )
    options = parser.parse_args()
    candidates = read_candidates(options.file, options.count, ["lean_timeout"], options.without)
    rounds = []
    for _ in range(options.rounds):
        direct = asyncio.run(drive(candidates, ENGINES, _TIMEOUT_S))
        http = over_http(candidates)
        ratio = http["candidates_per_s"] / float(str(direct["candidates_per_s"]))
        rounds.append({"direct": direct, "http": http, "ratio": round(ratio, 3)})
    summary = {
        "candidates": len(candidates),
        "engines": ENGINES,
        "http_over_direct": median(r["ratio"] for r in rounds),
        "http_candidates_per_s": median(r["http"]["candidates_per_s"] for r in rounds),
        "rounds": rounds,
        "fairness": fairness(candidates),
    }
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
