"""The last warnings and errors of this process, for a person who looks at a page instead of the log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

_KEPT = 20
_LEVELS = ("warning", "error", "critical")


@dataclass(frozen=True, slots=True)
class Trouble:
    """One event of the log: its name and level, never its other fields. `at_s` is on the wall clock."""

    at_s: float
    level: str
    event: str
    times: int = 1


class RecentTrouble:
    """A structlog processor that lets every event through. Equal events in a row are counted, not repeated."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._troubles: deque[Trouble] = deque(maxlen=kept)

    def __call__(self, _: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        level = event.get("level")
        if level in _LEVELS:
            self._remember(Trouble(time.time(), str(level), str(event.get("event"))))
        return event

    def _remember(self, new: Trouble) -> None:
        last = self._troubles[-1] if self._troubles else None
        if last is not None and (last.level, last.event) == (new.level, new.event):
            self._troubles[-1] = Trouble(new.at_s, new.level, new.event, last.times + 1)
        else:
            self._troubles.append(new)

    def __iter__(self) -> Iterator[Trouble]:
        """The latest first."""
        return iter(tuple(reversed(self._troubles)))


recent_trouble = RecentTrouble()
