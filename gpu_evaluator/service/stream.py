"""A streamed answer that ends its work when the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from services.contracts.evaluator import Prediction
from services.runtime import metrics
from services.runtime.logging import get_logger

MEDIA_TYPE = "application/x-ndjson"


class PredictionStream(Response):
    """One JSON object a line. `held` is left when the answer is complete, broken off, or was never begun."""

    def __init__(self, predictions: AsyncGenerator[Prediction, None], held: ExitStack, *, demonstration: bool) -> None:
        super().__init__(media_type=MEDIA_TYPE, headers={"X-Demonstration": "true"} if demonstration else None)
        del self.headers["content-length"]
        self._predictions = predictions
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            sending = asyncio.create_task(self._send(send))
            leaving = asyncio.create_task(_until_disconnect(receive))
            try:
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
                else:
                    metrics.DISCONNECTS.inc()
                    get_logger().info("client_left")
            finally:
                for task in (sending, leaving):
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, OSError):
                        await task

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._predictions) as predictions:
            async for prediction in predictions:
                line = prediction.model_dump_json().encode() + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
