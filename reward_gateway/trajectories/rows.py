"""From a group whose parts are all known, or given up, to its rewards and rows (lean4agenticrl, equations 1 to 6)."""

from __future__ import annotations

import math

from reward_gateway.trajectories.group import Group, StageBeta, Work
from services.contracts.trajectories import (
    Phase,
    RolloutFlag,
    RolloutResult,
    StageOutcome,
    StepRow,
    TrajectoryScoreResponse,
    Want,
)
from services.process.trajectories import Phase as StepPhase
from services.process.workflow import execution
from services.rewards.algebra import as_float, step_tenths
from services.rewards.band import PassRate, pass_rate
from services.rewards.group import RolloutSignals, StepReward, StepSignals, score_group


def answer_of(group: Group, elapsed_s: float, library: str | None = None) -> TrajectoryScoreResponse:
    """The whole answer. Pure, and work for a processor: linear in the steps. `library`: what certificates rest on."""
    rate = pass_rate(work.alpha for work in group.rollouts)
    rewards: list[tuple[StepReward, ...]] | None = None
    if group.wants_rewards:
        rewards = _rewards(group, rate)
    return TrajectoryScoreResponse(
        group=group.request.group,
        pass_rate=None if rate.value is None else float(rate.value),
        process_band=rate.in_process_band,
        rollouts=tuple(
            _result(group, work, rate, None if rewards is None else rewards[index])
            for index, work in enumerate(group.rollouts)
        ),
        certificate_library=library,
        elapsed_s=elapsed_s,
    )


def beta_at(work: Work, step: int) -> int | None:
    """beta of the stage visit of a step; None where there is none."""
    row = None if work.placement is None else work.placement.rows[step]
    if row is None:
        return None
    stage = work.betas.get((row.node, row.visit))
    return None if stage is None else stage.beta


def _rewards(group: Group, rate: PassRate) -> list[tuple[StepReward, ...]]:
    numbers = {stage: index for index, stage in enumerate(group.request.general_workflow)}
    signals = []
    for work in group.rollouts:
        steps = []
        for step in work.steps:
            stage = None if work.placement is None else work.placement.general_stage(step.index)
            steps.append(
                StepSignals(
                    stage=None if stage is None else numbers[stage],
                    beta=beta_at(work, step.index),
                    gamma=gamma_at(work, step.index),
                )
            )
        signals.append(RolloutSignals(work.alpha, steps))
    scored = score_group(signals, stages=len(numbers)).steps
    return [_unsegmented(work, rows, rate) for work, rows in zip(group.rollouts, scored, strict=True)]


def gamma_at(work: Work, step: int) -> int:
    return 0 if work.gammas is None else work.gammas[step].gamma


def _unsegmented(work: Work, rows: tuple[StepReward, ...], rate: PassRate) -> tuple[StepReward, ...]:
    """Execution steps without a stage fall back to the outcome, as plain GRPO has it: the z-score of alpha over the
    group, with the planning steps in one term of weight 1/G * 1/n. In the band a penalty still lowers the reward, and
    the step then has the z-score of what it got.
    """
    if work.alpha is None or not rate.in_process_band:
        return rows
    corrected = list(rows)
    for step in work.steps:
        placed = work.placement is not None and work.placement.rows[step.index] is not None
        if step.phase is StepPhase.EXEC and not placed and gamma_at(work, step.index):
            tenths = step_tenths(work.alpha, None, -1, in_band=True)
            row = rows[step.index]
            corrected[step.index] = StepReward(as_float(tenths), row.weight, _outcome_score(tenths, rate), True)
    return tuple(corrected)


def _outcome_score(tenths: int, rate: PassRate) -> float:
    """(r - mean) / std over the group's alphas; 0 where they are all equal. Whole numbers until the last division."""
    failed = rate.known - rate.passed
    if not rate.passed or not failed:
        return 0.0
    mean_times = rate.passed - failed
    return (rate.known * tenths / 10 - mean_times) / (2 * math.sqrt(rate.passed * failed))


def _result(group: Group, work: Work, rate: PassRate, rewards: tuple[StepReward, ...] | None) -> RolloutResult:
    flags = set(work.flags)
    if work.alpha is None:
        flags.add(RolloutFlag.UNKNOWN_ALPHA)
    if group.wants_segments and work.placement is None and not work.planned_only:
        flags.add(RolloutFlag.UNSEGMENTED)
    beta_counts = Want.BETA in group.wants or (group.wants_rewards and rate.in_process_band)
    if beta_counts and any(beta_at(work, step.index) is None for step in execution(work.steps)):
        flags.add(RolloutFlag.UNANNOTATED)
    stages = _stages(group, work)
    return RolloutResult(
        id=work.given.id,
        alpha=work.alpha,
        format=work.format,
        steps=tuple(_rows(group, work, rewards)),
        proof=work.proof,
        stages=stages,
        illegal_steps=_illegal(work),
        workflow=work.workflow if work.report is not None else None,
        workflow_report=work.report,
        votes=tuple(stage.votes for stage in stages if stage.votes is not None),
        flags=tuple(flag for flag in RolloutFlag if flag in flags),
        certificate=work.certificate,
    )


def _illegal(work: Work) -> tuple[int, ...]:
    """Reported where the workflow's graph is known; the general workflow has none."""
    return () if work.placement is None or work.workflow is None else work.placement.illegal


def _stages(group: Group, work: Work) -> tuple[StageOutcome, ...]:
    if work.placement is None or not group.wants & {Want.SEGMENTS, Want.BETA}:
        return ()
    known = work.betas if Want.BETA in group.wants else {}
    made = []
    for visit, steps in work.placement.visits.items():
        stage = known.get(visit, StageBeta(None))
        made.append(
            StageOutcome(
                node=visit[0],
                visit=visit[1],
                general_stage=work.placement.stages[visit[0]],
                steps=len(steps),
                beta=stage.beta,
                source=stage.source,
                votes=stage.votes,
            )
        )
    return tuple(made)


def _rows(group: Group, work: Work, rewards: tuple[StepReward, ...] | None) -> list[StepRow]:
    wants = group.wants
    segments, betas, gammas = Want.SEGMENTS in wants, Want.BETA in wants, Want.GAMMA in wants
    rewarded, advantaged = Want.REWARDS in wants, Want.ADVANTAGES in wants
    made = []
    for step in work.steps:
        row = None if work.placement is None else work.placement.rows[step.index]
        signal = None if rewards is None else rewards[step.index]
        judged = work.gammas[step.index] if gammas and work.gammas is not None else None
        placed = row if segments else None
        made.append(
            StepRow(
                step=step.index,
                source=step.source,
                phase=Phase(step.phase.value),
                node=None if placed is None else placed.node,
                general_stage=work.placement.stages[placed.node] if placed and work.placement else None,
                visit=None if placed is None else placed.visit,
                alpha=work.alpha,
                beta=beta_at(work, step.index) if betas else None,
                gamma=None if judged is None else judged.gamma,
                rules=() if judged is None else judged.rules,
                reward=signal.reward if signal is not None and rewarded else None,
                weight=signal.weight if signal is not None and advantaged else None,
                advantage=signal.advantage if signal is not None and advantaged else None,
            )
        )
    return made
