"""Weights of the linear model, how they are stored, and what they say about a program."""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpu_evaluator.engines.base import EngineFault
from gpu_evaluator.engines.linear.features import WIDTH, read_features

FORMAT = 1
_SHIPPED = "demonstration.npz"


@dataclass(frozen=True)
class Head:
    """A logistic model: P(valid) = sigmoid(bias + the weighted features of all lines)."""

    weights: NDArray[np.float32]
    bias: float
    crosses: bool

    def line_logits(self, program: str) -> NDArray[np.float64]:
        """What each line adds to the logit, shape (number of lines,); the bias is not in it."""
        features = read_features(program, crosses=self.crosses)
        added = np.bincount(features.lines, weights=self.weights[features.columns], minlength=program.count("\n") + 1)
        return np.asarray(added * features.weight, dtype=np.float64)

    def logit(self, program: str) -> float:
        return self.bias + float(self.line_logits(program).sum())


@dataclass(frozen=True)
class LinearModel:
    """Two heads: `gate` sees lines alone, `feedback` also sees each line together with the statement."""

    gate: Head
    feedback: Head
    toolchain: str
    programs: int

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                format=np.array(FORMAT),
                gate=self.gate.weights.astype(np.float16),
                gate_bias=np.array(self.gate.bias),
                feedback=self.feedback.weights.astype(np.float16),
                feedback_bias=np.array(self.feedback.bias),
                toolchain=np.array(self.toolchain),
                programs=np.array(self.programs),
            )


def load(path: Path | None) -> LinearModel:
    """The model of a file, or the one that comes with the package. Raises `EngineFault`."""
    try:
        return _shipped() if path is None else _read(path.read_bytes())
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise EngineFault(f"{path or _SHIPPED} is no linear model: {error}") from error


@cache
def _shipped() -> LinearModel:
    return _read(resources.files(__package__).joinpath(_SHIPPED).read_bytes())


def _read(data: bytes) -> LinearModel:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        if int(file["format"]) != FORMAT:
            raise ValueError(f"format {int(file['format'])}, {FORMAT} is needed")
        heads = []
        for name in ("gate", "feedback"):
            weights = file[name].astype(np.float32)
            if weights.shape != (WIDTH,) or not np.isfinite(weights).all():
                raise ValueError(f"the weights of {name} are not {WIDTH} finite numbers")
            heads.append(Head(weights, float(file[f"{name}_bias"]), crosses=name == "feedback"))
        return LinearModel(heads[0], heads[1], str(file["toolchain"]), int(file["programs"]))


def sigmoid(logit: float) -> float:
    return 0.5 * (1.0 + math.tanh(0.5 * logit))
