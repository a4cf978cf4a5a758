"""Tokens of programs as a classifier reads them, in service and in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_evaluator.engines.labels import LABELS, label_tokens
from gpu_evaluator.engines.serving.lengths import keep_ends

ENCODER_CONTEXT = 8_192
_ENCODER_HEAD = 2_048


def read_programs(tokenizer: Any, programs: Sequence[str], context: int, *, is_encoder: bool) -> list[list[int]]:
    """At most `context` tokens of each, of a longer one the head and the tail: 2,048 and 6,144 of 8,192 (Section 4.1).

    An encoder's have the special tokens at both ends; the one-token model reads raw text.
    """
    tokens = tokenizer(list(programs), add_special_tokens=is_encoder, verbose=False)["input_ids"]  # no word on lengths
    head = round(context * _ENCODER_HEAD / ENCODER_CONTEXT)
    return [keep_ends(row, context, head) for row in tokens]


def read_labels(tokenizer: Any) -> tuple[int, int]:
    """The tokens of `true` and `false`. Raises `EngineFault` unless each is one token."""
    return label_tokens([tokenizer(label, add_special_tokens=False)["input_ids"] for label in LABELS])
