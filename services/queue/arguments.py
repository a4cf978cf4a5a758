"""What the queue's scripts are given and what they answer, as the types of ``jobs``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from services.queue.jobs import Claim, Completion, Delivery, Submission

T = TypeVar("T")

CHUNK_JOBS = 128
CHUNK_BYTES = 4 << 20


def milliseconds(seconds: float) -> int:
    """Whole milliseconds, at least one."""
    return max(1, round(seconds * 1000))


def in_chunks(items: Iterable[T], size: Callable[[T], int] | None = None) -> Iterator[list[T]]:
    """Consecutive parts of at most CHUNK_JOBS items and, where ``size`` measures them, about CHUNK_BYTES bytes."""
    chunk: list[T] = []
    volume = 0
    for item in items:
        chunk.append(item)
        volume += size(item) if size else 0
        if len(chunk) == CHUNK_JOBS or volume >= CHUNK_BYTES:
            yield chunk
            chunk, volume = [], 0
    if chunk:
        yield chunk


def merged(submissions: Iterable[Submission]) -> dict[str, Submission]:
    """One submission for each key, with the highest priority and the longest limit that were asked for."""
    unique: dict[str, Submission] = {}
    for submission in submissions:
        known = unique.get(submission.key)
        unique[submission.key] = (
            submission
            if known is None
            else replace(
                known,
                priority=max(known.priority, submission.priority),
                timeout_s=max(known.timeout_s, submission.timeout_s),
            )
        )
    return unique


def submission_arguments(submissions: Iterable[Submission]) -> Iterator[str | bytes | int]:
    for submission in submissions:
        yield submission.key
        yield submission.payload
        yield submission.priority
        yield milliseconds(submission.timeout_s)


def lease_arguments(claims: Iterable[Claim]) -> Iterator[str]:
    for claim in claims:
        yield claim.key
        yield claim.token


def completion_arguments(completions: Iterable[Completion]) -> Iterator[str | bytes | int]:
    for completion in completions:
        yield completion.claim.key
        yield completion.claim.token
        yield int(completion.timed_out)
        yield completion.result


def read_claims(answer: Sequence[Any]) -> list[Claim]:
    """The jobs in the answer of claim.lua."""
    return [
        Claim(key.decode(), payload, token.decode(), attempt, timeout_ms / 1000, priority)
        for key, payload, token, attempt, timeout_ms, priority in zip(*(iter(answer[1:]),) * 6, strict=True)
    ]


def read_delivery(subscriber: str, key: str, ending: bytes) -> Delivery:
    """A delivery from its stored form, see ``results`` in scripts/_shared.lua."""
    if ending[:1] == b"d":
        return Delivery(subscriber, key, ending[1:], "done")
    return Delivery(subscriber, key, None, "crashed")
