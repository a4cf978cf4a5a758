"""What single-sample calls cost beside one batch call of the same candidates, over HTTP, with the real Lean.

    lean-reward up --port 0 -- python -m bench.compat [--count 1024] [--rounds 2] [--file examples/proofs.jsonl]

All calls of a round start at once, as a trainer's workers would send them to `/compat/slime`; the batch is one
`POST /v1/proofs/score`. The two take turns, and every turn has programs of its own, so that no cache answers. The
target is a ratio of at most 1.3. The server must answer within `compat.limit_s`: undecided samples are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import httpx

from bench.candidates import Candidate, read_candidates

_LEFT_OUT = ("lean_timeout", "heartbeats", "resource_exhausted")  # they measure limits, not throughput
_WORKERS = 16  # as many processes of a trainer; one pool of a thousand connections would measure the pool


def _response(candidate: Candidate, turn: int) -> str:
    return f"```lean\n{candidate.code}\n-- round {turn}\n```"


async def _singles(clients: list[httpx.AsyncClient], candidates: list[Candidate], turn: int) -> list[float | None]:
    async def one(index: int, candidate: Candidate) -> float | None:
        client = clients[index % len(clients)]
        label = {"statement": candidate.statement, "header": candidate.header}
        sent = {"prompt": "", "response": _response(candidate, turn), "label": label}
        answer = await client.post("/compat/slime", json=sent)
        answer.raise_for_status()
        said: dict[str, Any] = answer.json()
        return float(said["score"]) if said["status"] == "decided" else None

    return list(await asyncio.gather(*(one(i, c) for i, c in enumerate(candidates))))


async def _batch(clients: list[httpx.AsyncClient], candidates: list[Candidate], turn: int) -> list[float | None]:
    rows = [
        {"id": str(i), "response": _response(c, turn), "statement": c.statement, "header": c.header}
        for i, c in enumerate(candidates)
    ]
    answer = await clients[0].post("/v1/proofs/score", json={"candidates": rows, "cutoff": {"deadline_s": 90}})
    answer.raise_for_status()
    return [result["reward"] for result in answer.json()["results"]]


async def measure(url: str, candidates: list[Candidate], rounds: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {"singles": [], "batch": []}
    different = undecided = 0
    share = -(-len(candidates) // _WORKERS)
    limits = httpx.Limits(max_connections=share, max_keepalive_connections=share)
    async with contextlib.AsyncExitStack() as stack:
        clients = [httpx.AsyncClient(base_url=url, timeout=120, limits=limits, verify=False) for _ in range(_WORKERS)]
        for client in clients:
            await stack.enter_async_context(client)
        await _batch(clients, candidates[:64], -1)  # every engine has run
        for turn in range(rounds):
            answers = {}
            order = [("batch", _batch), ("singles", _singles)]
            for name, run in order if turn % 2 == 0 else reversed(order):
                start = time.perf_counter()
                answers[name] = await run(clients, candidates, 2 * turn + (name == "batch"))
                times[name].append(time.perf_counter() - start)
            pairs = list(zip(answers["batch"], answers["singles"], strict=True))
            undecided += sum(None in pair for pair in pairs)
            different += sum(a != b for a, b in pairs if a is not None and b is not None)
    ratios = [single / batch for single, batch in zip(times["singles"], times["batch"], strict=True)]
    return {
        "samples": len(candidates),
        "batch_s": [round(s, 2) for s in times["batch"]],
        "singles_s": [round(s, 2) for s in times["singles"]],
        "ratio": round(statistics.median(ratios), 3),
        "different_rewards": different,
        "undecided": undecided,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_024)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--file", type=Path, default=Path("examples/proofs.jsonl"))
    parser.add_argument("--url", default=os.environ.get("LEAN_REWARD_CLIENT_URL", "http://127.0.0.1:8000"))
    given = parser.parse_args()
    candidates = read_candidates(given.file, given.count, _LEFT_OUT)
    print(json.dumps(asyncio.run(measure(given.url, candidates, given.rounds))))


if __name__ == "__main__":
    main()
