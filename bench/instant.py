"""An engine that answers at once, to measure what everything around Lean costs. It knows nothing of proofs.

    python -m bench.instant            # a worker of such engines on the queue of the settings
    INSTANT_S=0.026 python -m bench.instant         # each check sleeps so long


Never use its verdicts: it calls every candidate proved.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys

from services.contracts.lean import CheckAnswer, CheckStatus, CheckTask, EngineIdentity, TargetFacts

_NAME = re.compile(r"(?:theorem|lemma)\s+(\S+)")


class InstantEngine:
    """Answers `done`, with facts that the verdict function accepts, after `seconds` of sleep (0: none)."""

    identity = EngineIdentity(engine="instant", toolchain="none", environment="none")
    rss_bytes = 0
    restarts = 0

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    async def start(self) -> None: ...

    async def open(self, header: str) -> None: ...

    async def check(self, task: CheckTask) -> CheckAnswer:
        if self._seconds:
            await asyncio.sleep(self._seconds)
        match = _NAME.search(task.statement or task.code)
        facts = TargetFacts(
            name=match.group(1) if match else "unnamed",
            found=True,
            kind="theorem",
            statement_match=True,
            binders_match=True,
            printed_match=True,
            kernel_accepts=True,
        )
        if task.statement is None:
            return CheckAnswer(status=CheckStatus.DONE, elapsed_s=self._seconds, theorems=(facts,))
        return CheckAnswer(status=CheckStatus.DONE, elapsed_s=self._seconds, target=facts)

    async def restart(self, cause: str) -> None: ...

    async def lost(self) -> None:
        await asyncio.Event().wait()

    async def stop(self) -> None: ...


if __name__ == "__main__":
    from lean_worker.process import main
    from services.runtime.settings import load_settings

    check_s = float(os.environ.get("INSTANT_S", "0"))
    sys.exit(main(load_settings(), lambda settings: InstantEngine(check_s)))
