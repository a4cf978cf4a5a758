"""Mutated groups never bring the gateway down: an answer, or a problem document that is no 500."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from tests.reward_gateway.place import Place
from tests.reward_gateway.trajectories.rollouts import betas, group, rollout, segments, workflow

URL = "/v1/trajectories/score"
JUNK: list[Any] = [
    None, True, 0, -1, 10**30, 1e308, "", "x", "\ud800", "\x00", [], {}, [[]], [None], {"a": []}, "plan", "a" * 5_000,
    [{}] * 3,
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path to a value inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, inner in items for found in places(inner, (*path, key)))]


def mutated(body: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    made = copy.deepcopy(body)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice([p for p in places(made) if p])
        holder: Any = made
        for key in path[:-1]:
            holder = holder[key]
        kind = rng.random()
        if kind < 0.6:
            holder[path[-1]] = copy.deepcopy(rng.choice(JUNK))
        elif kind < 0.8:
            del holder[path[-1]]
        elif isinstance(holder, dict):
            holder["unknown"] = 1
        else:
            holder.append(copy.deepcopy(holder[path[-1]]))
    return made


async def test_mutated_groups_are_answered_or_refused(place: Place) -> None:
    rng = random.Random(4)
    bodies = [
        group(
            rollout(
                workflow=workflow(),
                segments=segments((0, 0), (1, 0), (2, 0)),
                stage_rewards=betas((0, 0, 1), (1, 0, -1)),
            ),
            rollout("r2", -1),
        ),
        group(
            rollout(replica_segments=[segments((0, 0), (1, 0), (2, 0))] * 3),
            rollout("r2", None, trajectory={"messages": [{"role": "assistant", "content": "hm"}]}, format="chat"),
            segmentation="per_replica",
        ),
    ]
    served = await place.gateway()
    statuses: dict[int, int] = {}
    for _ in range(400):
        body = mutated(rng.choice(bodies), rng)
        response = await served.client.post(URL, content=json.dumps(body), headers={"content-type": "application/json"})
        statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
        assert response.status_code in (200, 400, 413, 422), (response.text, json.dumps(body)[:2_000])
        if response.status_code != 200:
            assert response.headers["content-type"] == "application/problem+json"
            assert response.json()["detail"]
    assert statuses[200] > 20
    assert statuses[422] > 100
    assert served.gateway.budget.held == 0
