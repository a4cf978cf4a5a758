"""How long to wait before trying again."""

from __future__ import annotations

import random
from collections.abc import Iterator


def delays(first_s: float, most_s: float) -> Iterator[float]:
    """Endless waiting times, seconds: doubling from `first_s` to `most_s`, each spread over its upper half.

    The spread keeps a fleet of workers from coming back in the same instant.
    """
    ceiling = first_s
    while True:
        yield ceiling * random.uniform(0.5, 1.0)
        ceiling = min(most_s, ceiling * 2)
