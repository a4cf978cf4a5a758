"""Clients that send slowly, too much around their bodies, or do not read: over real sockets."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import pytest

from reward_gateway.bodies import stream
from reward_gateway.connections import MAX_HEAD_BYTES
from services.runtime import metrics
from tests.reward_gateway.place import Place, Served, candidates, until


def dropped(cause: str) -> float:
    value: float = metrics.CONNECTIONS_DROPPED.labels(cause)._value.get()
    return value


async def connect(gateway: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = gateway.client.base_url.port
    # A small window, so that an answer cannot hide in the kernel's buffers.
    return await asyncio.open_connection("127.0.0.1", port, limit=1024)


async def ends(reader: asyncio.StreamReader, within_s: float = 5.0) -> bytes:
    """What still comes until the server closes."""
    try:
        return await asyncio.wait_for(reader.read(), within_s)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("sent", [b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: "])
async def test_a_head_that_does_not_come_closes_the_connection(place: Place, sent: bytes) -> None:
    gateway = await place.http(head_timeout_s=0.3)
    before = dropped("slow_head")
    reader, writer = await connect(gateway)
    writer.write(sent)
    assert await ends(reader) == b""
    assert dropped("slow_head") == before + 1
    writer.close()


async def test_a_head_that_trickles_does_not_win_time(place: Place) -> None:
    gateway = await place.http(head_timeout_s=0.5)
    reader, writer = await connect(gateway)
    writer.write(b"GET /healthz HTTP/1.1\r\n")

    async def trickle() -> None:
        while True:
            writer.write(b"X-A: b\r\n")
            await asyncio.sleep(0.05)

    task = asyncio.create_task(trickle())
    assert await ends(reader) == b""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    writer.close()


async def test_the_second_request_of_a_connection_is_watched_too(place: Place) -> None:
    gateway = await place.http(head_timeout_s=0.3)
    reader, writer = await connect(gateway)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200" in await reader.readline()
    await asyncio.sleep(0.6)  # an idle connection is not a slow one
    writer.write(b"GET /healthz HT")
    assert await ends(reader)
    assert dropped("slow_head") >= 1
    writer.close()


@pytest.mark.parametrize(
    "start",
    [
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ",
        b"POST /v1/proofs/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nTrailer: ",
    ],
)
async def test_a_head_without_end_is_refused(place: Place, start: bytes) -> None:
    gateway = await place.http()
    before = dropped("large_head")
    reader, writer = await connect(gateway)
    writer.write(start)
    filler = b"a" * 1000 if start.endswith(b": ") else b"X-A: " + b"a" * 993 + b"\r\n"
    for _ in range(2 * MAX_HEAD_BYTES // 1000):
        writer.write(filler)
        await asyncio.sleep(0)
    await ends(reader)
    assert dropped("large_head") == before + 1
    writer.close()


async def test_connections_are_bounded(place: Place) -> None:
    gateway = await place.http(max_connections=2)
    held = [await connect(gateway) for _ in range(2)]
    for reader, writer in held:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in await reader.readline()
    reader, writer = await connect(gateway)
    assert (await ends(reader)).startswith(b"HTTP/1.1 503")
    writer.close()
    held.pop()[1].close()
    await asyncio.sleep(0.1)
    reader, writer = await connect(gateway)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200" in await reader.readline()
    for _, open_writer in (*held, (reader, writer)):
        open_writer.close()


class Answer(bytes):
    """Tells when it is freed."""

    freed = 0

    def __del__(self) -> None:
        Answer.freed += 1


async def test_an_answer_that_nobody_reads_is_dropped_and_its_memory_freed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await place.http(slow_reader_s=0.5)

    async def large(*_: Any, **__: Any) -> Any:
        return Answer(b"x" * 64_000_000)  # far more than the kernel's buffers hold

    monkeypatch.setattr("reward_gateway.routes.proofs._answer_unless_gone", large)
    await place.worker()
    body = json.dumps({"candidates": candidates("t")}).encode()
    before = dropped("slow_reader")
    _, writer = await connect(gateway)
    freed = Answer.freed
    writer.write(
        b"POST /v1/proofs/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (len(body), body)
    )
    await until(lambda: gateway.gateway.budget.held >= 64_000_000)
    await until(lambda: dropped("slow_reader") == before + 1)
    await until(lambda: gateway.gateway.budget.held == 0)
    gc.collect()
    assert Answer.freed == freed + 1
    assert (await gateway.client.get("/healthz")).status_code == 200
    writer.close()


async def test_an_answer_that_is_read_slowly_but_steadily_arrives(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await place.http(slow_reader_s=1.0)

    async def large(*_: Any, **__: Any) -> bytes:
        return b"x" * 20_000_000

    monkeypatch.setattr("reward_gateway.routes.proofs._answer_unless_gone", large)
    await place.worker()
    async with gateway.client.stream(
        "POST",
        "/v1/proofs/score",
        json={"candidates": candidates("t")},
        headers={"Accept-Encoding": "identity"},
    ) as response:
        size = 0
        async for chunk in response.aiter_raw(1_000_000):
            size += len(chunk)
            await asyncio.sleep(0.1)
    assert size == 20_000_000


async def test_answers_that_wait_count_against_new_requests() -> None:
    budget = stream.BodyBudget(100)
    budget.hold(90)
    with pytest.raises(stream.ProblemError):
        budget.take(20)
    budget.give(90)
    budget.take(20)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # somebody speaks TLS
        b"GET /healthz HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /v1/proofs/score HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_what_is_no_http_gets_a_problem_document(place: Place, sent: bytes) -> None:
    gateway = await place.http()
    reader, writer = await connect(gateway)
    writer.write(sent)
    head, _, body = (await ends(reader)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in head.lower()
    assert f"content-length: {len(body)}".encode() in head.lower()
    assert json.loads(body)["code"] == "malformed_request"
    writer.close()
