"""An engine that answers at once, to measure what everything around Lean costs. It knows nothing of proofs.

    python -m bench.instant            # a worker of such engines on the queue of the settings

Never use its verdicts: it calls every candidate proved.
"""

from __future__ import annotations

import re

from services.contracts.lean import CheckAnswer, CheckStatus, CheckTask, EngineIdentity, TargetFacts

_NAME = re.compile(r"(?:theorem|lemma)\s+(\S+)")


class InstantEngine:
    """Answers `done`, with facts that the verdict function accepts."""

    identity = EngineIdentity(engine="instant", toolchain="none", environment="none")
    rss_bytes = 0

    async def start(self) -> None: ...

    async def open(self, header: str) -> None: ...

    async def check(self, task: CheckTask) -> CheckAnswer:
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
            return CheckAnswer(status=CheckStatus.DONE, elapsed_s=0.0, theorems=(facts,))
        return CheckAnswer(status=CheckStatus.DONE, elapsed_s=0.0, target=facts)

    async def restart(self, cause: str) -> None: ...

    async def stop(self) -> None: ...


if __name__ == "__main__":
    from lean_worker.process import main
    from services.runtime.settings import load_settings

    main(load_settings(), lambda settings: InstantEngine())
