"""Decompression of request bodies in steps of bounded size, so that a small body cannot explode."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

import zstandard

STEP_BYTES = 262_144
"""The most that a step of gzip or deflate yields; a step of zstd may yield the blocks that `_ZSTD_SLICE` can name."""
ENCODINGS = ("gzip", "deflate", "zstd")

_ZSTD_SLICE = 256  # a block of four bytes may say 128 KiB (RFC 8878, section 3.1.1.2.3): 8 MiB a slice at most
_ZSTD_WINDOW = 8 << 20  # what every decoder must support, and clients must not exceed (RFC 9659)


class Undecodable(Exception):
    """The bytes are not what their encoding says, or end too early."""


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` decompresses to, piece by piece. Raises `Undecodable`."""

    def finish(self) -> None:
        """Raises `Undecodable` when the stream is cut short."""


def read_encoding(header: str | None) -> str | None:
    """`identity` or one of `ENCODINGS`, as a request's Content-Encoding says; None for any other."""
    encoding = (header or "").strip().lower()
    encoding = {"x-gzip": "gzip", "": "identity"}.get(encoding, encoding)
    return encoding if encoding in ("identity", *ENCODINGS) else None


async def decompress(stream: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield what a body's stream holds, piece by piece. Raises `Undecodable`."""
    if encoding == "identity":
        async for chunk in stream:
            yield chunk
        return
    decoder = make_decoder(encoding)
    async for chunk in stream:
        for piece in decoder.feed(chunk):
            yield piece
    decoder.finish()


def make_decoder(encoding: str) -> Decoder:
    """For one of `ENCODINGS`."""
    return _Zstd() if encoding == "zstd" else _Inflater(gzip=encoding == "gzip")


class _Inflater:
    """gzip (also of several members) or deflate (zlib, or raw as some clients send it)."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._started = False
        self._inflate = zlib.decompressobj(wbits=31 if gzip else 15)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate.eof:
                if not self._gzip:
                    raise Undecodable
                self._inflate = zlib.decompressobj(wbits=31)
            try:
                piece = self._step(data)
            except zlib.error:
                raise Undecodable from None
            self._started = True
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            if piece:
                yield piece

    def _step(self, data: bytes) -> bytes:
        try:
            return self._inflate.decompress(data, STEP_BYTES)
        except zlib.error:
            if self._gzip or self._started:
                raise
            self._inflate = zlib.decompressobj(wbits=-15)
            return self._inflate.decompress(data, STEP_BYTES)

    def finish(self) -> None:
        if not self._inflate.eof:
            raise Undecodable


class _Zstd:
    """zstd, also of several frames."""

    def __init__(self) -> None:
        self._context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._frame = self._context.decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(data):
            if self._frame.eof:
                self._frame = self._context.decompressobj()
            part = data[at : at + _ZSTD_SLICE]
            try:
                piece = self._frame.decompress(part)
            except zstandard.ZstdError:
                raise Undecodable from None
            at += len(part) - len(self._frame.unused_data)
            if piece:
                yield piece

    def finish(self) -> None:
        if not self._frame.eof:
            raise Undecodable
