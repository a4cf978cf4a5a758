"""Judged turns in the shapes that the Lean library's rules are stated over (``lean/LeanReward/Penalties.lean``).

A certificate says that the rules, as Lean defines them, fire on these parsed steps as answered. What the parser
made of a command is part of the claim, not of the proof.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.process.certificates import claims
from services.process.penalties.actions import Action, Turn
from services.process.penalties.behaviour import Kind
from services.process.penalties.constant_output import is_constant_output
from services.process.penalties.no_op import is_no_op
from services.process.penalties.pure_print import is_pure_print


def claimed_steps(turns: Sequence[Turn]) -> list[claims.Step]:
    """One step a turn. A command is numbered together with the shell state that it runs in."""
    return [
        claims.Step(
            actions=[_action(*pair) for pair in zip(turn.actions, turn.identities, strict=True)],
            is_final=turn.step.final,
            excused=turn.step.lapse is not None,
        )
        for turn in turns
    ]


def _action(action: Action, identity: int | None) -> claims.Action:
    return claims.Action(
        is_shell=identity is not None,
        text=0 if identity is None else identity,
        chain=_chain(action),
        script=[claims.Statement.LITERAL_PRINT] if is_pure_print(action) else [],
        modifies=action.behaviour.modifies,
    )


def _chain(action: Action) -> list[claims.Link]:
    if is_no_op(action):
        return [claims.Link.NOOP]
    if is_constant_output(action):
        idle = [claims.Link.NOOP] if Kind.NOTHING in action.behaviour.kinds else []
        return [claims.Link.CONSTANT_PRINT, *idle]
    return [claims.Link.OTHER]
