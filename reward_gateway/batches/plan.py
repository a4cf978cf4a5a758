"""A request's options with every default filled in."""

from __future__ import annotations

from dataclasses import dataclass

from reward_gateway.limits.admission import share_of
from reward_gateway.limits.keys import allowed_priority, limits_of
from reward_gateway.scheduling.policies import SchedulingPolicy
from services.contracts.outcomes import Profile
from services.contracts.problems import ProblemCode
from services.contracts.proofs import Allowance, CutoffPolicy, Inclusion, Mode, RewardMap, ScoreOptions
from services.runtime.auth import ANONYMOUS
from services.runtime.problems import ProblemError
from services.runtime.settings import GatewaySettings


@dataclass(frozen=True, slots=True)
class Plan:
    """How one batch is to be scored. Times in seconds. `owner`: the name of the caller's key; `share`: the part
    of the server's bounds that it may fill.
    """

    mode: Mode
    policy: CutoffPolicy
    deadline_s: float
    lean_timeout_s: float
    heartbeats: int
    owner: str
    priority: int
    share: float
    profile: Profile
    header: str
    prepend_header: bool
    rewards: RewardMap
    messages: bool
    trace: bool
    evaluator_only: bool
    problems: str | None
    scheduling: SchedulingPolicy


def make_plan(options: ScoreOptions, settings: GatewaySettings, owner: str = ANONYMOUS) -> Plan:
    """Raises `ProblemError` (422) when the batch asks for an evaluator and none is configured."""
    predicts = bool(settings.evaluator_urls.strip())
    mode = options.mode or (Mode.HYBRID if predicts else Mode.LEAN)
    if mode is not Mode.LEAN and not predicts:
        raise ProblemError(
            ProblemCode.EVALUATOR_NOT_CONFIGURED, f"mode `{mode.value}` needs an evaluator; use `lean` or leave it out"
        )
    policy = options.cutoff.policy or settings.cutoff_policy
    priority = allowed_priority(options.priority, limits_of(settings.key_limits, owner))
    return Plan(
        mode=mode,
        policy=policy,
        deadline_s=settings.deadline_s if options.cutoff.deadline_s is None else options.cutoff.deadline_s,
        lean_timeout_s=settings.lean_timeout_s if options.lean_timeout_s is None else options.lean_timeout_s,
        heartbeats=settings.heartbeats,
        owner=owner,
        priority=priority,
        share=share_of(priority, settings.shed_from),
        profile=options.profile or settings.profile,
        header=settings.header,
        prepend_header=options.prepend_header,
        rewards=options.rewards,
        messages=Inclusion.MESSAGES in options.include,
        trace=Inclusion.TRACE in options.include,
        evaluator_only=Allowance.EVALUATOR_ONLY in options.allow,
        problems=options.problems,
        scheduling=_scheduling(mode, policy, settings),
    )


def _scheduling(mode: Mode, policy: CutoffPolicy, settings: GatewaySettings) -> SchedulingPolicy:
    """`auto` is what `bench/scheduling.py` measures best.

    With an evaluator `value`. Without one `shortest` where the deadline ends the batch, and `fifo` where everything is
    waited for: there the long checks that `shortest` leaves for the end only make it later.
    """
    if settings.scheduling != "auto":
        return SchedulingPolicy(settings.scheduling)
    if mode is Mode.HYBRID:
        return SchedulingPolicy.VALUE
    return SchedulingPolicy.SHORTEST if policy is CutoffPolicy.DEADLINE else SchedulingPolicy.FIFO
