"""Traces by OpenTelemetry, one a batch across its processes: an extra (`lean-reward[tracing]`) and off by default.

A span is a context manager whatever is installed; without an endpoint in the settings it costs a comparison. Spans
carry ids, counts and outcomes, never programs. What crosses a process is W3C's `traceparent`: in the header of a
request, and as text in a job of the queue.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from services.runtime.settings import SettingsError, TracingSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

HEADER = "traceparent"

_provider: TracerProvider | None = None


def configure_tracing(settings: TracingSettings, service: str) -> None:
    """Send this process's spans to the endpoint of the settings, where there is one.

    Raises:
        SettingsError: an endpoint is set and the extra is not installed.
    """
    global _provider
    if settings.endpoint is None:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError:
        raise SettingsError(
            "tracing.endpoint is set and OpenTelemetry is missing: install lean-reward[tracing]"
        ) from None
    sampler = ParentBased(TraceIdRatioBased(settings.share))
    _provider = TracerProvider(
        resource=Resource.create({"service.name": f"lean-reward-{service}"}), sampler=sampler, shutdown_on_exit=False
    )
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{settings.endpoint.rstrip('/')}/v1/traces")))


def end_tracing() -> None:
    """Send what is left, and stop. Blocks for seconds when the collector does not answer."""
    global _provider
    provider, _provider = _provider, None
    if provider is not None:
        provider.shutdown()


class Span:
    """A span that is open. `set` adds what is known only later; None is left out."""

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner

    def set(self, **attributes: str | int | float | bool | None) -> None:
        if self._inner is not None:
            self._inner.set_attributes({f"lean_reward.{k}": v for k, v in attributes.items() if v is not None})


_NOTHING = Span()


@contextlib.contextmanager
def span(name: str, parent: str | None = None, **attributes: str | int | float | bool | None) -> Iterator[Span]:
    """A span around a block, under the current one or under the `traceparent` of another process.

    An exception that leaves the block marks it as failed; a cancellation does not.
    """
    if _provider is None:
        yield _NOTHING
        return
    from opentelemetry.trace import Status, StatusCode

    context = _context({HEADER: parent}) if parent else None
    tracer = _provider.get_tracer("lean_reward")
    with tracer.start_as_current_span(name, context, record_exception=False, set_status_on_exception=False) as inner:
        opened = Span(inner)
        opened.set(**attributes)
        try:
            yield opened
        except Exception as error:
            inner.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise


def traceparent() -> str | None:
    """The current span, for another process; None outside of one."""
    if _provider is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(HEADER)


class TracedRequests:
    """ASGI middleware: a span `request` around every POST, under the caller's own where it sends `traceparent`."""

    def __init__(self, app: Callable[[Any, Any, Any], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if _provider is None or scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        parent = next((value.decode("latin-1") for name, value in scope["headers"] if name == HEADER.encode()), None)
        with span("request", parent, path=scope["path"]) as opened:

            async def send_on(message: Any) -> None:
                if message["type"] == "http.response.start":
                    opened.set(status=message["status"])
                await send(message)

            await self._app(scope, receive, send_on)


def _context(carrier: Mapping[str, str]) -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract(carrier)
