"""A place for each test: its own prefix on one real Redis-protocol server."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from services.queue.server import EmbeddedServer
from tests.reward_gateway.place import Place


@pytest.fixture(scope="session")
def queue_server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


@pytest.fixture
async def place(queue_server: EmbeddedServer) -> AsyncIterator[Place]:
    async with contextlib.AsyncExitStack() as stack:
        yield Place(queue_server.url, f"t{secrets.token_hex(4)}", stack)
