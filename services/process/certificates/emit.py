"""From a rollout and what was answered about it to theorems, and from theorems to one program for Lean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from services.process.certificates import packing
from services.process.certificates.claims import Answers, Rollout, Transitions
from services.process.certificates.sources import CERTIFICATES, preamble
from services.rewards.band import PassRate

# Lemmas that certificates never use; without them the definitions elaborate a quarter faster.
_OPTIONS = "set_option genInjectivity false\nset_option genSizeOf false\nset_option genSizeOfSpec false\n"

_LITERAL = 1024
"""Bits of a literal: Lean's time to write one out again grows with the square of its length."""

_NAME = re.compile(r"[a-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Certificate:
    """The theorem that every answer about one rollout is right; true exactly when Lean accepts it."""

    name: str
    text: str
    theorem: str
    """The theorem's full name."""


def certify(name: str, transitions: Transitions, rollout: Rollout, rate: PassRate, answers: Answers) -> Certificate:
    """The certificate of one rollout.

    `name` becomes part of the theorem's name: a letter, then letters, digits and underscores, unique within a program.
    Raises ValueError for another name, for lists of different lengths and for values outside their domain.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for a theorem")
    lengths = {len(rollout.rows), len(rollout.steps), len(answers.rules), len(answers.reward_tenths)}
    if len(lengths) != 1:
        raise ValueError(f"rows, steps, rules and rewards have different lengths: {sorted(lengths)}")
    if len(answers.betas) != len(rollout.evidence):
        raise ValueError(f"{len(answers.betas)} betas for {len(rollout.evidence)} stages")
    parts = _literals(packing.claim(transitions, rollout, rate, answers))
    lines = [
        f"namespace LeanReward.{name}",
        f"def claim : Packed := .read (Packed.join (nat_lit {_LITERAL}) [{parts}])",
        "theorem holds : claim.holds = true := by decide +kernel",
        f"end LeanReward.{name}",
    ]
    return Certificate(name, "\n".join(lines) + "\n", f"LeanReward.{name}.holds")


def program(certificates: Iterable[Certificate]) -> str:
    """One program for Lean: the library's definitions, elaborated once, and then every certificate."""
    return _OPTIONS + preamble(CERTIFICATES) + "\n" + "\n".join(certificate.text for certificate in certificates)


def _literals(number: int) -> str:
    mask = (1 << _LITERAL) - 1
    starts = range(0, number.bit_length(), _LITERAL)
    return ", ".join(f"nat_lit {number >> start & mask:#x}" for start in starts)
