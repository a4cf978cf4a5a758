"""Which encoding an answer gets, and the encoders."""

from __future__ import annotations

import zlib
from typing import Protocol

import zstandard

_GZIP_LEVEL = 3  # of a batch's answer level 6 saves a few per cent more for twice the time
_ZSTD_LEVEL = 3
_TEXT = ("application/json", "application/problem+json", "application/x-ndjson", "text/")


class Encoder(Protocol):
    def feed(self, data: bytes, *, flush: bool) -> bytes:
        """Encode more; `flush`: so that the client can read all of it now."""

    def end(self) -> bytes:
        """What is left."""


def choose(accept: str) -> str | None:
    """The encoding for an `Accept-Encoding` header: `zstd`, `gzip`, or None for the answer as it is.

    The one that the client likes best; of equals zstd, which costs less.
    """
    wanted = dict(_preference(part) for part in accept.lower().split(",") if part.strip())
    best = max(("zstd", "gzip"), key=lambda name: wanted.get(name, 0.0))
    if wanted.get(best, 0.0) > 0:
        return best
    return "gzip" if "gzip" not in wanted and wanted.get("*", 0.0) > 0 else None


def _preference(part: str) -> tuple[str, float]:
    name, *parameters = (word.strip() for word in part.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, float(parameter[2:])
            except ValueError:
                return name, 0.0
    return name, 1.0


def compressible(media_type: str) -> bool:
    return media_type.startswith(_TEXT)


def make_encoder(encoding: str) -> Encoder:
    return _Zstd() if encoding == "zstd" else _Gzip()


class _Gzip:
    def __init__(self) -> None:
        self._compress = zlib.compressobj(_GZIP_LEVEL, wbits=31)

    def feed(self, data: bytes, *, flush: bool) -> bytes:
        encoded = self._compress.compress(data)
        return encoded + self._compress.flush(zlib.Z_SYNC_FLUSH) if flush else encoded

    def end(self) -> bytes:
        return self._compress.flush()


class _Zstd:
    def __init__(self) -> None:
        self._compress = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compressobj()

    def feed(self, data: bytes, *, flush: bool) -> bytes:
        encoded = self._compress.compress(data)
        return encoded + self._compress.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) if flush else encoded

    def end(self) -> bytes:
        return self._compress.flush()
