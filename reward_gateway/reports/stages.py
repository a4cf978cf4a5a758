"""Tables of agent rollouts: groups, beta by stage, gamma by rule (lean4agenticrl, Sections 2.3 and 2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.contracts.trajectories import RolloutResult, TrajectoryScoreResponse

RULES = {
    1: "consecutive repetition",
    2: "no-operation commands",
    3: "constant shell output",
    4: "pure-print script",
    5: "intermediate no-action",
    6: "no-progress re-execution",
}


@dataclass(frozen=True, slots=True)
class Betas:
    """Stage visits. `judged` have a beta; `met` of them +1."""

    visits: int
    judged: int
    met: int

    @property
    def accuracy(self) -> float | None:
        """The fraction of judged visits whose beta is +1; None without any."""
        return self.met / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class RuleCount:
    """How often a penalty rule fired. `steps`: steps that it flags, `rollouts`: rollouts with such a step."""

    rule: int
    steps: int
    rollouts: int


def betas(rollouts: Iterable[RolloutResult], stage: str | None = None) -> Betas:
    """The visits of all stages, or of one general stage."""
    visits = [v for rollout in rollouts for v in rollout.stages if stage is None or v.general_stage == stage]
    judged = [v.beta for v in visits if v.beta is not None]
    return Betas(len(visits), len(judged), sum(beta == 1 for beta in judged))


def stage_names(groups: Iterable[TrajectoryScoreResponse]) -> list[str]:
    """General stages in the order in which rollouts first visit them."""
    return list(dict.fromkeys(v.general_stage for g in groups for r in g.rollouts for v in r.stages))


def penalized(rollouts: Iterable[RolloutResult]) -> tuple[int, int]:
    """(steps with gamma -1, steps with a gamma)."""
    gammas = [step.gamma for rollout in rollouts for step in rollout.steps if step.gamma is not None]
    return sum(gamma == -1 for gamma in gammas), len(gammas)


def rule_counts(rollouts: Sequence[RolloutResult]) -> list[RuleCount]:
    """One for each rule, 1 to 6; a step counts for every rule that flags it."""
    found = []
    for rule in RULES:
        steps = [sum(rule in step.rules for step in rollout.steps) for rollout in rollouts]
        found.append(RuleCount(rule, sum(steps), sum(count > 0 for count in steps)))
    return found


def pass_rate(groups: Iterable[TrajectoryScoreResponse]) -> float | None:
    """Over all rollouts with a known alpha; None without any."""
    alphas = [r.alpha for g in groups for r in g.rollouts if r.alpha is not None]
    return sum(alpha == 1 for alpha in alphas) / len(alphas) if alphas else None
