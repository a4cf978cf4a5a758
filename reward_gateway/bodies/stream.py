"""Reading a request's body: limits on the stream, decompression that cannot explode, text that is UTF-8."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import sys
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

from reward_gateway.pace import Pace
from services.contracts.problems import ProblemCode
from services.runtime.decoding import ENCODINGS, Undecodable, decompress, read_encoding
from services.runtime.problems import ProblemError

_RETRY_S = 5


@dataclass(frozen=True, slots=True)
class Body:
    """A body's text and the SHA-256 of its bytes, both after decompression. `size`: the memory of the text, bytes."""

    text: str
    digest: str
    size: int


class BodyBudget:
    """Bytes of bodies that all requests and answers in flight hold; a request that does not fit is refused.

    An answer is never refused: while slow readers keep many of them here, fewer requests get in.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    def hold(self, size: int) -> None:
        """An answer waits to be sent."""
        self.held += size

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
    encoding = read_encoding(request.headers.get("content-encoding"))
    if encoding is None:
        raise ProblemError(
            ProblemCode.UNSUPPORTED_ENCODING,
            f"send the body as it is, or with one Content-Encoding of {', '.join(ENCODINGS)}",
            headers={"Accept-Encoding": ", ".join(ENCODINGS)},
        )
    announced = request.headers.get("content-length", "")
    if encoding == "identity" and announced.isascii() and announced.isdigit() and int(announced) > limit:
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

    def reach(self, size: int) -> None:
        """Take what is missing to `size`."""
        if size > self.size:
            self.budget.take(size - self.size)
            self.size = size

    def undo(self) -> None:
        self.budget.give(self.size)
        self.size = 0


async def _read(request: Request, encoding: str, taken: _Taken, limit: int) -> Body:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    digest = hashlib.sha256()
    pieces: list[str] = []
    size = characters = width = 0
    pace = Pace()
    try:
        async for piece in decompress(request.stream(), encoding):
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            digest.update(piece)
            text = decoder.decode(piece)
            pieces.append(text)
            characters, width = characters + len(text), max(width, _width(text))
            taken.reach(max(size, characters * width))
            await pace.rest()
        pieces.append(decoder.decode(b"", final=True))
    except UnicodeDecodeError as error:
        raise ProblemError(ProblemCode.MALFORMED_JSON, f"the body is not UTF-8: {error.reason}") from None
    except Undecodable:
        raise ProblemError(ProblemCode.MALFORMED_BODY, f"the body is not valid {encoding}") from None
    return Body("".join(pieces), digest.hexdigest(), taken.size)


def _width(text: str) -> int:
    """Bytes that Python keeps for each character of a text that has these among others: 1, 2 or 4."""
    return 1 if text.isascii() else min(4, sys.getsizeof(text) // len(text))


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
