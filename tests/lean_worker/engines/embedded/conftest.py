"""A real embedded Lean for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.embedded.engine import EmbeddedEngine
from lean_worker.engines.embedded.layout import Installation
from services.contracts.lean import CheckAnswer, CheckTask

Check = Callable[..., Awaitable[CheckAnswer]]


@pytest.fixture(scope="session")
def installation() -> Installation:
    try:
        return Installation.locate()
    except EngineUnavailable as error:
        pytest.skip(str(error))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(installation: Installation) -> AsyncIterator[EmbeddedEngine]:
    """One engine for a module; every check starts from the same image, so tests cannot disturb each other."""
    engine = EmbeddedEngine(installation)
    await engine.start()
    yield engine
    await engine.stop()


@pytest.fixture
def check(engine: EmbeddedEngine) -> Check:
    async def run(code: str, statement: str | None = None, header: str = "", **task: Any) -> CheckAnswer:
        return await engine.check(CheckTask(code=code, statement=statement, header=header, **task))

    return run
