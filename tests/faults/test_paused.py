"""SIGSTOP and SIGCONT of each service under load: what wakes up late changes nothing, and says so."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.faults.services_under_fault import LEASE_S, WHOLE_SUITE, Platform, until
from tests.faults.traffic import Traffic

pytestmark = WHOLE_SUITE
Recovered = Callable[[float], None]
_SIGN_OF_LIFE_S = 10.0  # a gateway that is silent for longer is taken for dead


@pytest.fixture(scope="module")
def two_gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("two"), gateways=2)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_worker_that_sleeps_longer_than_its_lease(two_gateways: Platform, recovered: Recovered) -> None:
    """Another worker does its checks; what it says of them when it wakes up is stale and counts for nothing."""
    platform = two_gateways
    gateway = platform.gateway[0]
    rewards = gateway.count("lean_reward_rewards_total")
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        victim = platform.a_busy_worker()
        with victim.paused():
            time.sleep(2 * LEASE_S)
            traffic.flows()
        recovered(traffic.flows())
    traffic.ledger.verify()
    assert gateway.count("lean_reward_rewards_total") - rewards == len(traffic.ledger.truth)
    until(
        lambda: victim.count("lean_reward_claims_lost_total") + victim.count("lean_reward_results_stale_total") > 0,
        "the worker counts what it lost",
    )


def test_a_redis_that_does_not_answer(two_gateways: Platform, recovered: Recovered) -> None:
    platform = two_gateways
    gateway = platform.gateway[0]
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        platform.a_busy_worker()
        with platform.redis.paused():
            until(lambda: not gateway.count("lean_reward_queue_reachable"), "the gateway sees it")
            until(lambda: not gateway.ready(), "the gateway is not ready")
        recovered(traffic.flows())
    traffic.ask_again()
    traffic.ledger.verify()
    assert sum(worker.count("lean_reward_worker_queue_errors_total") for worker in platform.worker) >= 1
    platform.wait_ready()


def test_a_lean_that_sleeps_for_a_while(two_gateways: Platform, recovered: Recovered) -> None:
    """Shorter than the check's limit: nothing but time is lost."""
    platform = two_gateways
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        for host in platform.a_busy_worker().hosts():
            host.send_signal(signal.SIGSTOP)
            time.sleep(3.0)
            host.send_signal(signal.SIGCONT)
        recovered(traffic.flows())
    traffic.ledger.verify()


def test_a_lean_that_never_wakes_up(two_gateways: Platform, recovered: Recovered) -> None:
    """Its check has no verdict, and the process is thrown away: nothing more is asked of it when it could wake up."""
    platform = two_gateways
    with Traffic(platform.url, lean_timeout_s=15.0) as traffic:
        traffic.flows(1)
        victim = platform.a_busy_worker()
        (host,) = victim.hosts()
        host.send_signal(signal.SIGSTOP)
        until(lambda: not host.is_running(), "the stopped Lean is killed")
        recovered(traffic.flows())
    traffic.ledger.verify(undecided=1)
    platform.wait_ready()


def test_a_gateway_that_was_taken_for_dead(two_gateways: Platform, recovered: Recovered) -> None:
    """Another gateway gives up its jobs; when it wakes up it asks for them again, and its clients are answered."""
    platform = two_gateways
    sleeper, other = platform.gateway
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        platform.a_busy_worker()
        with sleeper.paused():
            time.sleep(_SIGN_OF_LIFE_S + 5.0)
            assert other.ready()
        recovered(traffic.flows())
    traffic.ask_again()
    traffic.ledger.verify()
