"""Whether the evidence that a judge quotes is evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from services.contracts.votes import Downgrade
from services.process.judging.transcript import Transcript, normalised
from services.process.judging.view import Piece

LEAST = 12
"""Normalised characters of a quote that counts."""


class Finding(NamedTuple):
    """`step` holds the quote; `downgrade` says why it does not count, None when it does."""

    step: int | None
    downgrade: Downgrade | None


def find(quote: str, shown: Sequence[Piece], transcript: Transcript, end: int) -> Finding:
    """Look for a quote in what the judge was shown, up to step `end`, the last one of the stage.

    It counts when it stands, after normalisation, in the observation of a step that acted, that penalty rules 2 to 4 do
    not flag, and that does not merely echo what the agent typed. Otherwise the first reason that applies is given; a
    quote that stands only in later observations of the record is `from_the_future`.
    """
    text = normalised(quote)
    if len(text) < LEAST:
        return Finding(None, Downgrade.TOO_SHORT)
    refused: Finding | None = None
    for piece in shown:
        if piece.step > end or text not in piece.text or not transcript.steps[piece.step].calls:
            continue
        if piece.step in transcript.flagged:
            refused = refused or Finding(piece.step, Downgrade.FLAGGED_STEP)
        elif transcript.is_echo(text, piece.step):
            refused = refused or Finding(piece.step, Downgrade.ECHO)
        else:
            return Finding(piece.step, None)
    if refused is not None:
        return refused
    for step in range(end + 1, len(transcript.steps)):
        if text in transcript.observed(step):
            return Finding(step, Downgrade.FROM_THE_FUTURE)
    return Finding(None, Downgrade.QUOTE_NOT_FOUND)
