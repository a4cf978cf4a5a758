"""TRL: an asynchronous reward function for `GRPOTrainer`, with None for what cannot be scored.

```python
GRPOTrainer(reward_funcs=LeanReward(url="http://rewards:8000"), train_dataset=with_a_column_named_statement, ...)
```

The data set's columns `statement` (None in a row: any theorem counts) and `header` (optional) name the task. TRL hands
over a whole generation batch at once, so it is one batch of the server too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reward_gateway.client import ConfigurationError
from reward_gateway.trainers.scoring import OnFailure, ScoringOptions, candidate, scorer, text_of


class LeanReward:
    """Called by TRL as `f(prompts, completions, completion_ids, **columns)`, once a generation batch.

    Failures of the server are None (`unscorable`) unless the options or the environment say otherwise: TRL leaves such
    samples out.
    """

    __name__ = "lean_reward"  # the name under which TRL logs

    def __init__(self, **options: Any) -> None:
        """`options` as in `ScoringOptions`. Raises `ConfigurationError`."""
        self._options = ScoringOptions.of(**{"on_failure": OnFailure.UNSCORABLE, **options})

    async def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        statement: Sequence[str | None] | None = None,
        header: Sequence[str | None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """One reward a completion, in order.

        Raises `RewardServerError` with `on_failure` `raise`, and for refusals always; `ConfigurationError`.
        """
        if statement is None:
            raise ConfigurationError(
                f"the data set has no column `statement`, only {', '.join(sorted(columns)) or 'the prompts'}: "
                "None in its rows says that any theorem counts"
            )
        headers = header or [None] * len(completions)
        groups = {repr(prompt): f"p{index}" for index, prompt in reversed(list(enumerate(prompts)))}
        rows = zip(prompts, completions, statement, headers, strict=True)
        candidates = [
            candidate(str(index), text_of(completion), {"statement": task, "header": head}, groups[repr(prompt)])
            for index, (prompt, completion, task, head) in enumerate(rows)
        ]
        return [scored.score for scored in await scorer(self._options).batch(candidates)]
