"""The life of one group: read, outcomes beside segmentation and judgement, rewards, all before its deadline."""

from __future__ import annotations

import asyncio
import random
import time

from redis.asyncio import Redis

from reward_gateway.batches.book import Batches
from reward_gateway.limits.keys import OWN_WORK
from reward_gateway.trajectories import certify
from reward_gateway.trajectories.annotate import annotate
from reward_gateway.trajectories.endpoint import ModelEndpoint
from reward_gateway.trajectories.group import Group, penalise, read_group
from reward_gateway.trajectories.judge import Judge
from reward_gateway.trajectories.outcomes import prove
from reward_gateway.trajectories.rows import answer_of
from reward_gateway.trajectories.segment import Segmenter
from reward_gateway.trajectories.votes import VoteStore
from services.contracts.trajectories import TrajectoryScoreResponse, Want
from services.process.penalties import NAMES
from services.queue.cache import VerdictCache
from services.runtime import metrics
from services.runtime.settings import Settings

_RESERVE_SHARE, _RESERVE_S = 0.1, 1.0
_CERTIFICATE_SHARE = 0.4
_AUDIT_PRIORITY = -100


class Trajectories:
    """Scores groups of rollouts, one call each, as many at once as come."""

    def __init__(self, settings: Settings, redis: Redis, batches: Batches) -> None:
        judge, prefix = settings.judge, settings.queue.prefix
        self._deadline_s = settings.gateway.deadline_s
        self._batches = batches
        self._audit_share, self._audit_s = settings.gateway.certify_share, settings.gateway.audit_timeout_s
        self._audits: set[asyncio.Task[None]] = set()
        self.votes = VoteStore(redis, prefix, judge.votes_s)
        self._endpoint: ModelEndpoint | None = None
        if judge.url is not None:
            cache = VerdictCache(redis, prefix=f"{prefix}:judge", ttl_s=judge.cache_s) if judge.cache_s else None
            self._endpoint = ModelEndpoint(judge, cache)
            self._segmenter = Segmenter(self._endpoint, judge)
            self._judge = Judge(self._endpoint, self.votes, judge)

    async def close(self) -> None:
        for audit in self._audits:
            audit.cancel()
        await asyncio.gather(*self._audits, return_exceptions=True)
        if self._endpoint is not None:
            await self._endpoint.close()

    async def score(self, text: str, owner: str, received_at: float) -> bytes:
        """The JSON of a `TrajectoryScoreResponse` for the body `text`. Raises `ProblemError`."""
        # Reading, parsing commands and counting are work for a processor: beside the event loop, not on it.
        group = await asyncio.to_thread(read_group, text)
        deadline_s = self._deadline_s if group.request.deadline_s is None else group.request.deadline_s
        # What waits for others ends a little before the deadline, so that the answer itself is there in time.
        ends_s = deadline_s - min(_RESERVE_S, _RESERVE_SHARE * deadline_s)
        certified = group.request.certify
        asked_s = ends_s * (1 - _CERTIFICATE_SHARE) if certified else ends_s
        await self._ask_others(group, owner, asked_s, received_at)
        if group.wants_gamma or certified:
            await asyncio.to_thread(_penalise, group)
        if certified:
            made = await asyncio.to_thread(certify.write, group)
            now = time.monotonic()
            await certify.check(group, owner, made, self._batches, ends_s - (now - received_at), now)
        answer = await asyncio.to_thread(_answer, group, received_at)
        if not certified and random.random() < self._audit_share:
            audit = asyncio.create_task(self._audit(group))
            self._audits.add(audit)
            audit.add_done_callback(self._audits.discard)
        return answer

    async def _audit(self, group: Group) -> None:
        """Have Lean certify what was answered, when it has nothing better to do; metric and log tell what it says."""
        await asyncio.to_thread(_penalise, group)
        made = await asyncio.to_thread(certify.write, group)
        await certify.check(group, OWN_WORK, made, self._batches, self._audit_s, time.monotonic(), _AUDIT_PRIORITY)

    async def _ask_others(self, group: Group, owner: str, ends_s: float, received_at: float) -> None:
        """Outcomes and annotation at the same time; when one fails, the other does not go on for nobody."""
        parts = [prove(group, owner, self._batches, deadline_s=ends_s, received_at=received_at)]
        if self._endpoint is not None:
            left_s = ends_s - (time.monotonic() - received_at)
            parts.append(annotate(group, owner, self._segmenter, self._judge, left_s))
        tasks = [asyncio.ensure_future(part) for part in parts]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _penalise(group: Group) -> None:
    for work in group.rollouts:
        if work.gammas is None:
            penalise(group, work)


def _answer(group: Group, received_at: float) -> bytes:
    library = certify.library() if any(work.certificate for work in group.rollouts) else None
    answer = answer_of(group, time.monotonic() - received_at, library)
    _count(group, answer)
    return answer.model_dump_json().encode()


def _count(group: Group, answer: TrajectoryScoreResponse) -> None:
    metrics.GROUP_SECONDS.observe(answer.elapsed_s)
    metrics.ROLLOUTS.inc(len(answer.rollouts))
    visits = judged = 0
    for work, result in zip(group.rollouts, answer.rollouts, strict=True):
        for flag in result.flags:
            metrics.ROLLOUT_FLAGS.labels(flag.value).inc()
        for row in work.gammas or ():
            for rule in row.rules:
                metrics.PENALTIES.labels(NAMES[rule]).inc()
        metrics.STEPS_JUDGED.inc(len(work.gammas or ()))
        for stage in result.stages if Want.BETA in group.wants else ():
            visits += 1
            judged += stage.beta is not None
            source = "nobody" if stage.source is None else stage.source.value
            metrics.STAGES.labels({1: "plus", -1: "minus", None: "none"}[stage.beta], source).inc()
    if visits:
        metrics.UNANNOTATED_SHARE.observe(1 - judged / visits)
