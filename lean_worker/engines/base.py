"""What an engine is: something that runs Lean on one candidate at a time and reports facts, not verdicts.

Engines answer with a `CheckAnswer`; `services.proofs.verdict` alone turns an answer into a verdict, so that every
engine is judged by the same function.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from services.contracts.lean import CheckAnswer, CheckTask, EngineIdentity


class EngineUnavailable(Exception):
    """The engine cannot start or cannot be trusted any more: our fault, never the candidate's."""


class HeaderError(Exception):
    """The header cannot be opened: an unknown import, or a preamble that does not compile."""


@runtime_checkable
class Engine(Protocol):
    """One Lean process that checks one candidate at a time.

    `check` may be cancelled (`asyncio.CancelledError`); the engine then stops the running check within 200 ms and is
    clean for the next one. A check never leaves anything behind for the next.
    """

    @property
    def identity(self) -> EngineIdentity: ...

    @property
    def rss_bytes(self) -> int:
        """Resident memory of the engine's own processes, bytes; 0 when it is not running."""
        ...

    @property
    def restarts(self) -> int:
        """Processes thrown away, whoever asked for it; each is counted by its cause in `ENGINE_RESTARTS` too."""
        ...

    async def start(self) -> None:
        """Start the process and wait until it is ready. Raises `EngineUnavailable`."""
        ...

    async def open(self, header: str) -> None:
        """Make `header` warm. Raises `HeaderError` or `EngineUnavailable`."""
        ...

    async def check(self, task: CheckTask) -> CheckAnswer:
        """Run one check. Raises `EngineUnavailable` only for faults that are ours."""
        ...

    async def restart(self, cause: str) -> None:
        """Throw the process away and start a clean one. Raises `EngineUnavailable`."""
        ...

    async def lost(self) -> None:
        """Return once the process has ended by itself, or cannot be replaced: `restart` is next.

        Waited for while no check runs; a process that ends under a check is that check's matter.
        """
        ...

    async def stop(self) -> None: ...
