"""How many CPU cores this process may use: its affinity, and the quota of its container where it has one."""

from __future__ import annotations

import os
from pathlib import Path

_V2 = Path("/sys/fs/cgroup/cpu.max")
_V1 = (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"))


def available_cores() -> int:
    """At least one. A container limited to 4 of a node's 64 cores has 4, though it sees 64."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = quota_cores(_read(_V2) or " ".join(_read(path) for path in _V1))
    return max(1, seen if quota is None else min(seen, round(quota)))


def quota_cores(words: str) -> float | None:
    """Cores from a cgroup's `QUOTA PERIOD`, microseconds both; None for `max`, `-1` (no limit) or anything unreadable.

    >>> quota_cores("250000 100000")
    2.5
    """
    try:
        quota, period = (int(word) for word in words.split())
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
