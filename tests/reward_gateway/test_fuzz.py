"""Mutated requests: the answer is results or a problem that blames the request, never a 500 and never a hang."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from tests.reward_gateway.place import Place, theorem

_ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, 10**400, "", "x", "\x00", "\ud800", "a" * 70_000, [], [[]], {}, {"a": {}},
    "valid", "lean", "hybrid", [None], ["messages", "messages"], {"policy": "all"}, {"deadline_s": 1e-9},
]  # fmt: skip
_FIELDS = [
    "candidates", "mode", "cutoff", "lean_timeout_s", "priority", "profile", "prepend_header", "allow", "rewards",
    "include", "batch_id", "unknown", "", "a/b~c\ud800",
]  # fmt: skip
_CANDIDATE_FIELDS = ["id", "group", "code", "response", "statement", "header", "unknown"]


def _mutant(dice: random.Random) -> bytes:
    batch: dict[str, Any] = {
        "candidates": [
            {"id": f"c{i}", "code": theorem(f"t{i}"), "statement": f"theorem t{i} : 1 + 1 = 2"}
            for i in range(dice.randint(0, 3))
        ],
        "cutoff": {"deadline_s": 0.2},
    }
    for _ in range(dice.randint(0, 2)):
        batch[dice.choice(_FIELDS)] = dice.choice(_ODD)
    found = batch["candidates"]
    if isinstance(found, list) and found and isinstance(found[0], dict):
        for _ in range(dice.randint(0, 2)):
            dice.choice([c for c in found if isinstance(c, dict)])[dice.choice(_CANDIDATE_FIELDS)] = dice.choice(_ODD)
    text = json.dumps(batch, ensure_ascii=dice.random() < 0.8)
    body = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(dice.choice([0, 0, 0, 1, 3])):
        at = dice.randrange(len(body))
        body[at : at + dice.randint(0, 3)] = bytes(dice.choices(b'{}[]",:\\x0\xff\x80 u', k=dice.randint(0, 3)))
    return bytes(body)


@pytest.mark.parametrize("path", ["/v1/proofs/score", "/v1/proofs/jobs"])
async def test_no_mutant_brings_the_gateway_down(place: Place, path: str) -> None:
    await place.worker()
    gateway = await place.gateway()
    dice = random.Random(7)
    statuses: dict[int, int] = {}
    for number in range(400):
        body = _mutant(dice)
        answer = await asyncio.wait_for(
            gateway.client.post(path, content=body, headers={"content-type": "application/json"}), 10
        )
        assert answer.status_code in (200, 202, 400, 409, 413, 422), (number, body[:500], answer.text[:500])
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        json.loads(answer.content)
    assert len(statuses) >= 3
    assert sum(statuses.get(status, 0) for status in (200, 202)) > 20
    for batch in list(gateway.gateway.batches.running):
        if batch.task is not None:
            await asyncio.wait_for(asyncio.wait({batch.task}), 5)
    assert gateway.gateway.budget.held == 0
