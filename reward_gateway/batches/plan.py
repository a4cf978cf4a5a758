"""A request's options with every default filled in."""

from __future__ import annotations

from dataclasses import dataclass

from reward_gateway.errors import ProblemError
from services.contracts.outcomes import Profile
from services.contracts.problems import ProblemCode
from services.contracts.proofs import CutoffPolicy, Inclusion, Mode, RewardMap, ScoreOptions
from services.runtime.settings import GatewaySettings


@dataclass(frozen=True, slots=True)
class Plan:
    """How one batch is to be scored. Times in seconds."""

    mode: Mode
    policy: CutoffPolicy
    deadline_s: float
    lean_timeout_s: float
    heartbeats: int
    priority: int
    profile: Profile
    header: str
    prepend_header: bool
    rewards: RewardMap
    messages: bool


def make_plan(options: ScoreOptions, settings: GatewaySettings) -> Plan:
    """Raises `ProblemError` (422) when the batch asks for an evaluator and none is configured."""
    mode = options.mode or Mode.LEAN
    if mode is not Mode.LEAN:
        raise ProblemError(
            ProblemCode.EVALUATOR_NOT_CONFIGURED, f"mode `{mode.value}` needs an evaluator; use `lean` or leave it out"
        )
    return Plan(
        mode=mode,
        policy=options.cutoff.policy or settings.cutoff_policy,
        deadline_s=settings.deadline_s if options.cutoff.deadline_s is None else options.cutoff.deadline_s,
        lean_timeout_s=settings.lean_timeout_s if options.lean_timeout_s is None else options.lean_timeout_s,
        heartbeats=settings.heartbeats,
        priority=options.priority,
        profile=options.profile or settings.profile,
        header=settings.header,
        prepend_header=options.prepend_header,
        rewards=options.rewards,
        messages=Inclusion.MESSAGES in options.include,
    )
