"""Quotas of API keys, counted in Redis so that they hold for all gateways together.

What a batch holds is renewed while it runs and fades when its gateway dies. A Redis that does not answer counts nothing
and refuses nothing: what needs it fails for that reason, and what does not is bounded by the process's own limits.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from redis.asyncio import Redis

from reward_gateway.limits.keys import limits_of
from services.contracts.problems import ProblemCode
from services.queue.connection import reach
from services.queue.errors import QueueUnavailable
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.problems import ProblemError
from services.runtime.settings import KeyLimits

_LIMIT_S = 5.0
_HOLD_S = 20.0
_RENEW_S = 5.0
_MINUTE_MS = 60_000
_IN_FLIGHT_RETRY_S = 5


@dataclass(frozen=True, slots=True)
class _Held:
    """`a_minute`, `in_flight`: the limits of its key that it was counted against; 0 for none."""

    owner: str
    candidates: int
    a_minute: int
    in_flight: int


class Quotas:
    """One for each gateway process; `renew` runs as a task for its life. `several`: more than one caller is known."""

    def __init__(self, redis: Redis, *, prefix: str, limits: Mapping[str, KeyLimits], several: bool) -> None:
        self._redis = redis
        self._prefix = prefix
        self._limits = limits
        self._held: dict[str, _Held] = {}
        self._take = redis.register_script((files("reward_gateway.limits") / "quota.lua").read_text())
        self.several = several

    def max_batch(self, owner: str, server: int) -> int:
        """The most candidates in one batch of a caller; `server`: of anybody."""
        own = limits_of(self._limits, owner).max_batch
        return server if own is None else min(own, server)

    async def request(self, owner: str) -> None:
        """Count a request that brings a body. Raises `ProblemError` (429)."""
        allowed = limits_of(self._limits, owner).requests_per_minute
        if allowed is not None:
            await self._count(owner, "requests", 1, allowed, 0, "")

    async def take(self, owner: str, subscriber: str, candidates: int, *, adopted: bool = False) -> None:
        """Count a batch in, until `give_back`; one that another gateway let in is only held.

        Raises `ProblemError` (429).
        """
        limits = limits_of(self._limits, owner)
        most, allowed = limits.max_in_flight or 0, limits.candidates_per_minute or 0
        if (most or allowed) and not adopted:
            await self._count(owner, "candidates", candidates, allowed, most, subscriber)
        if most or allowed:
            self._held[subscriber] = _Held(owner, candidates, 0 if adopted else allowed, most)
        metrics.KEY_CANDIDATES.labels(owner).inc(candidates)

    async def give_back(self, subscriber: str, *, unscored: bool = False) -> None:
        """A batch has ended; one that the server could not score has used nothing. What Redis does not hear fades."""
        held = self._held.pop(subscriber, None)
        if held is None:
            return
        key = self._key(held.owner)
        try:
            if held.in_flight:
                await reach(self._redis.hdel(key, f"@{subscriber}"), _LIMIT_S)
            if unscored and held.a_minute:
                taken_ms = round(held.candidates * _MINUTE_MS / held.a_minute)
                await reach(self._redis.hincrby(key, "candidates", -taken_ms), _LIMIT_S)
        except QueueUnavailable as error:
            get_logger().warning("quota_not_given_back", key=held.owner, error=str(error))

    async def renew(self) -> None:
        """Keep what is held from fading. Ends only by cancellation."""
        while True:
            await asyncio.sleep(_RENEW_S)
            for subscriber, held in list(self._held.items()):
                if held.in_flight and subscriber in self._held:  # it may have ended meanwhile
                    await self._ask(held.owner, "candidates", held.candidates, 0, 0, subscriber)

    async def _count(
        self,
        owner: str,
        rate: Literal["requests", "candidates"],
        amount: int,
        allowed: int,
        most: int,
        subscriber: str,
    ) -> None:
        answer = await self._ask(owner, rate, amount, allowed, most, subscriber)
        if answer is None or answer[0] == b"ok":
            return
        if answer[0] == b"rate":
            metrics.QUOTA_REFUSALS.labels(rate).inc()
            raise _refused(f"{allowed} {rate} a minute", max(1, math.ceil(answer[1] / 1000)))
        metrics.QUOTA_REFUSALS.labels("in_flight").inc()
        raise _refused(f"{most} candidates in flight; {answer[1]} would be too many", _IN_FLIGHT_RETRY_S)

    async def _ask(
        self, owner: str, rate: str, amount: int, allowed: int, most: int, subscriber: str
    ) -> tuple[bytes, int] | None:
        """The script's answer; None when the server gives none."""
        call = self._take(
            keys=[self._key(owner)], args=[rate, amount, allowed, most, subscriber, round(_HOLD_S * 1000)]
        )
        try:
            found: tuple[bytes, int] = await reach(call, _LIMIT_S)
        except QueueUnavailable as error:
            get_logger().warning("quota_not_counted", key=owner, error=str(error))
            return None
        return found

    def _key(self, owner: str) -> str:
        return f"{self._prefix}:quota:{owner}"


def _refused(what: str, retry_s: int) -> ProblemError:
    return ProblemError(ProblemCode.QUOTA_EXCEEDED, f"this key may use {what}", retry_after_s=retry_s)
