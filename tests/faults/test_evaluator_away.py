"""The evaluator dies or sleeps under hybrid batches: Lean decides everything, and the gateway says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.faults.services_under_fault import WHOLE_SUITE, Platform, Service, until
from tests.faults.traffic import Traffic

pytestmark = WHOLE_SUITE
Recovered = Callable[[float], None]


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("hybrid"), evaluator=True)
    try:
        made.start()
        until(lambda: made.gateway[0].count("lean_reward_evaluators_ready") == 1, "the gateway sees the evaluator")
        yield made
    finally:
        made.stop()


def predictor_of(platform: Platform) -> Service:
    assert platform.predictor is not None
    return platform.predictor


def test_a_killed_evaluator(hybrid: Platform, recovered: Recovered) -> None:
    gateway, evaluator = hybrid.gateway[0], predictor_of(hybrid)
    with Traffic(hybrid.url, mode="hybrid") as traffic:
        traffic.flows(1)
        evaluator.kill()
        traffic.flows()
        until(lambda: gateway.count("lean_reward_evaluators_ready") == 0, "the gateway sees that it is away")
        assert gateway.ready(), "without its evaluator the gateway goes on with Lean"
        evaluator.start()
        until(lambda: gateway.count("lean_reward_evaluators_ready") == 1, "the gateway sees it again")
        recovered(traffic.flows())
    traffic.ledger.verify()
    assert gateway.count("lean_reward_evaluator_failures_total") >= 1


def test_an_evaluator_that_sleeps(hybrid: Platform, recovered: Recovered) -> None:
    gateway, evaluator = hybrid.gateway[0], predictor_of(hybrid)
    with Traffic(hybrid.url, mode="hybrid") as traffic:
        traffic.flows(1)
        with evaluator.paused():
            traffic.flows()
            until(lambda: gateway.count("lean_reward_evaluators_ready") == 0, "the gateway sees that it is away")
        until(lambda: gateway.count("lean_reward_evaluators_ready") == 1, "the gateway sees it again")
        recovered(traffic.flows())
    traffic.ledger.verify()
