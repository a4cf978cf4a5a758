"""Training of the linear demonstration model on labelled programs, with numpy alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_evaluator.engines.linear.features import WIDTH, read_features
from gpu_evaluator.engines.linear.model import Head, LinearModel
from gpu_evaluator.feedback.verdict import strip_marks

_STEPS = 400
_RATE = 0.05
_DECAY = 1e-5
_MOMENT, _SQUARE, _EPSILON = 0.9, 0.999, 1e-8
_HELD_OUT = 0.2


@dataclass(frozen=True, slots=True)
class Example:
    """A program with Lean's verdict. `problem` groups the attempts on one statement."""

    program: str
    valid: bool
    problem: str


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Counts on problems that were kept out of the training."""

    programs: int
    gate_right: int
    feedback_right: int
    valid: int


def split(examples: Sequence[Example], seed: int = 42) -> tuple[list[Example], list[Example]]:
    """Training and held-out examples; all attempts on a problem are on one side."""
    problems = sorted({example.problem for example in examples})
    random.Random(seed).shuffle(problems)
    held = set(problems[: round(_HELD_OUT * len(problems))])
    return [e for e in examples if e.problem not in held], [e for e in examples if e.problem in held]


def train(examples: Sequence[Example], toolchain: str) -> LinearModel:
    """Fit both heads. Raises `ValueError` when there are not both valid and invalid examples."""
    if len({example.valid for example in examples}) < 2:
        raise ValueError("valid and invalid examples are both needed")
    gate, feedback = (_fit(examples, crosses=crosses) for crosses in (False, True))
    return LinearModel(gate, feedback, toolchain, len(examples))


def measure(model: LinearModel, examples: Sequence[Example]) -> HeldOut:
    texts = [strip_marks(example.program) for example in examples]
    gate = [model.gate.logit(text) >= 0 for text in texts]
    feedback = [model.feedback.logit(text) >= 0 for text in texts]
    labels = [example.valid for example in examples]
    return HeldOut(
        programs=len(examples),
        gate_right=sum(a == b for a, b in zip(gate, labels, strict=True)),
        feedback_right=sum(a == b for a, b in zip(feedback, labels, strict=True)),
        valid=sum(labels),
    )


def _fit(examples: Sequence[Example], *, crosses: bool) -> Head:
    """Logistic regression with L2 decay by Adam over the whole set; deterministic."""
    features = [read_features(strip_marks(example.program), crosses=crosses) for example in examples]
    rows = np.repeat(np.arange(len(features)), [len(f.columns) for f in features])
    columns = np.concatenate([f.columns for f in features])
    values = np.repeat([f.weight for f in features], [len(f.columns) for f in features])
    labels = np.array([example.valid for example in examples], dtype=np.float64)
    weights = np.where(labels == 1, 0.5 / labels.sum(), 0.5 / (1 - labels).sum())  # both verdicts weigh the same
    parameters = np.zeros(WIDTH + 1)  # the bias is the last
    moment, square = np.zeros_like(parameters), np.zeros_like(parameters)
    for step in range(1, _STEPS + 1):
        gradient = _gradient(parameters, rows, columns, values, labels, weights)
        moment = _MOMENT * moment + (1 - _MOMENT) * gradient
        square = _SQUARE * square + (1 - _SQUARE) * gradient**2
        steady = np.sqrt(square / (1 - _SQUARE**step)) + _EPSILON
        parameters -= _RATE * moment / (1 - _MOMENT**step) / steady
    return Head(parameters[:-1].astype(np.float32), float(parameters[-1]), crosses)


def _gradient(
    parameters: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.float64],
    labels: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    logits = parameters[-1] + np.bincount(rows, weights=values * parameters[columns], minlength=len(labels))
    errors = (0.5 * (1 + np.tanh(0.5 * logits)) - labels) * weights
    gradient = np.bincount(columns, weights=values * errors[rows], minlength=WIDTH + 1)
    decay = _DECAY * parameters
    decay[-1] = errors.sum()  # the bias does not decay, and its column is empty
    return np.asarray(gradient + decay, dtype=np.float64)
