"""What passes in and out of the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Priorities share a sorted set's score (a double) with the turn of their line, see scripts/_shared.lua.
PRIORITY_LIMIT = 1_000

STEPS = 9
"""Priorities in a band: 0 to 8 are one, 9 to 17 the next. A higher band goes first whoever it belongs to; within a band
flows take turns, and a priority only orders what one flow wants."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that a subscriber wants.

    ``key`` identifies the work (a content hash): jobs of equal key share one run, and the first one's ``payload`` is
    the one that runs. ``priority`` -1000 to 1000, higher runs first (see ``STEPS``). ``timeout_s``: the time limit of
    the check.
    """

    key: str
    payload: bytes
    priority: int
    timeout_s: float

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("a job's key must not be empty")
        if not -PRIORITY_LIMIT <= self.priority <= PRIORITY_LIMIT:
            raise ValueError(f"priority {self.priority} is not within -{PRIORITY_LIMIT} to {PRIORITY_LIMIT}")
        if not 0 < self.timeout_s < float("inf"):
            raise ValueError(f"timeout_s must be positive and finite, not {self.timeout_s}")


@dataclass(frozen=True, slots=True)
class Claim:
    """A job in the hands of a worker until its lease ends.

    ``token`` names this lease and no other. ``attempt`` counts from 1. ``timeout_s`` and ``priority`` are the highest
    of the job's subscribers at the moment of the claim.
    """

    key: str
    payload: bytes
    token: str
    attempt: int
    timeout_s: float
    priority: int


@dataclass(frozen=True, slots=True)
class Completion:
    """The result of a claimed job.

    ``timed_out``: the check reached its time limit, so a longer one might have ended otherwise. Subscribers who want
    more than ``claim.timeout_s`` then wait for another run.
    """

    claim: Claim
    result: bytes
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """A job's end, told to one subscriber.

    ``done``: ``result`` is what the worker gave. ``crashed``: the worker vanished on every attempt; ``result`` is None.
    """

    subscriber: str
    key: str
    result: bytes | None
    outcome: Literal["done", "crashed"]


@dataclass(frozen=True, slots=True)
class SubmitReport:
    """``queued``: new jobs. ``joined``: jobs that were waiting or running already. ``finished``: keys that this
    subscriber was answered before; nothing was queued for them, see ``JobQueue.delivered``."""

    queued: int
    joined: int
    finished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CancelReport:
    """``removed``: waiting jobs that left the queue. ``stopped``: running checks that were told to stop. ``shared``:
    jobs that go on for other subscribers."""

    removed: int
    stopped: int
    shared: int


@dataclass(frozen=True, slots=True)
class ReapReport:
    """``requeued``: jobs of vanished workers that wait again. ``crashed``: jobs given up. ``expired``: jobs that nobody
    wants any more."""

    requeued: int
    crashed: int
    expired: int


@dataclass(frozen=True, slots=True)
class QueueStats:
    """A cheap look at the queue.

    ``depth``: jobs waiting. ``oldest_age_s``: how long the oldest of them has waited, 0 when none waits. ``running``:
    leased jobs, of which ``overdue`` have an expired lease. ``flows``: parties with waiting jobs, counted once for
    each priority. ``workers``: announced workers. ``done``: jobs completed so far, for rates (it begins again when the
    queue was idle for long). ``epoch``: identity of the server's process.
    """

    depth: int
    oldest_age_s: float
    running: int
    overdue: int
    flows: int
    workers: int
    done: int
    epoch: str
