"""Rule 6, no-progress re-execution: a shell command is run again within one stage visit although no call since its
last run, that run included, may have changed the environment.

The same command in another working directory or with other variables is another run; what a command sets itself before
it does anything else (``cd /repo && pytest``) is the same on every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.process.penalties.actions import Turn
from services.process.penalties.evidence import Penalty, quoted


def check(turns: Sequence[Turn]) -> Iterator[Penalty]:
    visit: tuple[str | None, int] | None = None
    runs: dict[int, int] = {}  # what ran since the environment may last have changed -> the step of its last run
    for turn in turns:
        if (turn.stage, turn.visit) != visit:
            visit = (turn.stage, turn.visit)
            runs.clear()
        flagged = False
        for action, identity in zip(turn.actions, turn.identities, strict=True):
            if identity is not None:
                earlier = runs.get(identity)
                if earlier is not None and not flagged:
                    flagged = True
                    detail = f"same command as in step {earlier}, nothing changed since"
                    yield Penalty(turn.step.index, 6, detail, quoted(action.command or ""), earlier)
                runs[identity] = turn.step.index
            if action.behaviour.modifies:
                runs.clear()
