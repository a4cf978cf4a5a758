"""Spans at a collector's door: what is sent, what belongs together, and that nothing is made when it is off."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from services.runtime import tracing
from services.runtime.settings import TracingSettings


class Collector:
    """Takes OTLP over HTTP, as a collector does, and keeps the spans by name."""

    def __init__(self) -> None:
        kept: list[tuple[str, Span]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    service = next(
                        a.value.string_value for a in resource.resource.attributes if a.key == "service.name"
                    )
                    kept.extend((service, one) for scope in resource.scope_spans for one in scope.spans)
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.spans = kept
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def named(self, name: str) -> list[Span]:
        return [one for _, one in self.spans if one.name == name]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    opened = Collector()
    yield opened
    tracing.end_tracing()
    opened.close()


def attributes(span: Span) -> dict[str, object]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


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
