"""Short ways to write trajectories in tests."""

from __future__ import annotations

from typing import Any

from services.process.penalties import StepGamma, gamma
from services.process.trajectories import read_trajectory

Turn = str | tuple[str, Any] | None


def record(*turns: Turn, stages: tuple[str, ...] | None = None) -> list[dict[str, Any]]:
    """Steps in our own format: a string is a Bash command, a pair is a tool with its arguments, None a turn of words.

    A closing turn without an action follows.
    """
    steps: list[dict[str, Any]] = []
    for index, turn in enumerate(turns):
        step: dict[str, Any] = {"thought": "hm"}
        if isinstance(turn, str):
            step["tool_calls"] = [{"name": "Bash", "arguments": {"command": turn}}]
        elif turn is not None:
            step["tool_calls"] = [{"name": turn[0], "arguments": turn[1]}]
        if stages is not None:
            step["stage"] = stages[index]
        steps.append(step)
    return [*steps, {"thought": "done"}]


def judge(*turns: Turn, stages: tuple[str, ...] | None = None) -> list[StepGamma]:
    return gamma(read_trajectory(record(*turns, stages=stages)))


def fired(*turns: Turn, stages: tuple[str, ...] | None = None) -> list[tuple[int, int]]:
    """Every (step, rule) that is penalised."""
    return [(row.step, rule) for row in judge(*turns, stages=stages) for rule in row.rules]
