"""The fault suite: real processes under load, and what an unkind world does to them.

`make test` runs the core (`test_killed.py`: a worker, its Lean, the gateway and a persistent Redis are killed);
`make test-faults`, which sets LEAN_TEST_FAULTS=all, runs everything. Each ends with a table of recovery times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lean_worker.engines.embedded.layout import Installation
from tests.faults.services_under_fault import Platform

_RECOVERIES: dict[str, float] = {}


@pytest.fixture
def recovered(request: pytest.FixtureRequest) -> Callable[[float], None]:
    """Say how long it took, from the fault's end until new batches have their answers again, seconds."""

    def note(seconds: float) -> None:
        _RECOVERIES[request.node.name] = seconds

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _RECOVERIES:
        terminalreporter.section("time to the next two batches after a fault, seconds")
        for name, seconds in _RECOVERIES.items():
            terminalreporter.write_line(f"{seconds:6.1f}  {name}")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Redis with an append-only file, a gateway, two workers: shared by a module's tests, each leaves it whole."""
    made = Platform(tmp_path_factory.mktemp("platform"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def installation() -> Installation:
    return Installation.locate()
