"""The content key under which identical checks are joined and their verdicts cached."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from services.contracts.lean import CheckTask, EngineIdentity

_VERSION = "lean-check-1"
"""Part of every key; change it whenever `judge` or the engines' facts change their meaning."""


def job_key(task: CheckTask, identity: EngineIdentity) -> str:
    """64 hexadecimal digits, equal exactly for checks that must have the same result.

    Covers the engine, toolchain and environment, heartbeats, profile, header, statement and code; and which extras the
    result carries (messages, tactics), so that nobody receives a result without what they asked for. The time limit is
    no part of it: a timeout is never cached, and joined checks run under their longest limit.
    """
    return _digest(
        [
            _VERSION,
            identity.engine,
            identity.toolchain,
            identity.environment,
            str(task.heartbeats),
            task.profile.value,
            "messages" if task.messages else "",
            "tactics" if task.tactics else "",
            task.header,
            "none" if task.statement is None else "some",
            task.statement or "",
            task.code,
        ]
    )


def _digest(parts: Iterable[str]) -> str:
    """SHA-256 over parts framed by their lengths, so that no two lists of parts share their bytes."""
    digest = hashlib.sha256()
    for part in parts:
        # Lone surrogates cannot be encoded strictly; a key must exist for any text.
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
