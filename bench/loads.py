"""What a trainer sends, as measured loads: one coroutine a kind, which sends `count` things and returns their times."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from bench.trajectories import body as group_body

STATEMENT = "theorem t (a b c : Nat) (h : a < b) : a + c < b + c"
_LINE = "  have step := Nat.add_lt_add_right h c\n"
_PROGRAM_BYTES = 1_024  # about what a prover's answer has
_ROLLOUTS, _STEPS = 32, 50

_turns = itertools.count()
Load = Callable[[httpx.AsyncClient, int], Awaitable[list[float]]]


def program(number: int, size: int = _PROGRAM_BYTES) -> str:
    """A program of about `size` bytes that no other call of this process made."""
    head, tail = f"{STATEMENT} := by\n", f"  exact step -- {next(_turns)}.{number}"
    return head + _LINE * max(1, (size - len(head) - len(tail)) // len(_LINE)) + tail


def proofs(count: int, *, mode: str = "lean", size: int = _PROGRAM_BYTES) -> bytes:
    """The body of one batch of `count` candidates."""
    candidates = [
        {"id": f"c{n}", "group": f"p{n // 8}", "statement": STATEMENT, "code": program(n, size)} for n in range(count)
    ]
    return json.dumps({"mode": mode, "candidates": candidates, "cutoff": {"policy": "all"}}).encode()


async def post(client: httpx.AsyncClient, path: str, content: bytes | str) -> tuple[float, Any]:
    """Seconds until the whole answer was there, and the answer. Raises when it is none."""
    begin = time.perf_counter()
    answer = await client.post(path, content=content, headers={"Content-Type": "application/json"})
    seconds = time.perf_counter() - begin
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code}: {answer.text[:300]}")
    return seconds, answer.json()


def batches(mode: str, *, size: int = _PROGRAM_BYTES, concurrency: int = 1) -> Load:
    """`concurrency` batches at once that together have `count` candidates; the times are those of the batches."""

    async def load(client: httpx.AsyncClient, count: int) -> list[float]:
        parts = [count // concurrency + (n < count % concurrency) for n in range(concurrency)]
        bodies = [proofs(part, mode=mode, size=size) for part in parts if part]
        answers = await asyncio.gather(*(post(client, "/v1/proofs/score", body) for body in bodies))
        for _, answer in answers:
            undecided = sum(result["verdict"] == "unknown" for result in answer["results"])
            if undecided:
                raise RuntimeError(f"{undecided} candidates were not decided")
        return [seconds for seconds, _ in answers]

    return load


async def singles(client: httpx.AsyncClient, count: int) -> list[float]:
    """Calls of one sample each, 256 at a time; the times are those of the calls."""
    limit = asyncio.Semaphore(256)

    async def one(number: int) -> float:
        sample = {"prompt": "", "response": f"```lean\n{program(number)}\n```", "label": {"statement": STATEMENT}}
        content = json.dumps(sample)
        async with limit:
            seconds, _ = await post(client, "/compat/slime", content)
        return seconds

    return list(await asyncio.gather(*(one(number) for number in range(count))))


async def trajectories(client: httpx.AsyncClient, count: int) -> list[float]:
    """Groups of 32 rollouts of 50 steps, one after the other, with `count` rollouts in all; no judge."""
    content = group_body(_ROLLOUTS, _STEPS)
    return [(await post(client, "/v1/trajectories/score", content))[0] for _ in range(max(1, count // _ROLLOUTS))]


LOADS: dict[str, Load] = {
    "lean": batches("lean"),
    "hybrid": batches("hybrid"),
    "evaluator": batches("evaluator"),
    "trajectories": trajectories,
    "singles": singles,
}
