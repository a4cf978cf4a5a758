"""The settings of a training, with those of the paper (learning-lean-feedback, Appendix B).

What the paper gives is a default here. It gives no learning rate for supervised training, so that is always asked for.
It does not speak of AdamW's other parameters, which are PyTorch's own, nor of clipping in supervised training, which is
that of continued pretraining.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

Objective = Literal["next_token", "masked_token", "gate", "feedback", "encoder"]
Precision = Literal["bf16", "fp32"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one training goes.

    `length`: tokens of a pack, or the context of an encoder. `batch`: packs, or an encoder's programs, of one
    optimizer step over all processes together. `rows`: an encoder's programs of one forward pass of one process.
    `warmup`: part of all steps. `held_out`: part of the problems kept out of the training.
    """

    objective: Objective
    length: int
    batch: int
    warmup: float
    learning_rate: float
    rows: int = 4
    epochs: int = 1
    weight_decay: float = 0.01
    clip: float = 1.0
    mask: float = 0.3
    held_out: float = 0.0
    seed: int = 42
    precision: Precision = "bf16"
    attention: str = "sdpa"
    recompute: bool = True


@dataclass(frozen=True, slots=True)
class Defaults:
    """What Appendix B gives for an objective. `learning_rate` is None where it gives none."""

    length: int
    batch: int
    warmup: float
    learning_rate: float | None


PAPER: dict[Objective, Defaults] = {
    "next_token": Defaults(16_384, 8, 0.03, 5e-6),
    "masked_token": Defaults(8_192, 32, 0.03, 3e-5),
    "gate": Defaults(32_768, 8, 0.05, None),
    "feedback": Defaults(32_768, 8, 0.05, None),
    # 4.82M examples in 75,251 steps are 64 a step.
    "encoder": Defaults(8_192, 64, 0.05, None),
}


def make_recipe(objective: Objective, **given: Any) -> Recipe:
    """The paper's settings, changed by what is given and not None. Raises `ValueError`."""
    defaults = PAPER[objective]
    settings: dict[str, Any] = {
        "length": defaults.length,
        "batch": defaults.batch,
        "warmup": defaults.warmup,
        "learning_rate": defaults.learning_rate,
    }
    settings |= {name: value for name, value in given.items() if value is not None}
    if settings["learning_rate"] is None:
        raise ValueError("the paper gives no learning rate for supervised training: one is needed")
    if not 0 < settings["learning_rate"] < math.inf:
        raise ValueError(f"learning rate {settings['learning_rate']}: a finite number above 0 is needed")
    if settings.get("precision", "bf16") not in get_args(Precision):
        raise ValueError(f"precision {settings['precision']!r}: {' or '.join(get_args(Precision))}")
    return Recipe(objective, **settings)
