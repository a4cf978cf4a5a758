"""Two servers that speak Kimina's HTTP contract, side by side on the same candidates.

    python -m bench.versus --ours http://127.0.0.1:8000 --theirs http://127.0.0.1:9000 \\
        --count 512 --concurrency 1 8 64 --headers warm cold --rounds 3

Every call is `POST /verify` with one program, `--concurrency` of them at once; the servers take turns, `ours` first in
one round and `theirs` in the next, and no program is ever sent twice to one server. `warm`: all programs have one
header; `cold`: every program has an import of its own, which only the null Lean (`bench.null_lean`) has. Of each pair
of answers the verdicts must agree: an error among Lean's messages, or none. Prints JSON with the paired ratio of the
rates (over 1: ours is faster), the servers' own rates, and their times; `docs/benchmarks.md` says how to start a peer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

from bench.loads import program
from bench.machine import describe

_ERRORS_EVERY = 4  # of so many programs one asks the null Lean for an error


@dataclass(frozen=True, slots=True)
class Turn:
    """One server's answers to one round."""

    per_s: float
    times_s: list[float]
    verdicts: list[bool | None]  # None: no answer of Lean's


def programs(count: int, headers: str) -> list[str]:
    made = []
    for number in range(count):
        own = f"import Cold{os.getpid()}x{number}\n" if headers == "cold" else ""
        wanted = " null: error" if number % _ERRORS_EVERY == 0 else ""
        made.append(f"import Mathlib\n{own}\n{program(number)}{wanted}")
    return made


async def turn(url: str, key: str | None, codes: list[str], concurrency: int) -> Turn:
    """Raises `httpx.HTTPError` when a call is not answered with 200."""
    limit = asyncio.Semaphore(concurrency)
    times_s, verdicts = [0.0] * len(codes), list[bool | None]()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    connections = httpx.Limits(max_connections=concurrency)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=connections, headers=headers) as client:

        async def one(number: int) -> bool | None:
            body = {"codes": [{"custom_id": str(number), "proof": codes[number]}], "timeout": 60}
            async with limit:
                begin = time.perf_counter()
                answer = await client.post("/verify", json=body)
                times_s[number] = time.perf_counter() - begin
            answer.raise_for_status()
            return _verdict(answer.json()["results"][0])

        begin = time.perf_counter()
        verdicts = list(await asyncio.gather(*(one(number) for number in range(len(codes)))))
        return Turn(len(codes) / (time.perf_counter() - begin), times_s, verdicts)


def _verdict(result: dict[str, Any]) -> bool | None:
    if result.get("error") or not result.get("response"):
        return None
    return all(message["severity"] != "error" for message in result["response"].get("messages") or ())


async def compare(options: argparse.Namespace, headers: str, concurrency: int) -> dict[str, Any]:
    """Paired rounds of one setting; the first is not counted."""
    sides: dict[str, list[Turn]] = {"ours": [], "theirs": []}
    for number in range(options.rounds + 1):
        codes = programs(options.count, headers)
        for side in ("ours", "theirs") if number % 2 == 0 else ("theirs", "ours"):
            url, key = getattr(options, side), getattr(options, f"{side}_key")
            sides[side].append(await turn(url, key, codes, concurrency))
    pairs = list(zip(sides["ours"][1:], sides["theirs"][1:], strict=True))
    apart = [
        number
        for ours, theirs in pairs
        for number, (one, other) in enumerate(zip(ours.verdicts, theirs.verdicts, strict=True))
        if one != other or one is None
    ]
    ratios = [ours.per_s / theirs.per_s for ours, theirs in pairs]
    return {
        "headers": headers,
        "concurrency": concurrency,
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "different_verdicts": len(apart),
        **{side: _summary(turns[1:]) for side, turns in sides.items()},
    }


def _summary(turns: list[Turn]) -> dict[str, Any]:
    times_s = [seconds for one in turns for seconds in one.times_s]
    return {
        "per_s": round(statistics.median(one.per_s for one in turns), 1),
        "times_s": {f"p{p}": round(float(np.percentile(times_s, p)), 4) for p in (50, 95, 99)},
        "undecided": sum(verdict is None for one in turns for verdict in one.verdicts),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, metavar="URL")
    parser.add_argument("--theirs", required=True, metavar="URL")
    parser.add_argument("--ours-key")
    parser.add_argument("--theirs-key")
    parser.add_argument("--count", type=int, default=512, help="programs a round")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--headers", nargs="+", choices=("warm", "cold"), default=["warm", "cold"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    machine = describe()
    rows = [
        asyncio.run(compare(options, headers, concurrency))
        for headers in options.headers
        for concurrency in options.concurrency
    ]
    print(json.dumps({"machine": machine, "count": options.count, "rounds": options.rounds, "runs": rows}, indent=2))


if __name__ == "__main__":
    main()
