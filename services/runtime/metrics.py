"""Every Prometheus metric of the platform, one section a component (`docs/metrics.md` documents each).

Names start with `lean_reward_`; labels are bounded enumerations, never ids or text of a candidate.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_CHECK_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_BATCH_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 90, 120, 300, 600, 1200)

# The sections below name their component; each is filled by the code that observes it.

# Lean worker

CHECKS = Counter("lean_reward_checks", "Checks that ended with an outcome.", ("status", "reason"))
CHECK_SECONDS = Histogram("lean_reward_check_seconds", "Time of one check.", ("status",), buckets=_CHECK_SECONDS)
CHECKS_CANCELLED = Counter("lean_reward_checks_cancelled", "Checks stopped because nobody wants them any more.")
CANCEL_SECONDS = Histogram(
    "lean_reward_cancel_seconds",
    "From a cancellation's arrival until the engine is clean again.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10),
)
CHECKS_RETRIED = Counter("lean_reward_checks_retried", "Checks run once more on a clean engine.", ("cause",))
ENGINE_RESTARTS = Counter("lean_reward_engine_restarts", "Engines thrown away and started again.", ("cause",))
ENGINE_WARM_UPS = Counter("lean_reward_engine_warm_ups", "Engines started and warmed.", ("result",))
CLAIMS = Counter("lean_reward_claims", "Jobs taken from the queue.")
CLAIMS_RELEASED = Counter("lean_reward_claims_released", "Jobs given back unchecked, the attempt uncounted.", ("cause",))
CLAIMS_LOST = Counter("lean_reward_claims_lost", "Jobs whose lease was lost or which nobody wants, told by a heartbeat.")
RESULTS_STALE = Counter("lean_reward_results_stale", "Results that came after the lease had gone to somebody else.")
RESULTS_UNSENT = Gauge("lean_reward_results_unsent", "Results that wait for the queue.")
QUEUE_ERRORS = Counter("lean_reward_worker_queue_errors", "Calls of the worker that the queue did not answer.", ("call",))
SLOTS = Gauge("lean_reward_slots", "Engines of this worker by state.", ("state",))
ENGINE_RSS = Gauge("lean_reward_engine_rss_bytes", "Resident memory of an engine's processes.", ("slot",))

__all__ = ["Counter", "Gauge", "Histogram"]
