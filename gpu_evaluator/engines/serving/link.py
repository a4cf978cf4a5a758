"""Calls to one model server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx

from gpu_evaluator.engines.base import EngineFault

_Answer = TypeVar("_Answer")

_CONNECT_S = 5.0
_HEALTH_S = 5.0
_LONGEST_DETAIL = 300


class Link:
    """A client of a server. There is no limit on the wait for an answer: the pipeline keeps that."""

    def __init__(self, url: str, key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        timeout = httpx.Timeout(_CONNECT_S, read=None, write=None, pool=None)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._client = httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout, limits=limits, trust_env=False)

    async def post(self, path: str, body: Mapping[str, Any], read: Callable[[Any], _Answer]) -> _Answer:
        """What `read` finds in the answer's JSON. Raises `EngineFault`: no answer, a refusal, or a malformed one."""
        return await self._ask("POST", path, body, read)

    async def get(self, path: str, read: Callable[[Any], _Answer]) -> _Answer:
        """Likewise."""
        return await self._ask("GET", path, None, read)

    async def command(self, path: str) -> None:
        """POST without a body, whose answer says nothing but its status. Raises `EngineFault`."""
        await self._request("POST", path, None)

    async def healthy(self) -> bool:
        try:
            return (await self._client.get("/health", timeout=_HEALTH_S)).status_code == httpx.codes.OK
        except (httpx.HTTPError, RuntimeError):
            return False

    async def close(self) -> None:
        """Calls that are under way fail."""
        await self._client.aclose()

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, read: Callable[[Any], _Answer]
    ) -> _Answer:
        content = await self._request(method, path, body)
        try:
            return read(json.loads(content))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            raise EngineFault(f"{path}: malformed answer ({type(error).__name__}: {error})") from error

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None) -> bytes:
        try:
            answer = await self._client.request(method, path, json=body)
        except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: the client was closed meanwhile
            raise EngineFault(f"{path}: no answer ({type(error).__name__}: {error})") from error
        if answer.status_code != httpx.codes.OK:
            raise EngineFault(f"{path}: status {answer.status_code}: {answer.text[:_LONGEST_DETAIL]}")
        return answer.content
