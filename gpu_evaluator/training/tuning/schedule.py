"""The learning rate of each step."""

from __future__ import annotations

import math


def rate_at(step: int, steps: int, warmup: float, peak: float) -> float:
    """The rate of step `step` of 0 to `steps` - 1: a line to `peak` over the first part `warmup`, then half a cosine.

    Neither the first nor the last step has a rate of 0, which would learn nothing from them.
    """
    rising = math.ceil(warmup * steps)
    if step < rising:
        return peak * (step + 1) / rising
    falling = steps - rising
    return peak * 0.5 * (1 + math.cos(math.pi * (step - rising + 1) / (falling + 1)))
