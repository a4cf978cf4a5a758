"""Everything that language models add to a group, within a budget of time: segments, then beta of each stage visit."""

from __future__ import annotations

import asyncio

from reward_gateway.trajectories.endpoint import ModelUnavailable
from reward_gateway.trajectories.group import Group, Work, penalise
from reward_gateway.trajectories.judge import Judge
from reward_gateway.trajectories.outcomes import settled
from reward_gateway.trajectories.segment import Segmenter
from services.contracts.trajectories import RolloutFlag, Want
from services.process.certificates.claims import Visit
from services.process.judging.transcript import Transcript
from services.rewards.band import pass_rate

_ROLLOUTS = 64
"""Rollouts at work at once in one group: views are held in memory while they are judged."""


async def annotate(group: Group, owner: str, segmenter: Segmenter, judge: Judge, limit_s: float) -> None:
    """Fill in placements, penalties and betas; what is not there after `limit_s` seconds stays out, flagged."""
    if not group.wants_segments:
        return
    places = asyncio.Semaphore(_ROLLOUTS)
    tasks = {
        asyncio.create_task(_annotate(group, work, owner, segmenter, judge, places)): work for work in group.rollouts
    }
    try:
        _, late = await asyncio.wait(tasks, timeout=max(0.0, limit_s))
        for task in late:
            tasks[task].flags.add(RolloutFlag.DEADLINE)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for result in ended:
        if isinstance(result, Exception):
            raise result


async def _annotate(
    group: Group, work: Work, owner: str, segmenter: Segmenter, judge: Judge, places: asyncio.Semaphore
) -> None:
    async with places:
        try:
            await segmenter.segment(group, work)
        except ModelUnavailable:
            return  # the rollout falls back to its outcome, and says so by its flags
        if work.placement is None or not _beta_counts(group):
            return
        waiting = [visit for visit in work.placement.visits if visit not in work.betas]
        if not waiting:
            return
        transcript = Transcript(work.steps, await asyncio.to_thread(penalise, group, work))

        async def one(visit: Visit) -> None:
            work.betas[visit] = await judge.judge(owner, group, work, transcript, visit)

        await asyncio.gather(*map(one, waiting))


def _beta_counts(group: Group) -> bool:
    """Whether beta is asked for, or may still change a reward: outside the process band it cannot."""
    if Want.BETA in group.wants:
        return True
    if not group.wants_rewards:
        return False
    return not all(map(settled, group.rollouts)) or pass_rate(w.alpha for w in group.rollouts).in_process_band
