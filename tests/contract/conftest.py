"""A live gateway whose checks cost nothing: real HTTP, a real queue, a worker of instant engines (no Lean)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.processes import Platform, running

MAX_BODY = 4 << 20


@pytest.fixture(scope="session")
def live() -> Iterator[Platform]:
    settings = {
        "LEAN_REWARD_GATEWAY_DEADLINE_S": "5",
        "LEAN_REWARD_GATEWAY_MAX_BODY_BYTES": str(MAX_BODY),
        "LEAN_REWARD_GATEWAY_BODY_TIMEOUT_S": "3",
        "LEAN_REWARD_COMPAT_LIMIT_S": "5",
    }
    with running("instant", workers=1, **settings) as platform:
        yield platform
