"""How fast work leaves, measured."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

_WINDOW_S = 60.0


class DrainRate:
    """Units that left a second, over the last minute of work.

    Time in which there was nothing to do says nothing of how fast it is done: `restart` when work begins again, and
    what was known from before stays until something has left. `clock` is monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._left: deque[tuple[float, int]] = deque()
        self._units = 0
        self._known = 0.0

    def restart(self) -> None:
        """Work begins after a time without any."""
        self._known = self.rate
        self._left.clear()
        self._units, self._since = 0, self._clock()

    def add(self, units: int) -> None:
        """So many have just left."""
        self._left.append((self._clock(), units))
        self._units += units

    @property
    def rate(self) -> float:
        """Units a second; 0 when nothing is known."""
        now = self._clock()
        begin = now - _WINDOW_S
        while self._left and self._left[0][0] <= begin:
            self._units -= self._left.popleft()[1]
        span = now - max(self._since, begin)
        if now - self._since < _WINDOW_S and (not self._left or span <= 0):
            return self._known
        return self._units / span
