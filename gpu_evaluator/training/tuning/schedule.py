"""The learning rate of each step."""

from __future__ import annotations

import math


def rate_at(step: int, steps: int, warmup: float, peak: float) -> float:
    """The rate of step `step` of 0 to `steps` - 1: linear from 0 over the first part `warmup`, then half a cosine to 0.

    As in transformers' `get_cosine_schedule_with_warmup`, with the steps of the warm-up rounded up.
    """
    rising = math.ceil(warmup * steps)
    if step < rising:
        return peak * step / rising
    done = (step - rising) / max(1, steps - rising)
    return peak * 0.5 * (1 + math.cos(math.pi * done))
