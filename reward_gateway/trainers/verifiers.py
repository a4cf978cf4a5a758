"""verifiers: a task whose reward is the server's verdict on the last reply.

```python
class ProofTaskset(vf.Taskset[ProofTask, vf.TasksetConfig]):
    def load(self): return [ProofTask(ProofData(prompt=..., statement=...)) for ... in ...]
```
"""

from __future__ import annotations

import verifiers.v1 as vf  # type: ignore[import-not-found]

from reward_gateway.trainers.scoring import ScoringOptions, scorer


class ProofData(vf.TaskData):  # type: ignore[misc]
    """A task's row: the theorem to prove (None: any theorem counts), and the preamble in which it elaborates."""

    statement: str | None
    header: str | None = None


class ProofTask(vf.Task[ProofData]):  # type: ignore[misc]
    """One proof. An error of the server is an error of the scoring, or the configured fallback; never a silent zero."""

    @vf.reward(weight=1.0)  # type: ignore[untyped-decorator]
    async def lean(self, trace: vf.Trace) -> float:
        """Raises `RewardServerError` with `on_failure` `raise`, `ConfigurationError`."""
        label = {"statement": self.data.statement, "header": self.data.header}
        scored = await scorer(ScoringOptions.of_numbers()).sample(trace.last_reply, label)
        trace.info["lean_reward"] = scored.numbered()
        score: float = scored.numbered()["score"]
        return score
