"""A prepared candidate as a job for Lean's queue."""

from __future__ import annotations

from reward_gateway.batches.prepare import Prepared
from services.contracts.lean import LeanJob
from services.queue.jobs import Submission
from services.runtime.tracing import traceparent


def submission(prepared: Prepared, *, priority: int, timeout_s: float, label_only: bool = False) -> Submission:
    """`priority` is the queue's own (-1000 to 1000), `timeout_s` the limit of the check."""
    task = prepared.task
    if task.timeout_s != timeout_s:
        task = task.model_copy(update={"timeout_s": timeout_s})
    job = LeanJob(key=prepared.key, task=task, label_only=label_only, trace=traceparent())
    return Submission(key=prepared.key, payload=job.model_dump_json().encode(), priority=priority, timeout_s=timeout_s)
