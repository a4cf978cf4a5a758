"""`GET /metrics` for Prometheus."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.operations import Answer, Operation


async def metrics(request: Request) -> Response:
    return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


OPERATIONS = (
    Operation(
        "GET",
        "/metrics",
        "operation",
        "Metrics in Prometheus' text format",
        metrics,
        answers={
            200: (
                Answer(
                    "One line a series.",
                    media_type="text/plain",
                    example="# TYPE lean_reward_batches_in_flight gauge\nlean_reward_batches_in_flight 2.0\n",
                ),
            )
        },
        key=False,
    ),
)
