"""Spans at a collector's door: what is sent, what belongs together, and that nothing is made when it is off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.runtime import tracing
from services.runtime.settings import TracingSettings
from tests.services.runtime.collector import Collector, attributes


@pytest.fixture
def collector() -> Iterator[Collector]:
    opened = Collector()
    yield opened
    tracing.end_tracing()
    opened.close()


def test_without_an_endpoint_there_are_no_spans() -> None:
    tracing.configure_tracing(TracingSettings(), "gateway")
    with tracing.span("batch", candidates=3) as span:
        span.set(outcome="answered")
        assert tracing.traceparent() is None


def test_a_span_in_another_process_belongs_to_the_batch(collector: Collector) -> None:
    tracing.configure_tracing(TracingSettings(endpoint=collector.url), "gateway")
    with tracing.span("batch", candidates=3) as batch:
        batch.set(outcome="answered", nothing=None)
        with tracing.span("merge"):
            pass
        carried = tracing.traceparent()
    with tracing.span("check", carried, reason="ok"):
        pass
    tracing.end_tracing()
    (batch_span,), (merge,), (check,) = (collector.named(name) for name in ("batch", "merge", "check"))
    assert {batch_span.trace_id, merge.trace_id, check.trace_id} == {batch_span.trace_id}
    assert (merge.parent_span_id, check.parent_span_id) == (batch_span.span_id, batch_span.span_id)
    assert attributes(batch_span) == {"lean_reward.candidates": 3, "lean_reward.outcome": "answered"}
    assert collector.spans[0][0] == "lean-reward-gateway"


def test_a_failure_is_marked_by_its_kind_without_its_text(collector: Collector) -> None:
    tracing.configure_tracing(TracingSettings(endpoint=collector.url), "gateway")
    with pytest.raises(ValueError, match="sesame"), tracing.span("batch"):
        raise ValueError("sesame")
    tracing.end_tracing()
    (span,) = collector.named("batch")
    assert (span.status.message, len(span.events)) == ("ValueError", 0)
    assert b"sesame" not in span.SerializeToString()


def test_what_another_process_did_not_sample_is_not_sampled_here(collector: Collector) -> None:
    tracing.configure_tracing(TracingSettings(endpoint=collector.url, share=0), "gateway")
    with tracing.span("batch"):
        carried = tracing.traceparent()
    assert carried is not None
    assert int(carried[-2:], 16) & 1 == 0
    tracing.end_tracing()
    assert not collector.spans
