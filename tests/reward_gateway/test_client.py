"""The client against a small scripted HTTP server (named so: it answers what each test tells it to)."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from reward_gateway.client import (
    AsyncClient,
    Client,
    ConfigurationError,
    DeadlineExceeded,
    InvalidAnswer,
    Overloaded,
    Refused,
    Unavailable,
    Unreachable,
)
from services.contracts.proofs import Cutoff, ScoreResponse

ANSWER = ScoreResponse.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index,call-overload]
CANDIDATES = [{"id": "c1", "code": "theorem t : True := trivial"}]
Reply = tuple[int, dict[str, str], bytes]


class ScriptedServer:
    """Answers each request with the next reply of `script`, the last one for ever; records what it got."""

    def __init__(self) -> None:
        self.script: list[Reply | Callable[[], Reply]] = [(200, {}, json.dumps(ANSWER).encode())]
        self.bodies: list[dict[str, Any]] = []
        self.texts: list[bytes] = []
        self.keys: list[str | None] = []
        self.ports: set[int] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.bodies.append(json.loads(body))
                outer.texts.append(body)
                outer.keys.append(self.headers.get("Authorization"))
                outer.ports.add(self.client_address[1])
                step = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                status, headers, content = step() if callable(step) else step
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                pass  # clients that give up are the point

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward_gateway.client._FIRST_PAUSE_S", 0.01)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    scripted = ScriptedServer()
    yield scripted
    scripted.close()


def _problem(code: str, status: int) -> bytes:
    from services.contracts.problems import ProblemCode

    kind = ProblemCode(code)
    problem = {"type": kind.uri, "title": kind.summary, "status": status, "code": code, "detail": "because"}
    fault = {"pointer": "/candidates/0/id", "detail": "is missing"}
    return json.dumps({**problem, "instance": "urn:lean-reward:request:1", "errors": [fault]}).encode()


def test_sync_and_async_send_the_same_body_and_read_the_same_answer(server: ScriptedServer) -> None:
    with Client(server.url, key="k") as client:
        first = client.score_proofs(CANDIDATES, deadline_s=5, mode="lean")

    async def other() -> ScoreResponse:
        async with AsyncClient(server.url, key="k") as client:
            return await client.score_proofs(CANDIDATES, deadline_s=5, mode="lean")

    assert asyncio.run(other()) == first
    assert server.bodies[0] == server.bodies[1]
    assert server.bodies[0]["cutoff"] == {"deadline_s": 5.0}


def test_the_batch_id_is_made_from_the_content_so_a_repetition_is_the_same_batch(server: ScriptedServer) -> None:
    server.script = [(503, {}, b""), (429, {"Retry-After": "0"}, b""), *server.script]
    client = Client(server.url)
    client.score_proofs(CANDIDATES)
    client.score_proofs([{**CANDIDATES[0], "code": "theorem u : True := trivial"}])
    ids = [body["batch_id"] for body in server.bodies]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    assert len(server.ports) == 1, "the connection is reused"


def test_the_same_content_in_another_order_is_the_same_body(server: ScriptedServer) -> None:
    client = Client(server.url)
    client.score_proofs([{"id": "c", "code": "x"}], mode="lean", rewards={"valid": 1.0, "invalid": 0.0}, deadline_s=5)
    client.score_proofs([{"code": "x", "id": "c"}], deadline_s=5, rewards={"invalid": 0.0, "valid": 1.0}, mode="lean")
    assert server.texts[0] == server.texts[1]


def test_a_calls_budget_follows_from_whichever_deadline_ends_its_batch() -> None:
    client = Client("http://rewards:8000", patience_s=30)

    def budget(**options: Any) -> float:
        return client._score(CANDIDATES, options).budget_s

    assert budget(deadline_s=90) == 120
    assert budget(cutoff={"policy": "all", "deadline_s": 3000}) == 3030
    assert budget(cutoff=Cutoff(deadline_s=3000)) == 3030
    assert budget(cutoff=Cutoff(deadline_s=3000), deadline_s=90) == 120
    assert budget() == 630, "the server's default"
    assert client._submit(CANDIDATES, {"deadline_s": 3000}).budget_s == 150, "it is answered at once"
    group = {"group": "g", "general_workflow": ["fix"], "rollouts": [{"id": "r", "trajectory": []}]}
    assert client._trajectories(group).budget_s == 630
    assert client._trajectories({**group, "deadline_s": 60}).budget_s == 90


def test_a_cutoff_may_be_a_model_and_takes_the_deadline_beside_it(server: ScriptedServer) -> None:
    Client(server.url).score_proofs(CANDIDATES, cutoff=Cutoff(policy="all"), deadline_s=5)
    assert server.bodies[0]["cutoff"] == {"policy": "all", "deadline_s": 5}


@pytest.mark.parametrize("deadline_s", ["30", -1, True])
def test_a_deadline_that_is_none_is_named(server: ScriptedServer, deadline_s: Any) -> None:
    with pytest.raises(ValidationError, match=r"cutoff\.deadline_s"):
        Client(server.url).score_proofs(CANDIDATES, deadline_s=deadline_s)
    with pytest.raises(TypeError, match="no JSON"):
        Client(server.url).score_proofs(CANDIDATES, cutoff=object(), deadline_s=3)
    assert not server.bodies


@pytest.mark.parametrize("url", ["rewards:8000", "127.0.0.1:8000", "", "ftp://rewards", "http://", "SECRET@rewards"])
def test_a_url_that_is_none_is_refused_when_the_client_is_made(url: str) -> None:
    with pytest.raises(ConfigurationError, match="http://rewards:8000 is needed") as raised:
        Client(url)
    assert "SECRET" not in str(raised.value)


def test_white_space_around_a_key_is_dropped_and_a_key_that_no_header_carries_is_refused(
    server: ScriptedServer,
) -> None:
    Client(server.url, key=" secret\n").score_proofs(CANDIDATES)
    assert server.keys == ["Bearer secret"]
    for key in ("secr\u00e9t", "sec ret", "sec\nret"):
        with pytest.raises(ConfigurationError, match=r"character [45] of") as raised:
            AsyncClient(server.url, key=key)
        assert "sec" not in str(raised.value)


@pytest.mark.parametrize("kind", [httpx.LocalProtocolError, httpx.UnsupportedProtocol])
def test_a_request_that_cannot_be_made_is_raised_at_once_without_its_text(kind: type[httpx.TransportError]) -> None:
    client = Client("http://SECRET@rewards:8000")
    attempts = client._attempts(client._score(CANDIDATES, {}))
    next(attempts)
    with pytest.raises(ConfigurationError) as raised:
        attempts.send(kind("Illegal header value b'Bearer SECRET'"))
    assert str(raised.value) == f"no request can be made to http://rewards:8000: {kind.__name__}"
    assert raised.value.__cause__ is raised.value.__context__ is None


def test_a_key_in_the_url_is_in_no_message(server: ScriptedServer) -> None:
    server.script = [(200, {}, b"{}")]
    with pytest.raises(InvalidAnswer) as raised:
        Client(server.url.replace("//", "//SECRET:SECRET@")).score_proofs(CANDIDATES)
    assert "SECRET" not in str(raised.value)
    with pytest.raises(Unreachable) as gone:
        Client("http://SECRET@127.0.0.1:1", retries=0).score_proofs(CANDIDATES)
    assert "SECRET" not in str(gone.value)


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [(422, "invalid_request", Refused), (401, "unauthenticated", Refused), (500, "internal_error", Unavailable)],
)
def test_final_refusals_are_raised_at_once_with_their_code(
    server: ScriptedServer, status: int, code: str, error: type[Refused]
) -> None:
    server.script = [(status, {"Content-Type": "application/problem+json"}, _problem(code, status))]
    with pytest.raises(error) as raised:
        Client(server.url).score_proofs(CANDIDATES)
    assert raised.value.code is not None
    assert raised.value.code.value == code
    assert "/candidates/0/id is missing" in str(raised.value)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(("status", "error"), [(429, Overloaded), (503, Unavailable)])
def test_overload_and_outage_are_repeated_until_the_retries_are_spent(
    server: ScriptedServer, status: int, error: type[Refused]
) -> None:
    server.script = [(status, {}, b"")]
    with pytest.raises(error):
        Client(server.url, retries=2).score_proofs(CANDIDATES)
    assert len(server.bodies) == 3


def test_a_retry_after_beyond_the_budget_ends_the_call_at_once(server: ScriptedServer) -> None:
    server.script = [(429, {"Retry-After": "3600"}, b"")]
    started = time.monotonic()
    with pytest.raises(Overloaded):
        Client(server.url).score_proofs(CANDIDATES, deadline_s=1)
    assert time.monotonic() - started < 5


def test_a_server_that_holds_the_call_too_long_and_one_that_is_gone_are_different_errors(
    server: ScriptedServer,
) -> None:
    server.script = [lambda: (time.sleep(1.5), (200, {}, b"{}"))[1]]  # type: ignore[func-returns-value]
    with pytest.raises(DeadlineExceeded):
        Client(server.url, patience_s=0.2).score_proofs(CANDIDATES, deadline_s=0.1)
    with pytest.raises(Unreachable):
        Client("http://127.0.0.1:1", retries=1).score_proofs(CANDIDATES)


def test_another_answer_than_the_contract_is_named(server: ScriptedServer) -> None:
    server.script = [(200, {}, b'{"hello": 1}')]
    with pytest.raises(InvalidAnswer):
        Client(server.url).score_proofs(CANDIDATES)


def test_a_program_that_is_no_unicode_is_sent_as_it_is(server: ScriptedServer) -> None:
    Client(server.url).score_proofs([{"id": "c", "code": "theorem \ud800"}])
    assert server.bodies[0]["candidates"][0]["code"] == "theorem \ud800"


def _in_child(client: Client, url: str, results: Any) -> None:
    results.put(client.score_proofs(CANDIDATES).batch_id)


def test_a_client_works_after_a_fork_and_after_pickling(server: ScriptedServer) -> None:
    client = Client(server.url)
    client.score_proofs(CANDIDATES)
    results = multiprocessing.get_context("fork").Queue()
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(client, server.url, results))
    child.start()
    assert results.get(timeout=20) == ANSWER["batch_id"]
    child.join()
    client.score_proofs(CANDIDATES)
    assert pickle.loads(pickle.dumps(client)).score_proofs(CANDIDATES).batch_id == ANSWER["batch_id"]
    assert len(server.ports) == 3, "the parent kept its own connection"


def test_one_async_client_serves_several_event_loops(server: ScriptedServer) -> None:
    client = AsyncClient(server.url)
    for _ in range(2):
        assert asyncio.run(client.score_proofs(CANDIDATES)).batch_id == ANSWER["batch_id"]
