"""Bad input: each a precise problem document or one candidate's own reason; never a 500, a hang or a lost neighbour."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest

from services.contracts.problems import Problem
from tests.reward_gateway.place import Place, Served, candidates, theorem

URL = "/v1/proofs/score"
ONE = '{"candidates":[{"id":"a","code":"x"}]}'


async def send(gateway: Served, body: str | bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await gateway.client.post(URL, content=content, headers={"content-type": "application/json", **named})
    document = answer.json()
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = Problem.model_validate(document)
        assert problem.status == answer.status_code
        assert problem.instance.endswith(answer.headers["x-request-id"])
        assert len(answer.content) < 20_000
    return answer.status_code, document


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("", "the body is empty"),
        ("{", "the text ends too early"),
        ("[1,2]", "the body is an array"),
        ("null", "the body is null"),
        ('{"candidates":[{"id":"a","code":"x"},]}', "line 1, column 38"),
        ('{"candidates":[{"id":"a","code":"x"}]', "the text ends too early"),
        ('{"candidates":[{"id":"a" "code":"x"}]}', "line 1, column 26"),
        (ONE + "{}", "text after the end"),
        ("{'candidates':[]}", "double quotes"),
        ('{"a":1,"a":2}', "'a' occurs twice"),
        ('{"candidates":[],"candidates":[]}', "'candidates' occurs twice"),
        ('{"candidates":[{"id":"a","id":"b","code":"x"}]}', "'id' occurs twice"),
        ('{"priority":NaN,"candidates":[]}', "NaN is no JSON number"),
        ('{"priority":-Infinity,"candidates":[]}', "Infinity is no JSON number"),
        ('{"lean_timeout_s":1e999,"candidates":[]}', "beyond what a double can hold"),
        ('{"priority":' + "1" * 5000 + "}", "too many digits"),
        ('{"candidates":' + "[" * 100_000, "nested deeper"),
        ('{"x":' + '{"a":' * 100_000, "nested deeper"),
        (b'{"candidates":[{"id":"a","code":"\xff"}]}', "not UTF-8"),
        (b"\xed\xa0\x80", "not UTF-8"),
        ('\ufeff{"candidates":[]}', "JSON does not begin with a byte order mark (U+FEFF) (line 1, column 1)"),
        ('{"candidates":[{"id":"a","code":"\x01"}]}', "must be escaped, as \\u0000 (line 1, column 34)"),
    ],
    ids=range(22),
)
async def test_malformed_json_is_a_400_that_says_where(place: Place, body: str | bytes, detail: str) -> None:
    gateway = await place.gateway()
    status, problem = await send(gateway, body)
    assert (status, problem["code"]) == (400, "malformed_json")
    assert detail in problem["detail"]


@pytest.mark.parametrize(
    ("body", "pointer", "detail"),
    [
        ({}, "/candidates", "this field is needed"),
        ({"candidates": []}, "/candidates", "at least one"),
        ({"candidates": {"id": "a"}}, "/candidates", "an array is needed"),
        ({"candidates": None}, "/candidates", "an array is needed"),
        ({"candidates": [{"id": "a", "code": "x"}], "extra": 1}, "/extra", "no such field"),
        ({"candidates": [{"id": "a", "code": "x", "proof": 1}]}, "/candidates/0/proof", "no such field"),
        (
            {"candidates": [{"id": "a", "code": "x"}, {"id": "a", "code": "y"}]},
            "/candidates/1/id",
            "/candidates/0 again",
        ),
        ({"candidates": [{"id": "a"}]}, "/candidates/0", "exactly one of"),
        ({"candidates": [{"id": "a", "code": "x", "response": "y"}]}, "/candidates/0", "exactly one of"),
        ({"candidates": [{"code": "x"}]}, "/candidates/0/id", "needed"),
        ({"candidates": [3]}, "/candidates/0", "object"),
        ({"candidates": [{"id": "a\x00", "code": "x"}]}, "/candidates/0/id", "control characters"),
        ({"candidates": [{"id": "a", "code": "x", "statement": "t\x00"}]}, "/candidates/0/statement", "NUL (U+0000)"),
        ({"candidates": [{"id": "a", "code": "x", "header": "h" * 65_537}]}, "/candidates/0/header", "65536"),
        ({"candidates": [{"id": "a", "code": "x"}], "mode": "quick"}, "/mode", "hybrid"),
        ({"candidates": [{"id": "a", "code": "x"}], "cutoff": {"deadline_s": -1}}, "/cutoff/deadline_s", "greater"),
        ({"candidates": [{"id": "a", "code": "x"}], "priority": 1.5}, "/priority", "integer"),
        ({"candidates": [{"id": "a", "code": "x"}], "batch_id": "a/b"}, "/batch_id", "only letters"),
        ({"candidates": [{"id": "a", "code": "x"}], "a/b~c": 1}, "/a~1b~0c", "no such field"),
        ({"candidates": [{"id": "a", "code": "x"}], "rewards": {"valid": None}}, "/rewards/valid", "number"),
    ],
    ids=range(20),
)
async def test_what_does_not_fit_is_a_422_with_a_pointer(place: Place, body: Any, pointer: str, detail: str) -> None:
    gateway = await place.gateway()
    status, problem = await send(gateway, json.dumps(body))
    assert (status, problem["code"]) == (422, "invalid_request")
    assert problem["errors"][0]["pointer"] == pointer
    assert detail in problem["errors"][0]["detail"]


@pytest.mark.parametrize("field", ["id", "group", "statement", "header"])
async def test_a_lone_surrogate_outside_of_a_program_is_a_422(place: Place, field: str) -> None:
    gateway = await place.gateway()
    candidate = {"id": "a", "code": "x", field: "SURROGATE"}
    body = json.dumps({"candidates": [candidate]}).replace("SURROGATE", "\\ud800")
    status, problem = await send(gateway, body)
    assert (status, problem["errors"][0]["pointer"]) == (422, f"/candidates/0/{field}")
    assert "surrogate" in problem["errors"][0]["detail"]


async def test_faults_are_counted_and_bounded_and_never_echo_a_program(place: Place) -> None:
    gateway = await place.gateway()
    secret = "a very secret program " * 1000
    body = {"candidates": [{"id": f"c{i}", "code": 7, secret: secret} for i in range(500)]}
    status, problem = await send(gateway, json.dumps(body))
    assert status == 422
    assert len(problem["errors"]) == 20
    assert problem["more_errors"] == 980
    assert len(json.dumps(problem)) < 20_000
    assert all(len(fault["pointer"]) <= 310 for fault in problem["errors"])


@pytest.mark.parametrize("program", ["theorem t : True := trivial -- \\u0000", "\\ud800", "\\udc00\\ud800 theorem"])
async def test_a_program_that_is_no_text_is_its_candidates_own_rejection(place: Place, program: str) -> None:
    await place.worker()
    gateway = await place.gateway()
    good = json.dumps(theorem("t"))
    body = f'{{"candidates":[{{"id":"bad","code":"{program}"}},{{"id":"good","code":{good}}}]}}'
    status, answer = await send(gateway, body)
    assert status == 200
    bad, neighbour = answer["results"]
    assert (bad["verdict"], bad["source"], bad["reward"]) == ("invalid", "precheck", 0.0)
    assert neighbour["verdict"] == "valid"


async def test_programs_over_each_limit(place: Place) -> None:
    await place.worker()
    gateway = await place.gateway()
    long = theorem("t") + " --" + "x" * 262_144
    batch = [{"id": "long", "code": long}, *candidates("t")]
    answer = (await gateway.score(batch)).json()
    assert [r["reason"] for r in answer["results"]] == ["too_long", "ok"]
    at_limit = "é" * 524_288
    assert (await gateway.score([{"id": "a", "code": at_limit}])).json()["results"][0]["reason"] == "too_long"
    status, problem = await send(gateway, json.dumps({"candidates": [*batch, {"id": "x", "code": at_limit + "x"}]}))
    assert (status, problem["code"]) == (413, "program_too_large")
    assert problem["errors"][0]["pointer"] == "/candidates/2/code"
    answer = (await gateway.score([{"id": "a", "response": "x" * 1_048_577}, *candidates("t")])).json()
    assert [r["reason"] for r in answer["results"]] == ["too_long", "ok"]


async def test_one_candidate_too_many(place: Place) -> None:
    gateway = await place.http()
    body = json.dumps({"candidates": [{"id": str(i), "code": ""} for i in range(65_537)]})
    status, problem = await send(gateway, body)
    assert (status, problem["code"]) == (413, "too_many_candidates")
    assert problem["errors"][0]["pointer"] == "/candidates"


async def test_as_many_candidates_as_allowed(place: Place) -> None:
    gateway = await place.http()
    body = json.dumps({"candidates": [{"id": str(i), "code": ""} for i in range(65_536)]})
    status, answer = await send(gateway, body)
    assert status == 200
    assert answer["stats"]["prechecked"] == 65_536


async def test_bodies_beyond_the_limit_are_413_announced_or_streamed(place: Place) -> None:
    gateway = await place.http(max_body_bytes=100_000)
    big = b" " * 100_001
    status, problem = await send(gateway, big)
    assert (status, problem["code"]) == (413, "body_too_large")

    async def stream() -> Any:
        for _ in range(20):
            yield b" " * 10_000

    answer = await gateway.client.post(URL, content=stream(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert gateway.gateway.budget.held == 0


async def test_a_decompression_bomb_stops_at_the_limit(place: Place) -> None:
    gateway = await place.http(max_body_bytes=1_000_000)
    for encoding, bomb in (("gzip", gzip.compress(b" " * 50_000_000)), ("deflate", zlib.compress(b" " * 50_000_000))):
        status, problem = await send(gateway, bomb, content_encoding=encoding)
        assert (status, problem["code"]) == (413, "body_too_large")
    assert gateway.gateway.budget.held == 0


def _raw_deflate(data: bytes) -> bytes:
    compress = zlib.compressobj(wbits=-15)
    return compress.compress(data) + compress.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(ONE.encode())),
        ("gzip", gzip.compress(ONE[:10].encode()) + gzip.compress(ONE[10:].encode())),
        ("deflate", zlib.compress(ONE.encode())),
        ("deflate", _raw_deflate(ONE.encode())),
        ("identity", ONE.encode()),
    ],
)
async def test_compressed_bodies_are_read(place: Place, encoding: str, packed: bytes) -> None:
    gateway = await place.gateway()
    status, answer = await send(gateway, packed, content_encoding=encoding)
    assert status == 200
    assert answer["results"][0]["reason"] == "no_theorem"


@pytest.mark.parametrize(
    ("encoding", "packed", "status", "code"),
    [
        ("gzip", b"not gzip", 400, "malformed_body"),
        ("gzip", gzip.compress(ONE.encode())[:-4], 400, "malformed_body"),
        ("deflate", b"\xff\xff\xff", 400, "malformed_body"),
        ("deflate", zlib.compress(ONE.encode()) + b"x", 400, "malformed_body"),
        ("br", b"x", 415, "unsupported_encoding"),
        ("gzip, gzip", b"x", 415, "unsupported_encoding"),
    ],
)
async def test_bodies_that_belie_their_encoding(
    place: Place, encoding: str, packed: bytes, status: int, code: str
) -> None:
    gateway = await place.gateway()
    got, problem = await send(gateway, packed, content_encoding=encoding)
    assert (got, problem["code"]) == (status, code)
    assert gateway.gateway.budget.held == 0


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
)
async def test_other_media_types_are_415(place: Place, media: str) -> None:
    gateway = await place.gateway()
    status, problem = await send(gateway, ONE, content_type=media)
    assert (status, problem["code"]) == (415, "unsupported_media_type")


async def test_a_body_that_does_not_come_is_408(place: Place) -> None:
    gateway = await place.http(body_timeout_s=0.3)
    port = gateway.client.base_url.port

    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /v1/proofs/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    await writer.drain()
    line = await asyncio.wait_for(reader.readline(), 3)
    assert b"408" in line
    writer.close()


async def test_bodies_together_are_bounded(place: Place) -> None:
    gateway = await place.gateway(max_bodies_bytes=1000)
    status, problem = await send(gateway, " " * 2000)
    assert (status, problem["code"]) == (429, "too_much_in_flight")
    assert gateway.gateway.budget.held == 0


async def test_unknown_routes_and_methods(place: Place) -> None:
    gateway = await place.gateway()
    answer = await gateway.client.get("/v1/nothing")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    answer = await gateway.client.get(URL)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"
    answer = await gateway.client.options("/v1/proofs/jobs/b1")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET")


async def test_an_unexpected_error_is_a_problem_document(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = await place.gateway()

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the secret of the program")

    monkeypatch.setattr(gateway.gateway.batches, "start", broken)
    answer = await gateway.score(candidates("t"))
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "secret" not in answer.text
    assert gateway.gateway.budget.held == 0
