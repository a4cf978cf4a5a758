"""What becomes of programs that do not fit a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

_Token = TypeVar("_Token")


def keep_ends(tokens: Sequence[_Token], limit: int, head: int | None = None) -> list[_Token]:
    """At most `limit` tokens: the first `head` (default: a quarter) and the last of the rest.

    The encoder of learning-lean-feedback keeps the first 2,048 and the last 6,144 of 8,192 (Section 4.1).
    """
    if len(tokens) <= limit:
        return list(tokens)
    first = limit // 4 if head is None else head
    return [*tokens[:first], *tokens[len(tokens) - (limit - first) :]]


def surely_fits(text: str, limit: int) -> bool:
    """Whether a text has at most `limit` tokens whatever the byte-level tokenizer: none has less than a byte."""
    return len(text) <= limit and len(text.encode()) <= limit


def longest_input(context: int) -> int:
    """Tokens of the longest program that a feedback model is asked about: a whole trace is longer than its program."""
    return context // 2
