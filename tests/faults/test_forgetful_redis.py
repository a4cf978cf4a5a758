"""Redis without persistence, and everything at once: what was lost is asked again, what is asked again is equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.faults.services_under_fault import WHOLE_SUITE, Platform
from tests.faults.traffic import Traffic

pytestmark = WHOLE_SUITE
Recovered = Callable[[float], None]


def test_a_redis_that_forgets_everything(tmp_path: Path, recovered: Recovered) -> None:
    platform = Platform(tmp_path, persist=False)
    try:
        platform.start()
        with Traffic(platform.url) as traffic:
            traffic.flows(1)
            platform.a_busy_worker()
            platform.redis.kill()
            platform.start_redis()
            recovered(traffic.flows())
        traffic.ask_again()  # their records are gone: Lean is asked again
        traffic.ledger.verify()
        assert platform.gateway[0].said("batch_asked_again")
    finally:
        platform.stop()


def test_a_power_cut(platform: Platform, recovered: Recovered) -> None:
    """Everything is killed at the same time and started again, Redis with what it had written down."""
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        platform.a_busy_worker()
        for service in platform.services:
            service.kill()
        platform.start_redis()
        for service in platform.services[1:]:
            service.start()
        recovered(traffic.flows())
    traffic.ask_again()
    traffic.ledger.verify()
    platform.wait_ready()
