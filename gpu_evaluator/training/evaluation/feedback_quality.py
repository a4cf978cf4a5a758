"""Predicted traces against Lean's, averaged over programs (learning-lean-feedback, Section 5.2, Appendices B and D)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from gpu_evaluator.feedback.blocks import find_blocks
from gpu_evaluator.feedback.metrics import SourcePreservation, audit_source, compare, has_error
from gpu_evaluator.training.evaluation.confusion import Flags, Numbers
from gpu_evaluator.training.evaluation.programs import Judged
from services.contracts.evaluation import Acceptance, FeedbackQuality, SourceAudit


@dataclass(frozen=True, slots=True)
class ComparedTraces:
    """What the pairs of traces give together; `quality` is empty where there is no pair."""

    quality: tuple[FeedbackQuality, ...]
    source: SourceAudit | None
    acceptance: Acceptance | None


def compare_traces(judged: Sequence[Judged]) -> ComparedTraces:
    """Measure the programs that have a predicted trace; those without a reference stay out of the four metrics.

    A reference that is missing or blank is no reference; one without a block is (Appendix D, "Averaging").
    """
    traced = [(j, j.trace) for j in judged if j.trace is not None]
    if not traced:
        return ComparedTraces((), None, None)
    pairs = [(j, j.label.trace, trace) for j, trace in traced if j.label.trace is not None and j.label.trace.strip()]
    quality: list[FeedbackQuality] = []
    if pairs:
        metrics = np.array([astuple(compare(reference, predicted)) for _, reference, predicted in pairs])
        blocks = np.array([(_blocks(reference), _blocks(predicted)) for _, reference, predicted in pairs])
        valid = np.array([j.label.valid for j, _, _ in pairs])
        for subset, chosen in (("all", np.ones_like(valid)), ("valid", valid), ("invalid", ~valid)):
            if chosen.any():
                quality.append(_mean(subset, metrics, blocks, chosen))
    audit = Counter(_audit(j, trace) for j, trace in traced)
    return ComparedTraces(
        tuple(quality),
        SourceAudit(
            full=audit[SourcePreservation.FULL],
            prefix=audit[SourcePreservation.PREFIX],
            other=audit[SourcePreservation.OTHER],
        ),
        _acceptance([(j, trace) for j, trace in traced if not j.label.valid]),
    )


def _mean(subset: str, metrics: Numbers, blocks: Numbers, chosen: Flags) -> FeedbackQuality:
    block, anchored, token, error = metrics[chosen].mean(axis=0)
    theirs, ours = blocks[chosen].sum(axis=0)
    return FeedbackQuality.model_validate(
        {
            "subset": subset,
            "programs": int(chosen.sum()),
            "block_f1": float(block),
            "anchored_block_f1": float(anchored),
            "token_f1": float(token),
            "error_agreement": float(error),
            "blocks": float(ours / theirs) if theirs else None,
        }
    )


def _acceptance(invalid: Sequence[tuple[Judged, str]]) -> Acceptance:
    kinds = Counter("error" if has_error(trace) else "accepted" if j.accepted else "other" for j, trace in invalid)
    return Acceptance(predicted_error=kinds["error"], rejected_otherwise=kinds["other"], accepted=kinds["accepted"])


def _audit(judged: Judged, trace: str) -> SourcePreservation:
    """Against the program as it was asked about, or as Lean's annotation copies it: a model may have learned either."""
    found = [audit_source(text, trace) for text in (judged.label.code, judged.label.program)]
    order = (SourcePreservation.FULL, SourcePreservation.PREFIX, SourcePreservation.OTHER)
    return min(found, key=order.index)


def _blocks(trace: str) -> int:
    return sum(1 for _ in find_blocks(trace))
