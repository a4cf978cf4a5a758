"""Compressed answers: who gets which encoding, nothing held back, nothing expensive for small ones."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib

import httpx
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.answers.encoding import choose, make_encoder
from services.runtime.decoding import Undecodable, make_decoder
from tests.reward_gateway.place import Place, Served, candidates, until, valid

MANY = candidates(*(f"t{i}" for i in range(50)))
PACK = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", None),
        ("identity", None),
        ("gzip", "gzip"),
        ("gzip, deflate, br", "gzip"),
        ("gzip, zstd", "zstd"),
        ("GZIP;q=1.0, zstd;q=0.5", "gzip"),
        ("zstd;q=0, gzip;q=0", None),
        ("*", "gzip"),
        ("*;q=0", None),
        ("gzip;q=0, *", None),
        ("br", None),
        ("gzip;q=x", None),
        (";;,,gzip;;", "gzip"),
    ],
)
def test_the_client_chooses(accept: str, chosen: str | None) -> None:
    assert choose(accept) == chosen


@given(st.text())
def test_no_header_breaks_the_choice(accept: str) -> None:
    assert choose(accept) in (None, "gzip", "zstd")


@given(st.lists(st.binary(max_size=2000), max_size=8), st.sampled_from(["gzip", "zstd"]), st.booleans())
def test_what_is_encoded_can_be_decoded(parts: list[bytes], encoding: str, flush: bool) -> None:
    encoder = make_encoder(encoding)
    packed = b"".join([*(encoder.feed(part, flush=flush) for part in parts), encoder.end()])
    decoder = make_decoder(encoding)
    assert b"".join(decoder.feed(packed)) == b"".join(parts)
    decoder.finish()


@given(st.binary(max_size=3000), st.sampled_from(["gzip", "deflate", "zstd"]), st.integers(0, 3000))
def test_hostile_bytes_are_undecodable_and_nothing_worse(data: bytes, encoding: str, cut: int) -> None:
    for text in (data, PACK[encoding](data)[:cut] + data[cut:]):
        decoder = make_decoder(encoding)
        try:
            for _ in decoder.feed(text):
                pass
            decoder.finish()
        except Undecodable:
            pass


def test_a_bomb_comes_in_small_pieces() -> None:
    bomb = zstandard.ZstdCompressor(level=3).compress(b" " * 200_000_000)
    assert len(bomb) < 100_000
    assert max(len(piece) for piece in make_decoder("zstd").feed(bomb)) <= 16 << 20


def test_a_window_larger_than_a_client_may_ask_for_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    compress = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(Undecodable):
        list(make_decoder("zstd").feed(compress.compress(b"x" * 1000) + compress.flush()))


async def raw(gateway: Served, accept: str, body: object) -> tuple[httpx.Headers, bytes]:
    async with gateway.client.stream(
        "POST", "/v1/proofs/score", json=body, headers={"Accept-Encoding": accept}
    ) as answer:
        return answer.headers, b"".join([piece async for piece in answer.aiter_raw()])


async def test_answers_are_compressed_as_asked_and_equal(place: Place) -> None:
    await place.worker()
    gateway = await place.http()
    body = {"candidates": MANY, "batch_id": "same"}  # so that all three get the one answer
    plain_headers, plain = await raw(gateway, "identity", body)
    assert "content-encoding" not in plain_headers
    assert plain_headers["content-length"] == str(len(plain))
    assert plain_headers["vary"] == "Accept-Encoding"
    for encoding in ("gzip", "zstd"):
        headers, packed = await raw(gateway, encoding, body)
        assert headers["content-encoding"] == encoding
        assert len(packed) < len(plain) / 4
        assert b"".join(make_decoder(encoding).feed(packed)) == plain


async def test_a_small_answer_is_left_as_it_is(place: Place) -> None:
    gateway = await place.gateway()
    answer = await gateway.client.get("/healthz", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in answer.headers
    head = await gateway.client.get("/v1/nothing", headers={"Accept-Encoding": "gzip"})
    assert head.status_code == 404


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
async def test_events_arrive_as_they_happen_in_every_encoding(place: Place, encoding: str) -> None:
    worker = await place.worker(judge=lambda task: None)
    gateway = await place.http()
    job = (await gateway.client.post("/v1/proofs/jobs", json={"candidates": candidates("t")})).json()["id"]
    await until(lambda: worker.held)
    seen = b""
    async with gateway.client.stream(
        "GET", f"/v1/proofs/jobs/{job}/events", headers={"Accept-Encoding": encoding}
    ) as answer:
        assert answer.headers.get("content-encoding", "identity") == encoding
        pieces = answer.aiter_bytes()
        while b"progress" not in seen:  # before the job has ended
            seen += await asyncio.wait_for(anext(pieces), 5)
        assert b"event: end" not in seen
        await worker.finish_held(valid(worker.checked[0]))
        seen += b"".join([piece async for piece in pieces])
    assert b"event: end" in seen


async def test_requests_in_zstd_are_read_and_bombs_refused(place: Place) -> None:
    await place.worker()
    gateway = await place.http(max_body_bytes=1_000_000)
    compress = zstandard.ZstdCompressor().compress
    text = json.dumps({"candidates": candidates("t")}).encode()
    headers = {"Content-Type": "application/json", "Content-Encoding": "zstd"}
    packed = compress(text[:20]) + compress(text[20:])  # two frames
    answer = await gateway.client.post("/v1/proofs/score", content=packed, headers=headers)
    assert answer.json()["results"][0]["verdict"] == "valid"
    bomb = await gateway.client.post("/v1/proofs/score", content=compress(b" " * 80_000_000), headers=headers)
    assert (bomb.status_code, bomb.json()["code"]) == (413, "body_too_large")
    cut = await gateway.client.post("/v1/proofs/score", content=compress(text)[:-3], headers=headers)
    assert (cut.status_code, cut.json()["code"]) == (400, "malformed_body")
    assert gateway.gateway.budget.held == 0


async def test_a_body_is_counted_as_the_memory_that_it_takes(place: Place) -> None:
    """One character beyond the first 65,536 makes Python keep four bytes for each character of the text."""
    gateway = await place.gateway(max_bodies_bytes=1_000_000)
    for text, status in (("a" * 400_000, 422), ("a" * 400_000 + "\U0001d54f", 429)):
        body = json.dumps({"candidates": text}, ensure_ascii=False).encode()
        answer = await gateway.client.post(
            "/v1/proofs/score", content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == status
    assert gateway.gateway.budget.held == 0
