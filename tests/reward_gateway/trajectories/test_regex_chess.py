"""Appendix J of lean4agenticrl through HTTP and the judge's protocol: outcomes, vote counts, downgrades, rewards."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reward_gateway.trajectories.conftest import Judged
from tests.reward_gateway.trajectories.regex_chess import CASES, STEP_REWARDS, Case, Spans
from tests.reward_gateway.trajectories.scripted_judge import Asked, judged

GENERAL = ["work", "verify"]


def trajectory(case: Case) -> list[dict[str, Any]]:
    made = []
    for step in range(case.steps):
        seen = "\n".join([f"some output of step {step}", *case.passages.get(step, ())])
        if step in case.elided:
            seen = f"{'.' * 20_000}\n{case.elided[step]}\n{'.' * 20_000}"
        if step in case.parse_failures:
            made.append(
                {"thought": '{"commands": [', "observation": "Previous response had parsing errors: no valid JSON"}
            )
        else:
            call = {"name": "bash", "arguments": {"command": f"./work --turn {step}"}}
            made.append({"tool_calls": [call], "observation": seen})
    return made


def segments(case: Case, spans: Spans) -> list[dict[str, int]]:
    return [
        {"turn_idx": step, "node": case.nodes.index(name), "visit": 0}
        for name, ranges in spans.items()
        for first, last in ranges
        for step in range(first, last + 1)
    ]


def request(case: Case) -> dict[str, Any]:
    last = len(case.nodes) - 1
    nodes = [
        {"id": i, "name": name, "general_stage": GENERAL[i == last], "instruction": "see the figure"}
        for i, name in enumerate(case.nodes)
    ]
    edges = [{"edge_type": "seq", "from_node": i, "to_node": i + 1} for i in range(last)]
    workflow = {"name": "pswf", "goal": "regex-chess", "nodes": nodes, "edges": edges, "entry": 0, "exits": [last]}
    rollout = {
        "id": case.name,
        "alpha": case.alpha,
        "format": "steps",
        "trajectory": trajectory(case),
        "workflow": workflow,
        "replica_segments": [segments(case, spans) for spans in case.segments],
    }
    return {"group": "regex-chess", "general_workflow": GENERAL, "rollouts": [rollout], "segmentation": "per_replica"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_worked_cases(judged_gateway: Judged, case: Case) -> None:
    def say(asked: Asked) -> str:
        name = asked.data("Stage to judge").split("\n")[0]
        return judged(case.stages[name].answers[asked.seed])

    served, _ = await judged_gateway(say)
    response = await served.client.post("/v1/trajectories/score", json=request(case))
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["process_band"] is True
    (rollout,) = answer["rollouts"]
    assert rollout["illegal_steps"] == list(case.illegal)  # reported, not enforced
    found = {case.nodes[stage["node"]]: stage for stage in rollout["stages"]}
    assert {name: stage["beta"] for name, stage in found.items()} == {n: s.beta for n, s in case.stages.items()}
    for name, stage in case.stages.items():
        votes = (await served.client.get(f"/v1/votes/{found[name]['votes']}")).json()
        cast = [replica["vote"] for replica in votes["replicas"]]
        assert cast.count(stage.beta) == stage.agreeing, name
        downgrades = [replica["requirements"][0]["downgrade"] for replica in votes["replicas"]]
        assert downgrades == list(stage.downgrades), name
    for row in rollout["steps"]:
        assert row["gamma"] == 0  # "No gamma fires."
        assert row["beta"] == case.stages[case.nodes[row["node"]]].beta
        assert row["reward"] == STEP_REWARDS[case.alpha, row["beta"]]
