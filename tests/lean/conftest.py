"""A real embedded Lean for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.embedded.engine import EmbeddedEngine
from lean_worker.engines.embedded.layout import Installation


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lean() -> AsyncIterator[EmbeddedEngine]:
    try:
        installation = Installation.locate()
    except EngineUnavailable as error:
        pytest.skip(str(error))
    engine = EmbeddedEngine(installation)
    await engine.start()
    yield engine
    await engine.stop()
