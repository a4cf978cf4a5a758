"""One moment of a gateway as a `LiveView`: a reading of what it holds and counts anyway."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterator, Mapping

from prometheus_client.metrics import MetricWrapperBase

from reward_gateway.batches.batch import Batch
from reward_gateway.gateway import Gateway
from services.contracts.live import (
    LiveBatch,
    LiveLeanShare,
    LiveParts,
    LiveProblem,
    LiveQueue,
    LiveRewards,
    LiveTrouble,
    LiveView,
)
from services.contracts.outcomes import Source, Verdict
from services.runtime import metrics
from services.runtime.trouble import recent_trouble

_LISTED = 50


async def look(gateway: Gateway) -> LiveView:
    """What the gateway does now. Programs, ids and texts of callers are not in it."""
    readiness = await gateway.readiness()
    running = sorted(gateway.batches.running, key=lambda batch: batch.received_at)
    stats = gateway.desk.stats if gateway.desk.reachable else None
    lean, evaluator = readiness.lean, readiness.evaluator
    return LiveView(
        at_s=round(time.time(), 3),
        missing=readiness.missing,
        warnings=readiness.warnings,
        batches=tuple(_batch(batch) for batch in running[:_LISTED]),
        more_batches=max(0, len(running) - _LISTED),
        queue=None
        if stats is None
        else LiveQueue(depth=stats.depth, oldest_age_s=round(stats.oldest_age_s, 3), running=stats.running),
        engines=LiveParts(ready=lean.ready if lean else 0, all=lean.engines if lean else 0),
        evaluators=LiveParts(ready=evaluator.ready if evaluator else 0, all=evaluator.configured if evaluator else 0),
        rewards=_rewards(),
        lean_share=_lean_share(),
        problems=_problems(),
        troubles=tuple(
            LiveTrouble(at_s=round(trouble.at_s, 3), level=trouble.level, event=trouble.event, times=trouble.times)
            for trouble in recent_trouble
        ),
    )


def _batch(batch: Batch) -> LiveBatch:
    progress = batch.progress()
    return LiveBatch(
        mode=batch.plan.mode,
        candidates=progress.candidates,
        decided=progress.decided,
        lean=progress.lean,
        elapsed_s=progress.elapsed_s,
        deadline_s=batch.plan.deadline_s,
    )


def _rewards() -> tuple[LiveRewards, ...]:
    counts: Tally[tuple[Source, Verdict]] = Tally()
    for labels, value in _series(metrics.REWARDS, "_total"):
        counts[Source(labels["source"]), Verdict(labels["verdict"])] += int(value)
    return tuple(
        LiveRewards(source=source, verdict=verdict, count=count)
        for (source, verdict), count in sorted(counts.items())
        if count
    )


def _lean_share() -> LiveLeanShare:
    (_, total), (_, batches) = next(_series(metrics.LEAN_SHARE, "_sum")), next(_series(metrics.LEAN_SHARE, "_count"))
    return LiveLeanShare(total=total, batches=int(batches))


def _problems() -> tuple[LiveProblem, ...]:
    found = ((labels["code"], int(value)) for labels, value in _series(metrics.PROBLEMS, "_total"))
    return tuple(LiveProblem(code=code, count=count) for code, count in sorted(found) if count)


def _series(metric: MetricWrapperBase, suffix: str) -> Iterator[tuple[Mapping[str, str], float]]:
    for family in metric.collect():
        for sample in family.samples:
            if sample.name == family.name + suffix:
                yield sample.labels, sample.value
