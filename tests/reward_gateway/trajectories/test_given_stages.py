"""`POST /v1/trajectories/score` where the request brings segments and stage rewards: no judge, real application."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reward_gateway.place import Place, Served
from tests.reward_gateway.trajectories.rollouts import betas, group, rollout, segments, steps, workflow

URL = "/v1/trajectories/score"
STRAIGHT = segments((0, 0), (1, 0), (2, 0))


async def ask(served: Served, body: dict[str, Any]) -> dict[str, Any]:
    response = await served.client.post(URL, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def column(answer: dict[str, Any], name: str, index: int = 0) -> list[Any]:
    return [row[name] for row in answer["rollouts"][index]["steps"]]


async def test_given_segments_and_stage_rewards_become_rows(place: Place) -> None:
    body = group(
        rollout(workflow=workflow(), segments=STRAIGHT, stage_rewards=betas((0, 0, 1), (1, 0, -1), (2, 0, 1))),
        rollout("r2", segments=STRAIGHT, stage_rewards=betas((0, 0, 1), (1, 0, 1), (2, 0, -1))),
    )
    answer = await ask(await place.gateway(), body)
    assert answer["pass_rate"] == 1.0
    assert answer["process_band"] is True
    assert column(answer, "reward") == [1.5, 0.5, 1.5]
    assert column(answer, "reward", 1) == [1.5, 1.5, 0.5]
    assert column(answer, "general_stage") == ["explore", "fix", "verify"]
    assert column(answer, "advantage") == [0.0, -1.0, 1.0]
    assert column(answer, "weight") == pytest.approx([1 / 6] * 3)
    assert answer["rollouts"][0]["flags"] == []
    assert [stage["source"] for stage in answer["rollouts"][0]["stages"]] == ["given"] * 3


async def test_a_penalty_in_the_band_takes_the_step_to_minus_one(place: Place) -> None:
    body = group(
        rollout(
            trajectory=steps("ls", "sleep 5", "pytest"),
            segments=STRAIGHT,
            stage_rewards=betas((0, 0, 1), (1, 0, 1), (2, 0, 1)),
        )
    )
    answer = await ask(await place.gateway(), body)
    assert column(answer, "gamma") == [0, -1, 0]
    assert column(answer, "rules") == [[], [2], []]
    assert column(answer, "reward") == [1.5, -1.0, 1.5]


async def test_outside_the_band_only_the_outcome_counts(place: Place) -> None:
    given = {
        "trajectory": steps("ls", "sleep 5", "pytest"),
        "segments": STRAIGHT,
        "stage_rewards": betas((0, 0, 1), (1, 0, 1), (2, 0, 1)),
    }
    answer = await ask(await place.gateway(), group(rollout(**given), rollout("r2", -1, **given)))
    assert answer["pass_rate"] == 0.5
    assert answer["process_band"] is False
    assert column(answer, "reward") == [1, 1, 1]
    assert column(answer, "gamma") == [0, -1, 0]
    assert column(answer, "reward", 1) == [-1, -1, -1]


async def test_stage_labels_segment_and_planning_steps_get_alpha(place: Place) -> None:
    body = group(
        rollout(
            trajectory=steps("ls", "cat a", "make", "pytest", stages=[None, "explore", "fix", "verify"], plan=1),
            stage_rewards=betas((0, 0, 1), (1, 0, -1)),
        ),
        rollout("r2", -1, trajectory=steps("ls", "cat a", stages=[None, "explore"], plan=1)),
        rollout("r3", -1, trajectory=steps("ls", "cat a", stages=[None, "explore"], plan=1)),
    )
    answer = await ask(await place.gateway(), body)
    first = answer["rollouts"][0]
    assert column(answer, "general_stage") == [None, "explore", "fix", "verify"]
    assert column(answer, "phase") == ["plan", "exec", "exec", "exec"]
    assert column(answer, "beta") == [None, 1, -1, None]
    assert first["flags"] == ["unannotated"]
    assert column(answer, "reward")[0] == 1.0
    assert column(answer, "advantage")[0] == pytest.approx(2**0.5)


async def test_each_revisit_is_its_own_visit_with_its_own_beta(place: Place) -> None:
    body = group(
        rollout(
            trajectory=steps("ls", "make", "pytest", "make", "pytest"),
            workflow=workflow(),
            segments=segments((0, 0), (1, 0), (2, 0), (1, 1), (2, 1)),
            stage_rewards=betas((0, 0, 1), (1, 0, -1), (2, 0, -1), (1, 1, 1), (2, 1, 1)),
        )
    )
    answer = await ask(await place.gateway(), body)
    assert column(answer, "reward") == [1.5, 0.5, 0.5, 1.5, 1.5]
    # The same test again is another visit, so rule 6 does not fire.
    assert column(answer, "gamma") == [0, 0, 0, 0, 0]
    assert answer["rollouts"][0]["illegal_steps"] == []


async def test_illegal_segments_are_used_and_reported(place: Place) -> None:
    jumped = segments((0, 0), (2, 0), (1, 0))
    answer = await ask(await place.gateway(), group(rollout(workflow=workflow(), segments=jumped)))
    assert column(answer, "node") == [0, 2, 1]
    assert answer["rollouts"][0]["illegal_steps"] == [1]
    assert "illegal_segments" in answer["rollouts"][0]["flags"]
    free = await ask(await place.gateway(), group(rollout(segments=jumped)))
    assert free["rollouts"][0]["illegal_steps"] == []


async def test_without_any_stage_the_rollout_falls_back_to_its_outcome(place: Place) -> None:
    idle = steps("ls", "sleep 5", "pytest")
    body = group(*(rollout(f"r{i}", 1 if i else -1, trajectory=idle) for i in range(4)))
    answer = await ask(await place.gateway(), body)
    assert answer["process_band"] is True
    assert answer["rollouts"][1]["flags"] == ["unannotated", "unsegmented"]
    assert column(answer, "reward", 0) == [-1, -1, -1]
    assert column(answer, "reward", 1) == [1, -1, 1]
    winner, loser = 0.5 / 0.75**0.5, -1.5 / 0.75**0.5
    assert column(answer, "advantage", 0) == pytest.approx([loser] * 3)
    assert column(answer, "advantage", 1) == pytest.approx([winner, loser, winner])
    assert column(answer, "weight", 1) == pytest.approx([1 / 12] * 3)


async def test_an_unknown_alpha_has_no_reward_and_stays_out_of_the_pass_rate(place: Place) -> None:
    answer = await ask(await place.gateway(), group(rollout(segments=STRAIGHT), rollout("r2", None)))
    assert answer["pass_rate"] == 1.0
    assert column(answer, "reward", 1) == [None] * 3
    assert "unknown_alpha" in answer["rollouts"][1]["flags"]
    nobody = await ask(await place.gateway(), group(rollout(alpha=None)))
    assert nobody["pass_rate"] is None
    assert nobody["process_band"] is False


@pytest.mark.parametrize(
    ("want", "present"),
    [
        (["gamma"], {"gamma"}),
        (["segments"], {"node", "general_stage", "visit"}),
        (["beta"], {"beta"}),
        (["rewards"], {"reward"}),
        (["advantages"], {"weight", "advantage"}),
    ],
)
async def test_only_what_is_wanted_is_answered(place: Place, want: list[str], present: set[str]) -> None:
    given = rollout(segments=STRAIGHT, stage_rewards=betas((0, 0, 1), (1, 0, 1), (2, 0, 1)))
    answer = await ask(await place.gateway(), group(given, want=want))
    row = answer["rollouts"][0]["steps"][0]
    optional = {"node", "general_stage", "visit", "beta", "gamma", "reward", "weight", "advantage"}
    assert {name for name in optional if row[name] is not None} == present


async def test_a_proof_becomes_alpha(place: Place) -> None:
    await place.worker()
    proofs = [
        rollout(f"r{i}", None, segments=STRAIGHT, proof={"id": "p", "code": f"theorem {name} : 1 + 1 = 2 := rfl"})
        for i, name in enumerate(["right", "wrong_one", "timeout_one"])
    ]
    answer = await ask(await place.gateway(), group(*proofs, deadline_s=10))
    assert [r["alpha"] for r in answer["rollouts"]] == [1, -1, None]
    assert [r["proof"]["id"] for r in answer["rollouts"]] == ["p", "p", "p"]
    assert answer["rollouts"][1]["proof"]["reason"] == "compile_error"
    assert "unknown_alpha" in answer["rollouts"][2]["flags"]
    assert answer["pass_rate"] == 0.5


async def test_a_proof_that_lean_does_not_end_leaves_alpha_unknown_by_the_deadline(place: Place) -> None:
    await place.worker()
    slow = rollout(alpha=None, proof={"id": "p", "code": "theorem slow_one : 1 + 1 = 2 := rfl"})
    answer = await ask(await place.gateway(), group(slow, rollout("r2", 1), deadline_s=1))
    assert answer["elapsed_s"] < 1.5
    assert answer["rollouts"][0]["alpha"] is None
    assert {"deadline", "unknown_alpha"} <= set(answer["rollouts"][0]["flags"])


async def test_a_proof_without_lean_is_a_503_and_no_outcome(place: Place) -> None:
    served = await place.gateway()
    body = group(rollout(alpha=None, proof={"id": "p", "code": "theorem t : 1 + 1 = 2 := rfl"}))
    response = await served.client.post(URL, json=body)
    assert response.status_code == 503
    assert response.json()["code"] == "lean_unavailable"


async def test_openhands_v0_is_openhands(place: Place) -> None:
    events = [{"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}}]
    answer = await ask(await place.gateway(), group(rollout(format="openhands_v0", trajectory=events)))
    assert answer["rollouts"][0]["format"] == "openhands"


FAULTS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("alpha that is neither", group(rollout("r0"), rollout(alpha=0)), ["/rollouts/1/alpha"]),
    ("no alpha twice", group(rollout(), rollout()), ["/rollouts/1/id"]),
    ("a general stage twice", group(rollout(), general_workflow=["a", "a"]), ["/general_workflow/1"]),
    (
        "a stage that is not general",
        group(rollout(workflow=workflow()), general_workflow=["fix"]),
        ["/rollouts/0/workflow/nodes/0/general_stage", "/rollouts/0/workflow/nodes/2/general_stage"],
    ),
    (
        "an edge to nowhere",
        group(rollout(workflow=workflow(exits=[7]))),
        ["/rollouts/0/workflow/exits/0"],
    ),
    ("a node that is not there", group(rollout(segments=segments((0, 0), (9, 0)))), ["/rollouts/0/segments/1"]),
    ("too few segments", group(rollout(segments=segments((0, 0)))), ["/rollouts/0/segments"]),
    (
        "too many segments",
        group(rollout(segments=[*STRAIGHT, *segments((2, 0), start=3)])),
        ["/rollouts/0/segments/3"],
    ),
    (
        "a segment of the planning phase",
        group(rollout(trajectory=steps("ls", "make", "pytest", plan=1), segments=STRAIGHT)),
        ["/rollouts/0/segments/0"],
    ),
    (
        "a label of no stage",
        group(rollout(trajectory=steps("ls", "make", stages=["explore", "dance"]))),
        ["/rollouts/0/trajectory/1"],
    ),
    (
        "a beta for a visit without steps",
        group(rollout(segments=STRAIGHT, stage_rewards=betas((1, 1, 1)))),
        ["/rollouts/0/stage_rewards/0"],
    ),
    (
        "a beta for no node, and one twice",
        group(rollout(segments=STRAIGHT, stage_rewards=betas((9, 0, 1), (0, 0, 1), (0, 0, -1)))),
        ["/rollouts/0/stage_rewards/0/node", "/rollouts/0/stage_rewards/2"],
    ),
    (
        "a record that does not fit",
        group(rollout(trajectory=[{"tool_calls": "ls"}])),
        ["/rollouts/0/trajectory/0/tool_calls"],
    ),
    (
        "segments of replicas that are not asked for",
        group(rollout(replica_segments=[STRAIGHT])),
        ["/rollouts/0/replica_segments"],
    ),
    ("nothing wanted", group(rollout(), want=[]), ["/want"]),
]


@pytest.mark.parametrize(("body", "pointers"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
async def test_what_cannot_be_used_is_named_by_its_place(
    place: Place, body: dict[str, Any], pointers: list[str]
) -> None:
    served = await place.gateway()
    response = await served.client.post(URL, json=body)
    assert response.status_code == 422, response.text
    assert [fault["pointer"] for fault in response.json()["errors"]] == pointers
    assert served.gateway.budget.held == 0
