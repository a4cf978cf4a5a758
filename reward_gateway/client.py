"""The client of the reward server: `Client` and `AsyncClient`, of one shape. Needs httpx and pydantic only.

```python
with Client("http://rewards:8000", key="...") as client:
    answer = client.score_proofs([{"id": "c1", "code": "theorem t : True := trivial"}], deadline_s=90)
    rewards = [result.reward for result in answer.results]
```

A call may be repeated safely: its batch id is made from its content, so the server joins a repeated call to the batch
that is running, or answers it from memory. What may be retried is retried (a connection that breaks, 429 and 503 with
their `Retry-After`) until the call's own time budget is spent; everything else is raised at once as one of the errors
below, and what cannot work whatever the server does as `ConfigurationError`. A client may be used after a fork and, if
asynchronous, from several event loops: each gets its own connections.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import time
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from services.contracts.compat import SampleReward
from services.contracts.jobs import Job, JobState
from services.contracts.problems import Problem, ProblemCode
from services.contracts.proofs import Candidate, ScoreRequest, ScoreResponse
from services.contracts.trajectories import (
    PenaltiesRequest,
    PenaltiesResults,
    TrajectoryScoreRequest,
    TrajectoryScoreResponse,
)

__all__ = [
    "AsyncClient",
    "Client",
    "ConfigurationError",
    "DeadlineExceeded",
    "InvalidAnswer",
    "Overloaded",
    "Refused",
    "RewardServerError",
    "Unavailable",
    "Unreachable",
]

_Answer = TypeVar("_Answer", bound=BaseModel)
CandidateLike = Candidate | Mapping[str, Any]

_SAMPLE_S = 100.0  # the server answers a single sample within this
_CONNECT_S = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 10.0


class ConfigurationError(ValueError):
    """It cannot work as it is configured; the message names the variable or argument, and never shows a key."""


class RewardServerError(Exception):
    """Base of every error of this module. None of them says anything about a proof."""


class Unreachable(RewardServerError):
    """No connection, or it broke and the call's time budget is spent."""


class DeadlineExceeded(RewardServerError):
    """The server has the call, and did not answer within the call's time budget."""


class InvalidAnswer(RewardServerError):
    """The server answered something that is not the contract: another version, or another server."""


class Refused(RewardServerError):
    """The server refused the call for good (4xx); `problem` says why, `code` is the documented code."""

    def __init__(self, status: int, problem: Problem | None, text: str = "") -> None:
        self.status = status
        self.problem = problem
        self.code: ProblemCode | None = problem.code if problem else None
        said = describe_problem(problem) if problem else text[:500]
        super().__init__(f"{status} {said}")


class Overloaded(Refused):
    """429 until the call's time budget was spent."""


class Unavailable(Refused):
    """5xx: the server, its queue, Lean or the evaluator is down; repeated until the call's time budget was spent."""


@dataclass(frozen=True)
class _Call:
    """One call: what is sent, how long it may take in all, and whether a repetition is safe."""

    method: str
    path: str
    body: bytes | None
    budget_s: float


@dataclass(frozen=True)
class _Send:
    timeout_s: float


@dataclass(frozen=True)
class _Pause:
    seconds: float


_Step = _Send | _Pause
_Reply = httpx.Response | httpx.TransportError | None


class _Caller:
    """The calls of both clients: what to send, when to try again, what an answer means. Does no I/O itself."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout_s: float = 120.0,
        patience_s: float = 30.0,
        server_deadline_s: float = 600.0,
        retries: int = 1_000,
    ) -> None:
        """
        Args:
            url: the gateway, for example `http://rewards:8000`.
            key: API key, sent as a bearer token; white space around it is dropped.
            timeout_s: time budget of a call that the server answers at once, such as about a job, seconds.
            patience_s: added to the deadline of a batch or sample, or to `timeout_s` of a new job, for transfer and
                retries: so long a server may be away before a call fails, seconds.
            server_deadline_s: when the server ends what names no deadline, its setting `gateway.deadline_s`, seconds.
            retries: the most repetitions of one call within its budget.

        Raises:
            ConfigurationError: the URL or the key.
        """
        self._url = checked_url(url)
        self._shown = _shown(self._url)
        key = checked_key(key)
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._server_deadline_s = server_deadline_s
        self._retries = retries

    def _score(self, candidates: Sequence[CandidateLike], options: Mapping[str, Any]) -> _Call:
        body, deadline_s = self._batch(candidates, options)
        return _Call("POST", "/v1/proofs/score", body, deadline_s + self._patience_s)

    def _submit(self, candidates: Sequence[CandidateLike], options: Mapping[str, Any]) -> _Call:
        body, _ = self._batch(candidates, options)
        return _Call("POST", "/v1/proofs/jobs", body, self._timeout_s + self._patience_s)

    def _batch(self, candidates: Sequence[CandidateLike], options: Mapping[str, Any]) -> tuple[bytes, float]:
        """The body of a batch, and the deadline by which the server ends it."""
        fields = {name: value for name, value in options.items() if value is not None and name != "deadline_s"}
        if options.get("deadline_s") is not None:
            fields["cutoff"] = {**_plain(fields.get("cutoff", {})), "deadline_s": options["deadline_s"]}
        body = {"candidates": [_plain(c) for c in candidates], **fields}
        # A program that is no valid Unicode is its candidate's own rejection, by the server, not an error of the batch.
        text = json.dumps(body, ensure_ascii=False, default=_plain).encode(errors="replace")
        request = ScoreRequest.model_validate_json(text)
        # The server compares bodies of one id as they are, so that equal content must be written alike.
        body.setdefault("batch_id", f"content-{hashlib.sha256(_encode(body, sort_keys=True)).hexdigest()[:40]}")
        return _encode(body, sort_keys=True), request.cutoff.deadline_s or self._server_deadline_s

    def _sample(self, response: str, label: Any) -> _Call:
        body = _encode({"response": response, "label": label})
        return _Call("POST", "/compat/slime", body, _SAMPLE_S + self._patience_s)

    def _trajectories(self, request: TrajectoryScoreRequest | Mapping[str, Any]) -> _Call:
        model = TrajectoryScoreRequest.model_validate(_plain(request))
        body = _encode(model.model_dump(mode="json", exclude_unset=True))
        deadline_s = model.deadline_s or self._server_deadline_s
        return _Call("POST", "/v1/trajectories/score", body, deadline_s + self._patience_s)

    def _penalties(self, trajectories: Sequence[Mapping[str, Any]]) -> _Call:
        model = PenaltiesRequest.model_validate({"trajectories": [dict(t) for t in trajectories]})
        body = _encode(model.model_dump(mode="json", exclude_unset=True))
        return _Call("POST", "/v1/trajectories/penalties", body, self._timeout_s)

    def _job(self, method: str, job_id: str) -> _Call:
        return _Call(method, f"/v1/proofs/jobs/{job_id}", None, self._timeout_s)

    def _attempts(self, call: _Call) -> Generator[_Step, _Reply, httpx.Response]:
        """Yields what to do next and is sent what came of it; returns the successful response."""
        give_up = time.monotonic() + call.budget_s
        pause = _FIRST_PAUSE_S
        for attempt in range(self._retries + 1):
            remaining = give_up - time.monotonic()
            reply = yield _Send(max(remaining, 0.001))
            if isinstance(reply, httpx.Response) and reply.is_success:
                return reply
            error, wait_s = self._failure(reply, call)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            wait_s = max(wait_s, random.uniform(0, pause))  # jitter: a thousand workers must not come back at once
            if attempt == self._retries or time.monotonic() + wait_s >= give_up:
                raise error
            yield _Pause(wait_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _failure(self, reply: _Reply, call: _Call) -> tuple[RewardServerError, float]:
        """The error that a failed attempt stands for and the least pause before the next; raises what is final."""
        if isinstance(reply, httpx.ReadTimeout):
            raise DeadlineExceeded(f"{self._shown}{call.path} did not answer within {call.budget_s:g} s") from reply
        if isinstance(reply, (httpx.LocalProtocolError, httpx.UnsupportedProtocol)):
            # Nothing was sent, and nothing else will be; its text may show the key.
            raise ConfigurationError(f"no request can be made to {self._shown}: {type(reply).__name__}")
        if not isinstance(reply, httpx.Response):
            return Unreachable(f"{self._shown}: {type(reply).__name__}: {reply}"), 0.0
        problem = _problem(reply)
        wait_s = _retry_after(reply)
        if reply.status_code == 429:
            return Overloaded(reply.status_code, problem, reply.text), wait_s
        if reply.status_code in (502, 503, 504):
            return Unavailable(reply.status_code, problem, reply.text), wait_s
        kind = Unavailable if reply.status_code >= 500 else Refused
        raise kind(reply.status_code, problem, reply.text)


class Client(_Caller):
    """Synchronous client. Thread-safe, reusable after a fork, closed by `close` or as a context manager."""

    _http: httpx.Client | None = None
    _owner: int | None = None

    def score_proofs(self, candidates: Sequence[CandidateLike], **options: Any) -> ScoreResponse:
        """Score a batch; `options` are the fields of `ScoreRequest`, and `deadline_s` for the one of its cutoff.

        Raises:
            pydantic.ValidationError: the request does not fit the contract.
            RewardServerError: one of its kinds; nothing is known about the candidates then.
        """
        return _parsed(ScoreResponse, self._run(self._score(candidates, options)))

    def score_sample(self, response: str, label: Any) -> SampleReward:
        """Score one sample; the server joins those that many callers send at once into batches.

        `label` refers to the task: a statement, or `{"statement", "header"?, "group"?, "group_size"?}`. For callers
        that hold several samples `score_proofs` is better.
        """
        return _parsed(SampleReward, self._run(self._sample(response, label)))

    def submit_proofs(self, candidates: Sequence[CandidateLike], **options: Any) -> Job:
        """Start a job and return at once."""
        return _parsed(Job, self._run(self._submit(candidates, options)))

    def job(self, job_id: str) -> Job:
        return _parsed(Job, self._run(self._job("GET", job_id)))

    def cancel(self, job_id: str) -> Job:
        return _parsed(Job, self._run(self._job("DELETE", job_id)))

    def follow(self, job_id: str, *, every_s: float = 0.5) -> Iterator[Job]:
        """Yield the job as it progresses; the last one is in its final state."""
        while True:
            job = self.job(job_id)
            yield job
            if job.state is not JobState.RUNNING:
                return
            time.sleep(every_s)

    def score_trajectories(self, request: TrajectoryScoreRequest | Mapping[str, Any]) -> TrajectoryScoreResponse:
        return _parsed(TrajectoryScoreResponse, self._run(self._trajectories(request)))

    def penalties(self, trajectories: Sequence[Mapping[str, Any]]) -> PenaltiesResults:
        """Gamma alone, for `{"id", "format"?, "trajectory"}` each."""
        return _parsed(PenaltiesResults, self._run(self._penalties(trajectories)))

    def close(self) -> None:
        if self._http is not None and self._owner == os.getpid():
            self._http.close()
        self._http = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_http", "_owner")}

    def _run(self, call: _Call) -> httpx.Response:
        attempts = self._attempts(call)
        reply: _Reply = None
        try:
            while True:
                step = attempts.send(reply)
                if isinstance(step, _Pause):
                    time.sleep(step.seconds)
                    reply = None
                    continue
                try:
                    reply = self._connection().request(
                        call.method, call.path, content=call.body, timeout=_limits(step.timeout_s)
                    )
                except httpx.TransportError as error:
                    reply = error
        except StopIteration as finished:
            response: httpx.Response = finished.value
            return response

    def _connection(self) -> httpx.Client:
        if self._http is None or self._owner != os.getpid():
            # After a fork the parent's sockets are not ours to use or to close: they are left alone.
            self._http = httpx.Client(base_url=self._url, headers=self._headers, limits=_POOL)
            self._owner = os.getpid()
        return self._http


class AsyncClient(_Caller):
    """Asynchronous client of the same shape; usable from several event loops and after a fork."""

    _http: httpx.AsyncClient | None = None
    _owner: tuple[int, asyncio.AbstractEventLoop] | None = None

    async def score_proofs(self, candidates: Sequence[CandidateLike], **options: Any) -> ScoreResponse:
        """See `Client.score_proofs`. Cancelling the task closes the connection, and the server cancels the batch."""
        return _parsed(ScoreResponse, await self._run(self._score(candidates, options)))

    async def score_sample(self, response: str, label: Any) -> SampleReward:
        """See `Client.score_sample`."""
        return _parsed(SampleReward, await self._run(self._sample(response, label)))

    async def submit_proofs(self, candidates: Sequence[CandidateLike], **options: Any) -> Job:
        return _parsed(Job, await self._run(self._submit(candidates, options)))

    async def job(self, job_id: str) -> Job:
        return _parsed(Job, await self._run(self._job("GET", job_id)))

    async def cancel(self, job_id: str) -> Job:
        return _parsed(Job, await self._run(self._job("DELETE", job_id)))

    async def follow(self, job_id: str, *, every_s: float = 0.5) -> AsyncIterator[Job]:
        while True:
            job = await self.job(job_id)
            yield job
            if job.state is not JobState.RUNNING:
                return
            await asyncio.sleep(every_s)

    async def score_trajectories(self, request: TrajectoryScoreRequest | Mapping[str, Any]) -> TrajectoryScoreResponse:
        return _parsed(TrajectoryScoreResponse, await self._run(self._trajectories(request)))

    async def penalties(self, trajectories: Sequence[Mapping[str, Any]]) -> PenaltiesResults:
        return _parsed(PenaltiesResults, await self._run(self._penalties(trajectories)))

    async def close(self) -> None:
        if self._http is not None and self._owner == (os.getpid(), asyncio.get_running_loop()):
            await self._http.aclose()
        self._http = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_http", "_owner")}

    async def _run(self, call: _Call) -> httpx.Response:
        attempts = self._attempts(call)
        reply: _Reply = None
        try:
            while True:
                step = attempts.send(reply)
                if isinstance(step, _Pause):
                    await asyncio.sleep(step.seconds)
                    reply = None
                    continue
                try:
                    reply = await self._connection().request(
                        call.method, call.path, content=call.body, timeout=_limits(step.timeout_s)
                    )
                except httpx.TransportError as error:
                    reply = error
        except StopIteration as finished:
            response: httpx.Response = finished.value
            return response

    def _connection(self) -> httpx.AsyncClient:
        owner = (os.getpid(), asyncio.get_running_loop())
        if self._http is None or self._owner != owner:
            self._http = httpx.AsyncClient(base_url=self._url, headers=self._headers, limits=_POOL)
            self._owner = owner
        return self._http


def describe_problem(problem: Problem) -> str:
    """A problem document in one line."""
    faults = "".join(f"; {fault.pointer} {fault.detail}" for fault in problem.errors)
    missing = "".join(f"; {part.component}: {part.detail}" for part in problem.missing)
    return f"{problem.title}: {problem.detail}{faults}{missing}"


_POOL = httpx.Limits(max_connections=256, max_keepalive_connections=64)


def _limits(timeout_s: float) -> httpx.Timeout:
    return httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s), pool=None)


def checked_url(url: str) -> str:
    """A URL that a client can use, without a slash at its end. Raises `ConfigurationError`."""
    try:
        parts = httpx.URL(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.host)
    except (httpx.InvalidURL, AttributeError):
        usable = False
    if not usable:
        shown = url.rpartition("@")[2] if isinstance(url, str) else url  # a key may stand before an `@`
        raise ConfigurationError(f"url cannot be {shown!r}: one like http://rewards:8000 is needed")
    return url.strip().rstrip("/")


def checked_key(key: str | None) -> str | None:
    """A key as a header can carry it, None where there is none. Raises `ConfigurationError`."""
    key = (key or "").strip()
    for place, character in enumerate(key, 1):
        if not "!" <= character <= "~":
            raise ConfigurationError(f"key cannot be sent: character {place} of {len(key)} is none of visible ASCII")
    return key or None


def _shown(url: str | httpx.URL) -> str:
    """A URL without the key that may stand in it."""
    return str(httpx.URL(url).copy_with(userinfo=b""))


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r:.80} ({type(value).__name__}) is no JSON")


def _encode(body: Mapping[str, Any], *, sort_keys: bool = False) -> bytes:
    # Escaped, so that a lone surrogate in a program arrives as it is instead of failing the batch here.
    return json.dumps(body, separators=(",", ":"), sort_keys=sort_keys, default=_plain).encode("ascii")


def _problem(response: httpx.Response) -> Problem | None:
    try:
        return Problem.model_validate_json(response.content)
    except ValidationError:
        return None


def _retry_after(response: httpx.Response) -> float:
    try:
        return max(0.0, float(response.headers.get("Retry-After", "0")))
    except ValueError:
        return 1.0


def _parsed(model: type[_Answer], response: httpx.Response) -> _Answer:
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        raise InvalidAnswer(
            f"{_shown(response.url)}: {error.error_count()} fields do not fit: {error.errors()[0]}"
        ) from None
