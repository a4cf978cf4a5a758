"""CPU of everything around Lean, for each candidate: gateway, queue server and worker with engines that answer at once.

    python -m bench.bookkeeping --count 1024 --rounds 5

Prints JSON. The target of the project is at most 1 ms of CPU a candidate for the three together.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from statistics import median

import httpx
import psutil

from bench.processes import free_port, until_ready
from services.queue.server import EmbeddedServer

_STATEMENT = "theorem t (a b c : Nat) (h : a < b) : a + c < b + c"
_PROOF = "  have step := Nat.add_lt_add_right h c\n" * 25  # about 1 KB, as a prover's answer is


def batch(count: int, turn: int) -> dict[str, object]:
    return {
        "mode": "lean",
        "candidates": [
            {
                "id": f"c{number}",
                "group": f"p{number // 8}",
                "statement": _STATEMENT,
                "code": f"{_STATEMENT} := by\n{_PROOF}  exact step -- {turn}.{number}",
            }
            for number in range(count)
        ],
    }


def run(count: int, rounds: int) -> dict[str, object]:
    with EmbeddedServer() as server:
        port = free_port()
        environment = {
            **os.environ,
            "LEAN_REWARD_QUEUE_URL": server.url,
            "LEAN_REWARD_GATEWAY_PORT": str(port),
            "LEAN_REWARD_WORKER_COUNT": "2",
            "LEAN_REWARD_LOG_LEVEL": "warning",
        }
        gateway = subprocess.Popen([sys.executable, "-m", "services.runtime.cli", "gateway"], env=environment)
        worker = subprocess.Popen([sys.executable, "-m", "bench.instant"], env=environment)
        processes = {"gateway": gateway.pid, "worker": worker.pid, "queue": server.pid}
        try:
            url = f"http://127.0.0.1:{port}"
            until_ready(url)
            with httpx.Client(base_url=url, timeout=120) as client:
                results = [_measure(client, processes, batch(count, turn)) for turn in range(rounds + 1)][1:]
        finally:
            for process in (gateway, worker):
                process.terminate()
                process.wait()
    return {
        "candidates": count,
        "rounds": rounds,
        "cpu_ms_per_candidate": {
            name: round(median(cpu[name] for cpu, _ in results) / count * 1e3, 3) for name in processes
        },
        "total_ms_per_candidate": round(median(sum(cpu.values()) for cpu, _ in results) / count * 1e3, 3),
        "batch_s": round(median(seconds for _, seconds in results), 3),
    }


def _measure(
    client: httpx.Client, processes: dict[str, int], body: dict[str, object]
) -> tuple[dict[str, float], float]:
    content = json.dumps(body).encode()
    before = {name: _cpu_s(pid) for name, pid in processes.items()}
    begin = time.monotonic()
    answer = client.post("/v1/proofs/score", content=content, headers={"Content-Type": "application/json"})
    seconds = time.monotonic() - begin
    if answer.status_code != 200 or answer.json()["stats"]["lean_share"] != 1.0:
        raise RuntimeError(f"{answer.status_code}: {answer.text[:500]}")
    return {name: _cpu_s(pid) - before[name] for name, pid in processes.items()}, seconds


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(run(options.count, options.rounds), indent=2))


if __name__ == "__main__":
    main()
