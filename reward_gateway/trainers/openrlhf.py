"""OpenRLHF: the Python form of `--reward.remote_url`, a file with `reward_func`.

```sh
--reward.remote_url $(python -c 'import reward_gateway.trainers.openrlhf as m; print(m.__file__)')
```

Labels are statements, or JSON text of `{"statement", "header"?, "group"?, "group_size"?}`. OpenRLHF turns an exception
into a sample without a reward and stops later, so `patience_s` should outlast a restart of the server. The HTTP form
needs no file: `--reward.remote_url http://KEY@rewards:8000/compat/openrlhf`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from reward_gateway.trainers.scoring import Scored, ScoringOptions, scorer

_THREADS = 32


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any]) -> dict[str, Any]:
    """Called with lists of one length (1 at present): rewards, scores from 0 to 1, and numbers for the log.

    Raises `RewardServerError` with `on_failure` `raise`, `ConfigurationError`.
    """
    chosen = scorer(ScoringOptions.of_numbers())
    responses = [_response(query, prompt) for query, prompt in zip(queries, prompts, strict=True)]
    if len(responses) == 1:
        scored = [chosen.sample_now(responses[0], labels[0])]
    else:
        with ThreadPoolExecutor(min(_THREADS, max(1, len(responses)))) as threads:
            scored = list(threads.map(chosen.sample_now, responses, labels))
    rewards = [one.numbered()["score"] for one in scored]
    return {
        "rewards": rewards if len(rewards) != 1 else rewards[0],
        "scores": _column(scored, lambda one: one.verdict == "valid"),
        "extra_logs": {
            "lean_undecided": _column(scored, lambda one: one.status == "undecided"),
            "lean_failed": _column(scored, lambda one: one.status == "failed"),
        },
    }


def _column(scored: Sequence[Scored], holds: Any) -> Any:
    column = [float(holds(one)) for one in scored]
    return column if len(column) != 1 else column[0]


def _response(query: str, prompt: str) -> str:
    """What stands behind the prompt, so that code in the prompt is never taken for the response's."""
    _, found, behind = query.rpartition(prompt) if prompt else ("", "", query)
    if not found:
        return query
    return query[len(prompt) :] if query.startswith(prompt) else behind
