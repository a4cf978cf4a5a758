"""A trajectory as evidence: what the agent typed and what the environment answered, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.process.penalties import StepGamma
from services.process.trajectories import Step, ToolCall

CONSTANT_RULES = frozenset({2, 3, 4})
"""Penalty rules whose steps print what the agent put into them: their output is no evidence."""


def normalised(text: str) -> str:
    """White space of any kind and length becomes one space. The comparison of quotes is exact after this."""
    return " ".join(text.split())


def skeleton(text: str) -> str:
    """Letters and digits alone, without case: how an echo is recognised through quoting and layout."""
    return "".join(filter(str.isalnum, text)).lower()


def typed(call: ToolCall) -> str:
    """What the agent wrote into a call: the shell command or code, else all arguments as JSON."""
    strings = list(_strings(call.arguments))
    if len(strings) == 1 and len(call.arguments) == 1:
        return strings[0]
    return json.dumps(dict(call.arguments), ensure_ascii=False, default=str)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


class Transcript:
    """The steps of one trajectory with what quotes are compared with, worked out once and only where it is needed."""

    def __init__(self, steps: Sequence[Step], gammas: Sequence[StepGamma]) -> None:
        self.steps = steps
        self.flagged = frozenset(row.step for row in gammas if CONSTANT_RULES & set(row.rules))
        self._observed: dict[int, str] = {}
        self._typed: dict[int, tuple[str, str]] = {}

    def observed(self, step: int) -> str:
        """Everything that the environment answered at a step, normalised; empty for a turn without a call, whose
        answer is a message and no tool's.
        """
        found = self._observed.get(step)
        if found is None:
            calls = self.steps[step].calls
            answers = (seen.text for seen in self.steps[step].observations) if calls else ()
            found = self._observed[step] = "\n".join(map(normalised, answers))
        return found

    def is_echo(self, quote: str, step: int) -> bool:
        """Whether the agent typed the (normalised) quote itself, at this step or before it."""
        bare = skeleton(quote)
        for index in range(step, -1, -1):
            text, letters = self._typed_at(index)
            if quote in text or (len(bare) >= _BARE and bare in letters):
                return True
        return False

    def _typed_at(self, step: int) -> tuple[str, str]:
        found = self._typed.get(step)
        if found is None:
            parts = [part for call in self.steps[step].calls for part in _strings(call.arguments)]
            found = self._typed[step] = ("\n".join(map(normalised, parts)), "\n".join(map(skeleton, parts)))
        return found


_BARE = 8  # shorter runs of letters and digits occur in commands by chance
