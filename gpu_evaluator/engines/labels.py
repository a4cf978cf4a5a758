"""The two answers of the one-token classifier (learning-lean-feedback, Section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_evaluator.engines.base import EngineFault

LABELS = ("true", "false")


def label_tokens(tokens: Sequence[Sequence[int]]) -> tuple[int, int]:
    """The tokens of `LABELS`, given how each is tokenized alone. Raises `EngineFault` unless each is one token."""
    if any(len(label) != 1 for label in tokens):
        raise EngineFault(f"`true` and `false` must be one token each, and are {[list(label) for label in tokens]}")
    return tokens[0][0], tokens[1][0]
