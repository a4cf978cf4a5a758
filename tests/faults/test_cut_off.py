"""A network that cuts a worker from Redis and heals: its jobs are done elsewhere, and what it sends late is stale."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.faults.namespaces import NEAR, NotAllowed, cable, inside
from tests.faults.relay import Relay
from tests.faults.services_under_fault import HOST, LEASE_S, WHOLE_SUITE, LeanWorker, Platform, until
from tests.faults.traffic import Traffic

pytestmark = WHOLE_SUITE
Recovered = Callable[[float], None]


@pytest.fixture
def relay(platform: Platform) -> Iterator[Relay]:
    with Relay(platform.redis.port) as line:
        yield line


@pytest.fixture
def far_worker(platform: Platform, relay: Relay) -> Iterator[LeanWorker]:
    """A worker that reaches Redis over the relay; the other one stays whole, a third pauses for the test."""
    worker = platform.make_worker("far", f"redis://{HOST}:{relay.port}/0")
    with platform.worker[1].paused():
        worker.start()
        try:
            until(worker.ready, f"the far worker is ready, log {worker.log}")
            yield worker
        finally:
            worker.stop()


@pytest.mark.parametrize("fault", ["cut", "silence"])
def test_a_line_that_breaks_for_longer_than_a_lease(
    platform: Platform, relay: Relay, far_worker: LeanWorker, recovered: Recovered, fault: str
) -> None:
    gateway = platform.gateway[0]
    rewards = gateway.count("lean_reward_rewards_total")
    with Traffic(platform.url) as traffic:
        traffic.flows(1)
        until(far_worker.busy, "the far worker is busy")
        getattr(relay, fault)()
        time.sleep(2 * LEASE_S)
        until(lambda: not far_worker.ready(), "the far worker says that its queue is away")
        traffic.flows()
        relay.mend()
        recovered(traffic.flows())
        until(far_worker.ready, "the far worker is back")
    traffic.ledger.verify()
    assert gateway.count("lean_reward_rewards_total") - rewards == len(traffic.ledger.truth)
    assert far_worker.count("lean_reward_worker_queue_errors_total") >= 1


def test_a_network_that_drops_everything(tmp_path: Path, recovered: Recovered) -> None:
    """Redis and a worker in network namespaces with a cable between them; the others reach Redis by its socket."""
    try:
        with cable() as line:
            socket_path = tmp_path / "redis.sock"
            platform = Platform(tmp_path, workers=1, redis_socket=socket_path)
            port = platform.redis.port
            platform.redis.command = [
                *inside(line.near),
                *platform.redis.command,
                "--bind",
                NEAR,
                "--protected-mode",
                "no",
            ]
            far = platform.make_worker("far", f"redis://{NEAR}:{port}/0")
            far.command = [*inside(line.far), *far.command]

            def count(metric: str) -> float:
                text = line.read(f"http://{HOST}:{far.port}/metrics")
                families = text_string_to_metric_families(text)
                return sum(each.value for family in families for each in family.samples if each.name == metric)

            try:
                platform.start()
                far.start()
                until(lambda: far.said("slot_ready"), f"the far worker is ready, log {far.log}")
                with Traffic(platform.url) as traffic:
                    until(lambda: count("lean_reward_checks_total") > 0, "the far worker works")
                    line.cut()
                    time.sleep(2 * LEASE_S)
                    traffic.flows()
                    line.mend()
                    recovered(traffic.flows())
                    done = count("lean_reward_checks_total")
                    until(lambda: count("lean_reward_checks_total") > done, "the far worker works again")
                traffic.ledger.verify()
                assert count("lean_reward_worker_queue_errors_total") >= 1
                assert platform.gateway[0].count("lean_reward_rewards_total") == len(traffic.ledger.truth)
            finally:
                far.stop()
                platform.stop()
    except NotAllowed as error:
        pytest.skip(f"no network namespaces here: {error}")
