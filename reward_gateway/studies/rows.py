"""From a batch that has its answer to the rows that are recorded of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from reward_gateway.batches.prepare import Prepared
from reward_gateway.batches.state import BatchState, Cut
from reward_gateway.scheduling.check_time import features
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.proofs.precheck import Rejection


@dataclass(frozen=True, slots=True)
class Finished:
    """A batch that has its answer; nothing of it changes any more. `received_at`: seconds since the epoch."""

    id: str
    state: BatchState
    cut: Cut
    engines: int
    received_at: float


class Names:
    """How names are written down. `secret` keys the digests; `openly`: ids, groups and programs as they are."""

    def __init__(self, secret: bytes, *, openly: bool) -> None:
        self._secret = secret[:64]
        self.openly = openly

    def digest(self, text: str) -> str:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=self._secret).hexdigest()

    def name(self, text: str | None) -> str | None:
        return text if text is None or self.openly else self.digest(text)


def rows(finished: Finished, names: Names) -> Iterator[dict[str, Any]]:
    """One row a candidate, by the columns of `schema`."""
    state, plan, cut = finished.state, finished.state.plan, finished.cut
    without_lean = state.without_lean()
    batch = {
        "batch": names.name(finished.id),
        "received_at": datetime.fromtimestamp(finished.received_at, timezone.utc),
        "mode": plan.mode.value,
        "cutoff_policy": plan.policy.value,
        "cutoff_reason": cut.reason.value,
        "cutoff_s": cut.at_s,
        "timeout_s": plan.lean_timeout_s,
        "scheduling": plan.scheduling.value,
        "engines": finished.engines,
    }
    for index, (candidate, prepared) in enumerate(zip(state.candidates, state.prepared, strict=True)):
        row: dict[str, Any] = {
            **batch,
            "index": index,
            "group": names.name(candidate.group),
            "lean_status": LeanStatus.SKIPPED.value,
            "lean_verdict": Verdict.UNKNOWN.value,
            "cached": False,
            "misstated": False,
        }
        if isinstance(prepared, Rejection):
            row["precheck"] = prepared.reason.value
        elif isinstance(prepared, Prepared):
            row |= _checked(state, cut, prepared, names, without_lean)
            problem = prepared.task.statement or candidate.group
            row["problem"] = None if problem is None else names.digest(problem)
        else:
            row["lean_reason"] = Reason.STATEMENT_INVALID.value
        yield row


def _checked(state: BatchState, cut: Cut, prepared: Prepared, names: Names, without_lean: LeanStatus) -> dict[str, Any]:
    code = prepared.task.code
    row: dict[str, Any] = {
        "program": names.digest(code),
        "check": names.digest(prepared.key),
        "code": code if names.openly else None,
        "characters": len(code),
        "features": features(code).tolist(),
        "lean_status": without_lean.value,
        "cached": prepared.key in state.cached,
        "misstated": prepared.key in state.misstated,
    }
    answer = state.answers.get(prepared.key)
    if answer is not None and answer.at_s <= cut.at_s:
        outcome = answer.outcome
        row |= {
            "lean_status": outcome.status.value,
            "lean_verdict": outcome.verdict.value,
            "lean_reason": outcome.reason.value,
            "check_s": outcome.elapsed_s,
            "lean_at_s": answer.at_s,
        }
    predicted = state.predictions.get(code)
    if predicted is not None and predicted.at_s <= cut.at_s:
        said = predicted.prediction
        row |= {
            "predicted": said.verdict.value,
            "predicted_reason": said.reason.value,
            "gate": said.gate,
            "feedback": None if said.feedback is None else said.feedback.value,
            "predicted_at_s": predicted.at_s,
            "model": predicted.model,
        }
    return row
