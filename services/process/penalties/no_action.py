"""Rule 5, intermediate no-action: a step that calls no tool, unless it is the trajectory's last.

Exempt are turns that tried to act and could not be read by their harness, and turns in which the harness asked for a
summary of the context. An empty call is still a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.process.penalties.actions import Turn
from services.process.penalties.evidence import Penalty, quoted


def check(turns: Sequence[Turn]) -> Iterator[Penalty]:
    for turn in turns:
        step = turn.step
        if not step.calls and not step.final and step.lapse is None:
            yield Penalty(step.index, 5, "no tool call in a step that is not the last", quoted(step.thought) or None)
