"""Content addresses: what makes two checks the same work, and two verdicts the same verdict."""

from __future__ import annotations

import hashlib

from services.contracts.lean import CheckTask, EngineIdentity

_VERSION = b"1"


def job_key(task: CheckTask) -> str:
    """The key of a task in the queue: everything that its outcome depends on but the Lean that runs it.

    The time limit is left out, because it decides when to stop and not what is true.
    """
    return _digest(
        _VERSION,
        task.profile.value.encode(),
        b"%d %d %d" % (task.heartbeats, task.messages, task.tactics),
        task.header.encode(),
        b"" if task.statement is None else b"=" + task.statement.encode(),
        task.code.encode(),
    )


def verdict_key(job: str, identity: EngineIdentity) -> str:
    """The key of a cached verdict: a job on one engine, toolchain and environment."""
    return _digest(
        job.encode(), *(part.encode() for part in (identity.engine, identity.toolchain, identity.environment))
    )


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))  # lengths first, so that no two lists of parts look alike
        digest.update(part)
    return digest.hexdigest()
