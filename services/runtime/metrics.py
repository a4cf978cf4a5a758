"""Every Prometheus metric of the platform, one section a component (`docs/metrics.md` documents each).

Names start with `lean_reward_`; labels are bounded enumerations, never ids or text of a candidate.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_CHECK_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_BATCH_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 90, 120, 300, 600, 1200)

# The sections below name their component; each is filled by the code that observes it.

__all__ = ["Counter", "Gauge", "Histogram"]
