"""Reading a request's body: limits on the stream, decompression that cannot explode, text that is UTF-8."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

from reward_gateway.errors import ProblemError
from reward_gateway.pace import Pace
from services.contracts.problems import ProblemCode

_STEP_BYTES = 262_144
_RETRY_S = 5


@dataclass(frozen=True, slots=True)
class Body:
    """A body's text and the SHA-256 of its bytes, both after decompression. `size` is in bytes."""

    text: str
    digest: str
    size: int


class BodyBudget:
    """Bytes of bodies that all requests together may hold; what does not fit is refused, not queued."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    def take(self, size: int) -> None:
        """Raises `ProblemError` (429) when the budget is used up."""
        if self.held + size > self.limit:
            raise ProblemError(
                ProblemCode.TOO_MUCH_IN_FLIGHT,
                "the bodies of the requests in flight use up the server's memory for them",
                retry_after_s=_RETRY_S,
            )
        self.held += size

    def give(self, size: int) -> None:
        self.held -= size


async def read_body(request: Request, budget: BodyBudget, *, limit: int, timeout_s: float) -> Body:
    """Read, decompress and decode the whole body. The caller gives `Body.size` back to the budget when it is done.

    Raises:
        ProblemError: wrong media type or encoding (415), too large (413), malformed (400), too slow (408).
        ClientDisconnect: the client is gone.
    """
    _check_media_type(request.headers.get("content-type"))
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise ProblemError(
            ProblemCode.UNSUPPORTED_ENCODING,
            "send the body as it is, or with Content-Encoding gzip or deflate",
            headers={"Accept-Encoding": "gzip, deflate"},
        )
    announced = request.headers.get("content-length", "")
    if encoding in ("identity", "") and announced.isascii() and announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    taken = _Taken(budget)
    try:
        return await asyncio.wait_for(_read(request, encoding, taken, limit), timeout_s)
    except asyncio.TimeoutError:
        taken.undo()
        raise ProblemError(
            ProblemCode.BODY_TIMEOUT, f"the body was not complete after {timeout_s:g} s", retry_after_s=1
        ) from None
    except BaseException:
        taken.undo()
        raise


class _Taken:
    """What one body has taken from the budget so far."""

    def __init__(self, budget: BodyBudget) -> None:
        self.budget = budget
        self.size = 0

    def add(self, size: int) -> None:
        self.budget.take(size)
        self.size += size

    def undo(self) -> None:
        self.budget.give(self.size)
        self.size = 0


async def _read(request: Request, encoding: str, taken: _Taken, limit: int) -> Body:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    digest = hashlib.sha256()
    pieces: list[str] = []
    pace = Pace()
    try:
        async for piece in _decompressed(request.stream(), encoding):
            taken.add(len(piece))
            if taken.size > limit:
                raise _too_large(limit)
            digest.update(piece)
            pieces.append(decoder.decode(piece))
            await pace.rest()
        pieces.append(decoder.decode(b"", final=True))
    except UnicodeDecodeError as error:
        raise ProblemError(ProblemCode.MALFORMED_JSON, f"the body is not UTF-8: {error.reason}") from None
    except zlib.error:
        raise ProblemError(ProblemCode.MALFORMED_BODY, f"the body is not valid {encoding}") from None
    return Body("".join(pieces), digest.hexdigest(), taken.size)


async def _decompressed(stream: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    if encoding in ("identity", ""):
        async for chunk in stream:
            yield chunk
        return
    inflater = _Inflater(gzip=encoding != "deflate")
    async for chunk in stream:
        for piece in inflater.feed(chunk):
            yield piece
    inflater.finish()


class _Inflater:
    """gzip (also of several members) or deflate (zlib, or raw as some clients send it), in bounded steps."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._started = False
        self._inflate = zlib.decompressobj(wbits=31 if gzip else 15)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` decompresses to, at most `_STEP_BYTES` at a time. Raises `zlib.error`."""
        while data:
            if self._inflate.eof:
                if not self._gzip:
                    raise zlib.error("data after the end of the stream")
                self._inflate = zlib.decompressobj(wbits=31)
            try:
                piece = self._inflate.decompress(data, _STEP_BYTES)
            except zlib.error:
                if self._gzip or self._started:
                    raise
                self._inflate = zlib.decompressobj(wbits=-15)
                piece = self._inflate.decompress(data, _STEP_BYTES)
            self._started = True
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            if piece:
                yield piece

    def finish(self) -> None:
        """Raises `zlib.error` when the stream is cut short."""
        if not self._inflate.eof:
            raise zlib.error("the stream is cut short")


def _check_media_type(header: str | None) -> None:
    if header is None:
        return
    media, *parameters = (part.strip().lower() for part in header.split(";"))
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise ProblemError(ProblemCode.UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json")
    for parameter in parameters:
        if parameter.startswith("charset=") and parameter[8:].strip('"') not in ("utf-8", "utf8"):
            raise ProblemError(ProblemCode.UNSUPPORTED_MEDIA_TYPE, "the charset of JSON is UTF-8")


def _too_large(limit: int) -> ProblemError:
    return ProblemError(ProblemCode.BODY_TOO_LARGE, f"the body is larger than {limit} bytes after decompression")


__all__ = ["Body", "BodyBudget", "ClientDisconnect", "read_body"]
