"""Rule 6, no-progress re-execution: a shell command is run again within one stage visit although no call since its
last run, that run included, may have changed the environment.

Shell state (working directory, variables) is part of the environment with one exception: what the command itself sets
before it does anything else (``cd /repo && pytest``) is the same on every run, whoever changed it in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.process.penalties.actions import Turn
from services.process.penalties.evidence import Penalty, quoted


def check(turns: Sequence[Turn]) -> Iterator[Penalty]:
    visit = -1
    runs: dict[str, tuple[int, int]] = {}  # command -> (position of its last run, its step)
    changed = -1  # position of the last call that may have changed the environment
    settings: dict[str, int] = {}  # shell state -> position of the last call that set it, oldest first
    position = 0
    for turn in turns:
        if turn.visit != visit:
            visit = turn.visit
            runs.clear()
        flagged = False
        for action in turn.actions:
            behaviour, command = action.behaviour, action.command
            if command:
                last = runs.get(command)
                repeats = last is not None and changed < last[0] and not _shifted(settings, behaviour.settings, last[0])
                if repeats and last is not None and not flagged:
                    flagged = True
                    detail = f"same command as in step {last[1]}, nothing changed since"
                    yield Penalty(turn.step.index, 6, detail, quoted(command), last[1])
                runs[command] = (position, turn.step.index)
            if behaviour.modifies:
                changed = position
            for name in behaviour.settings:
                settings.pop(name, None)
                settings[name] = position
            position += 1


def _shifted(settings: dict[str, int], own: frozenset[str], since: int) -> bool:
    """Whether shell state that the command does not set itself was set after ``since``. Looks at most at one setting
    more than the command has, since ``settings`` is ordered by age.
    """
    for name in reversed(settings):
        if settings[name] <= since:
            return False
        if name not in own:
            return True
    return False
