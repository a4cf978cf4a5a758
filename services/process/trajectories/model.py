"""What every reader gives: steps. One step is one turn of the agent, and one index for the penalty rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any


class TrajectoryError(ValueError):
    """A record does not fit its format. ``pointer`` is the place in the JSON (RFC 6901)."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer or '/'}: {message}")
        self.pointer = pointer
        self.message = message

    @property
    def location(self) -> list[str]:
        """The pointer's parts."""
        return [part.replace("~1", "/").replace("~0", "~") for part in self.pointer.split("/")[1:]]


class Phase(str, Enum):
    """Writing the plan, or executing it (lean4agenticrl, Section 2.2)."""

    PLAN = "plan"
    EXEC = "exec"


class Lapse(str, Enum):
    """Why a turn without an action is not the agent's idleness.

    ``parse_failure``: the turn tried to act and its harness could not read the action. ``summary``: the harness asked
    for a summary of the context.
    """

    PARSE_FAILURE = "parse_failure"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """``arguments`` is always an object; text that is none is kept as ``{"input": text}``."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What the environment answered; ``call_id`` when the harness says to which call."""

    text: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """``source`` are the indices of the record's messages (events, steps) that make up this turn. ``observations`` is
    empty when the record holds none."""

    index: int
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    observations: tuple[Observation, ...] = ()
    phase: Phase = Phase.EXEC
    stage: str | None = None
    final: bool = False
    lapse: Lapse | None = None
    source: tuple[int, ...] = ()


@dataclass(slots=True)
class Draft:
    """A step that its reader is still collecting."""

    source: list[int]
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    phase: Phase = Phase.EXEC
    stage: str | None = None
    lapse: Lapse | None = None

    def think(self, text: str) -> None:
        if text.strip():
            self.thoughts.append(text)

    def observe(self, text: str, call_id: str | None = None) -> None:
        self.observations.append(Observation(text, call_id))


def finish(drafts: Iterable[Draft]) -> list[Step]:
    """Numbers the steps and marks the last one as final."""
    steps = [
        Step(
            index=index,
            thought="\n".join(draft.thoughts),
            calls=tuple(draft.calls),
            observations=tuple(draft.observations),
            phase=draft.phase,
            stage=draft.stage,
            lapse=draft.lapse,
            source=tuple(draft.source),
        )
        for index, draft in enumerate(drafts)
    ]
    if steps:
        steps[-1] = replace(steps[-1], final=True)
    return steps
