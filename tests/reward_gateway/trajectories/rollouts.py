"""Short ways to write groups of rollouts in tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

GENERAL = ["explore", "fix", "verify"]


def steps(*commands: str | None, stages: Sequence[str | None] = (), plan: int = 0) -> list[dict[str, Any]]:
    """One step a command (None: words only), the first `plan` of them planning."""
    made: list[dict[str, Any]] = []
    for index, command in enumerate(commands):
        step: dict[str, Any] = {"thought": f"step {index}", "observation": f"output of step {index}, long enough"}
        if command is not None:
            step["tool_calls"] = [{"name": "bash", "arguments": {"command": command}}]
        if index < len(stages) and stages[index] is not None:
            step["stage"] = stages[index]
        if index < plan:
            step["phase"] = "plan"
        made.append(step)
    return made


def segments(*places: tuple[int, int], start: int = 0) -> list[dict[str, int]]:
    return [{"turn_idx": start + turn, "node": node, "visit": visit} for turn, (node, visit) in enumerate(places)]


def betas(*stages: tuple[int, int, int]) -> list[dict[str, int]]:
    return [{"node": node, "visit": visit, "beta": beta} for node, visit, beta in stages]


def rollout(name: str = "r1", alpha: int | None = 1, **fields: Any) -> dict[str, Any]:
    return {"id": name, "alpha": alpha, "format": "steps", "trajectory": steps("ls", "make", "pytest"), **fields}


def group(*rollouts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"group": "p17", "task": "Fix it.", "general_workflow": GENERAL, "rollouts": list(rollouts), **fields}


def workflow(**changes: Any) -> dict[str, Any]:
    """look -> edit -> test, with a loop from test back to edit."""
    return {
        "name": "plan",
        "goal": "Fix it.",
        "nodes": [
            {"id": 0, "name": "look", "general_stage": "explore"},
            {"id": 1, "name": "edit", "general_stage": "fix"},
            {"id": 2, "name": "test", "general_stage": "verify"},
        ],
        "edges": [
            {"edge_type": "seq", "from_node": 0, "to_node": 1},
            {"edge_type": "seq", "from_node": 1, "to_node": 2},
            {"edge_type": "loop_back", "body_end": 2, "header": 1},
        ],
        "entry": 0,
        "exits": [2],
        **changes,
    }
