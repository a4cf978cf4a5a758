"""kill -9 of each service under load: nothing lost, nothing rewarded differently, and it goes on within seconds."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import psutil
import pytest

from tests.faults.services_under_fault import Platform, until
from tests.faults.traffic import Traffic

pytestmark = [
    pytest.mark.lean,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed"),
]
Recovered = Callable[[float], None]


def test_a_killed_worker(platform: Platform, recovered: Recovered) -> None:
    gateway = platform.gateway[0]
    requeued = 0.0
    for _ in range(5):  # the check of a busy worker may end before the signal reaches it
        rewards = gateway.count("lean_reward_rewards_total")
        with Traffic(platform.url) as traffic:
            traffic.flows(1)
            victim = platform.a_busy_worker()
            hosts = victim.hosts()
            victim.kill()
            recovered(traffic.flows())
            victim.start()
            _, alive = psutil.wait_procs(hosts, 60)
            assert alive == [], "a Lean outlived its worker"
        traffic.ledger.verify()
        assert gateway.count("lean_reward_rewards_total") - rewards == len(traffic.ledger.truth)
        platform.wait_ready()
        others = [gateway, *(worker for worker in platform.worker if worker is not victim)]
        assert sum(each.count("lean_reward_leases_expired_total", fate="crashed") for each in others) == 0
        requeued = sum(each.count("lean_reward_leases_expired_total", fate="requeued") for each in others)
        if requeued:
            break
    assert requeued >= 1


def test_a_killed_lean(platform: Platform, recovered: Recovered) -> None:
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        victim = platform.a_busy_worker()
        before = victim.count("lean_reward_engine_restarts_total", cause="crashed")
        for host in victim.hosts():
            host.kill()
        recovered(traffic.flows())
    traffic.ledger.verify()
    until(
        lambda: victim.count("lean_reward_engine_restarts_total", cause="crashed") > before,
        "the restart is counted",
    )


def test_a_killed_gateway(platform: Platform, recovered: Recovered) -> None:
    gateway = platform.gateway[0]
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        platform.a_busy_worker()
        gateway.kill()
        gateway.start()
        recovered(traffic.flows())
    traffic.ask_again()
    traffic.ledger.verify()
    platform.wait_ready()


def test_a_killed_redis_that_keeps_a_log(platform: Platform, recovered: Recovered) -> None:
    gateway = platform.gateway[0]
    rewards = gateway.count("lean_reward_rewards_total")
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        platform.a_busy_worker()
        platform.redis.kill()
        until(lambda: not gateway.count("lean_reward_queue_reachable"), "the gateway sees that the queue is away")
        assert not gateway.ready()
        platform.start_redis()
        recovered(traffic.flows())
    traffic.ask_again()
    traffic.ledger.verify()
    assert gateway.count("lean_reward_rewards_total") - rewards >= len(traffic.ledger.truth)
    assert sum(worker.count("lean_reward_worker_queue_errors_total") for worker in platform.worker) >= 1
    platform.wait_ready()
