"""Runs a program that executes candidates so that it reaches nothing but what it was given.

The policy under training is the adversary (`docs/security.md`), so a native Lean never runs as a bare child of the
worker. `choose` picks the strongest tier that works on this machine, or refuses; `confine` turns a command into the
command that runs it in that tier.
"""

from __future__ import annotations

from lean_worker.sandbox.confine import Confined, confine
from lean_worker.sandbox.detect import choose, usable
from lean_worker.sandbox.policy import Confinement, Limits, SandboxUnavailable, Tier

__all__ = ["Confined", "Confinement", "Limits", "SandboxUnavailable", "Tier", "choose", "confine", "usable"]
