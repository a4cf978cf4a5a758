"""Byte by byte against a live gateway: smuggled requests, injected headers, bombs, deep JSON, callers that dawdle."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import time
import zlib
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from bench.processes import Platform
from tests.contract.conftest import MAX_BODY

SCORE = "/v1/proofs/score"
JSON = "application/json"
SMUGGLED = b'{"batch_id":"smuggled","candidates":[{"id":"c","code":"theorem t : True := trivial"}]}'
INNER = (
    b"POST /v1/proofs/jobs HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
    % (len(SMUGGLED), SMUGGLED)
)


def exchange(live: Platform, sent: bytes, wait_s: float = 8.0) -> bytes:
    """All that the server answers to these bytes, until it closes the connection or falls silent."""
    parts = urlsplit(live.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 5) as line:
        line.sendall(sent)
        line.settimeout(0.7)
        ends, answer = time.monotonic() + wait_s, b""
        while time.monotonic() < ends:
            try:
                part = line.recv(65536)
            except TimeoutError:
                if answer:
                    break
                continue
            except ConnectionError:
                break
            if not part:
                break
            answer += part
    return answer


def statuses(answer: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


def post(live: Platform, body: bytes, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"{live.url}{SCORE}", content=body, headers={"content-type": JSON, **named}, timeout=60)


def gateway(live: Platform) -> psutil.Process:
    return psutil.Process(live.parts["gateway"][0])


HEAD = b"POST /v1/proofs/score HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
        b"content-length: 0\r\ncontent-length: %d\r\n\r\n" % len(INNER),
        b"content-length: 0, %d\r\n\r\n" % len(INNER),
        b"content-length: +0\r\n\r\n",
        b"content-length: 0x0\r\n\r\n",
        b"content-length: -1\r\n\r\n",
        b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
        b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"transfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        b"x: y\r\n transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"transfer-encoding: chunked\r\n\r\n0x0\r\n\r\n",
        b"transfer-encoding: chunked\r\n\r\n-0\r\n\r\n",
        b"transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"content-length: 0\n\r\n",
    ],
)
def test_no_second_request_hides_behind_an_ambiguous_one(live: Platform, framing: bytes) -> None:
    """A proxy may have taken the rest for the first one's body: it must not be answered as a request of its own."""
    answer = exchange(live, HEAD + framing + INNER)
    found = statuses(answer)
    assert len(found) <= 1, answer
    assert all(400 <= status < 500 for status in found), answer
    assert httpx.get(f"{live.url}/v1/proofs/jobs/smuggled", timeout=10).status_code == 404


def test_two_honest_requests_on_one_connection_are_two(live: Platform) -> None:
    """So that the test above can fail."""
    honest = INNER.replace(b"smuggled", b"honest-1")
    assert statuses(exchange(live, honest + honest.replace(b"honest-1", b"honest-2"))) == [202, 202]


@pytest.mark.parametrize(
    "name", ["a\r\nset-cookie: evil=1", "a\nset-cookie: evil=1", "a\u560d\u560aset-cookie: evil=1"]
)
def test_no_header_can_be_injected(live: Platform, name: str) -> None:
    body = json.dumps({"batch_id": name, "candidates": [{"id": name, "code": "theorem t : True := trivial"}]}).encode()
    for path in ("/v1/proofs/score", "/v1/proofs/jobs"):
        answer = httpx.post(f"{live.url}{path}", content=body, headers={"content-type": JSON}, timeout=30)
        assert "set-cookie" not in answer.headers
        assert answer.status_code in (202, 422)
    for method in ("GET", "DELETE"):
        answer = httpx.request(method, f"{live.url}/v1/proofs/jobs/x%0d%0aset-cookie:%20evil=1", timeout=30)
        assert "set-cookie" not in answer.headers
        assert answer.status_code in (404, 422)
    raw = exchange(live, b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-request-id: a\rset-cookie: evil=1\r\n\r\n")
    assert b"set-cookie" not in raw.split(b"\r\n\r\n", 1)[0].lower()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)],
    ids=["gzip", "zlib", "raw deflate"],
)
def test_a_decompression_bomb_is_refused_before_it_is_unpacked(
    live: Platform, coding: str, pack: Callable[[bytes], bytes]
) -> None:
    bomb = pack(b'{"candidates": [' + b" " * (256 << 20))
    assert len(bomb) < MAX_BODY
    process = gateway(live)
    before = process.memory_info().rss
    for _ in range(3):
        answer = post(live, bomb, content_encoding=coding)
        assert (answer.status_code, answer.json()["code"]) in ((413, "body_too_large"), (400, "invalid_body")), (
            answer.text
        )
    assert process.memory_info().rss - before < 64 << 20


def test_a_bomb_in_a_bomb_is_refused(live: Platform) -> None:
    twice = gzip.compress(gzip.compress(bytes(64 << 20)))
    assert post(live, twice, content_encoding="gzip, gzip").status_code in (400, 413, 415)
    assert post(live, twice, content_encoding="gzip").status_code == 400
    for coding in ("br", "compress", "gzip;q=1", "identity, gzip", "zstd"):
        assert post(live, b"{}", content_encoding=coding).status_code in (400, 415), coding


def test_a_broken_stream_is_the_callers_fault(live: Platform) -> None:
    whole = gzip.compress(json.dumps({"candidates": [{"id": "c", "code": "theorem t : True := trivial"}]}).encode())
    assert post(live, whole, content_encoding="gzip").status_code == 200
    for broken in (whole[:-9], whole[:20] + b"\xff" + whole[21:], whole + b"junk", b"", b"\x1f\x8b"):
        answer = post(live, broken, content_encoding="gzip")
        assert 400 <= answer.status_code < 500, broken
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"candidates":' * 200_000,
        b'{"candidates":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"candidates":[{"id":"c","code":"x","group":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_003,
        b'{"candidates":[],"priority":' + b"9" * 1_000_000 + b"}",
        b'{"candidates":[],"priority":1e' + b"9" * 100_000 + b"}",
        b'{"candidates":[],"lean_timeout_s":NaN}',
        b'{"candidates":[],"lean_timeout_s":-Infinity}',
        b'{"candidates":[]' + b',"x":1' * 200_000 + b"}",
        b'\xef\xbb\xbf{"candidates":[]}',
        '{"candidates":[]}'.encode("utf-16"),
        b"\x00" * 1_000,
        b"",
        b'{"candidates":[{"id":"\\ud800","code":"\\udfff"}]}',
    ],
    ids=[
        "arrays", "objects", "closed", "in a field", "digits", "exponent", "NaN", "infinity", "members", "mark",
        "utf-16", "zeros", "nothing", "surrogates",
    ],
)  # fmt: skip
def test_json_that_is_meant_to_hurt_is_refused_quickly(live: Platform, body: bytes) -> None:
    begin = time.monotonic()
    answer = post(live, body)
    assert answer.status_code in (200, 400, 413, 422), answer.text[:300]
    if answer.status_code == 200:
        assert {result["verdict"] for result in answer.json()["results"]} <= {"invalid"}
    else:
        assert answer.headers["content-type"] == "application/problem+json"
        assert len(answer.content) < 100_000
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize(
    "path", ["/v1/trajectories/score", "/v1/trajectories/penalties", "/compat/slime", "/api/check"]
)
def test_deep_json_is_refused_by_every_route(live: Platform, path: str) -> None:
    for body in (b"[" * 500_000, b'{"trajectory":' * 100_000):
        answer = httpx.post(f"{live.url}{path}", content=body, headers={"content-type": JSON}, timeout=30)
        assert answer.status_code in (400, 413, 422), answer.text[:300]


def test_heads_without_end_are_cut_off(live: Platform) -> None:
    long_line = b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n"
    many = b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + b"x-a: y\r\n" * 200_000
    one = b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: " + b"y" * 4_000_000
    for sent in (long_line, many, one):
        with contextlib.suppress(ConnectionError):  # it may hang up while we still send
            assert all(400 <= status < 500 for status in statuses(exchange(live, sent, 5.0)))


def test_a_body_that_never_ends_is_given_up(live: Platform) -> None:
    head = HEAD + b"content-length: 1000\r\n\r\n{"
    found = statuses(exchange(live, head, 10.0))
    assert found == [408]


def test_it_is_as_well_as_before(live: Platform) -> None:
    """Last in this file: the gateway still answers, and has kept no connection and no body."""
    assert post(live, SMUGGLED.replace(b"smuggled", b"after")).status_code == 200
    ends = time.monotonic() + 20
    while len(gateway(live).net_connections(kind="tcp")) > 4 and time.monotonic() < ends:
        time.sleep(0.2)
    listening_and_queue = gateway(live).net_connections(kind="tcp")
    assert len(listening_and_queue) <= 4, listening_and_queue
