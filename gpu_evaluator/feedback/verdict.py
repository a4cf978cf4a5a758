"""The verdict that a predicted trace stands for (learning-lean-feedback, Section 4.2 and Appendix B)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from gpu_evaluator.feedback.blocks import find_blocks, strip_blocks
from gpu_evaluator.feedback.metrics import has_error

_PROOF_STATE = "-- proof state:"
_END_OF_TEXT = ("<|endoftext|>", "<|im_end|>", "</s>")
_TAG = re.compile(r"<validity>\s*(valid|invalid)\s*</validity>", re.IGNORECASE)
# Also special tokens written as text, which tokenizers take for the tokens (Qwen's `<|endoftext|>`, DeepSeek's with
# wide bars, `</s>`): a copy of one ends the generation, and a trace that ends before its first error stands for valid.
_DELIMITER = re.compile(r"</?(?:feedback|validity|s)>|<[|\uff5c][\w\u2581]{3,64}[|\uff5c]>", re.IGNORECASE)


class TraceSign(str, Enum):
    """What in the trace decided."""

    OUTPUT_LIMIT = "output_limit"
    TAG = "tag"
    ERROR_MARKER = "error_marker"
    TERMINAL_PROOF_STATE = "terminal_proof_state"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class TraceVerdict:
    valid: bool
    sign: TraceSign


def judge_trace(trace: str, *, hit_limit: bool, program: str | None = None) -> TraceVerdict:
    """Derive the verdict of a generated `trace`.

    Args:
        trace: the generated text.
        hit_limit: generation stopped at the output-token limit instead of an end-of-sequence token. It always rejects.
        program: the program that the model was given. Only when it is passed may an explicit validity tag override the
            annotations, and then only a tag that follows a complete copy of the program: a tag inside the copied
            source or inside a feedback block may have been put there by the candidate.
    """
    if hit_limit:
        return TraceVerdict(False, TraceSign.OUTPUT_LIMIT)
    if program is not None and (tag := _last_tag_after(program, trace)) is not None:
        return TraceVerdict(tag, TraceSign.TAG)
    if has_error(trace):
        return TraceVerdict(False, TraceSign.ERROR_MARKER)
    if _ends_in_proof_state(trace):
        return TraceVerdict(False, TraceSign.TERMINAL_PROOF_STATE)
    return TraceVerdict(True, TraceSign.COMPLETE)


def strip_marks(program: str) -> str:
    """`program` without feedback blocks, special tokens and any delimiter that is left: what a model may see.

    A delimiter is replaced by a space, which no delimiter contains, so that none can be hidden inside another.
    """
    return strip_delimiters(strip_blocks(program))


def seen_text(program: str) -> str:
    """`program` as a model is given it, in service and in training: without marks, without lone surrogates."""
    return strip_marks(program).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def strip_delimiters(text: str) -> str:
    """`text` with every special token and every delimiter of a block or a validity tag replaced by a space."""
    return _DELIMITER.sub(" ", text)


def _ends_in_proof_state(trace: str) -> bool:
    text = trace.rstrip()
    while text.endswith(_END_OF_TEXT):
        text = text[: text.rindex("<")].rstrip()
    blocks = list(find_blocks(text))
    return bool(blocks) and blocks[-1].end == len(text) and _PROOF_STATE in blocks[-1].content


def _last_tag_after(program: str, trace: str) -> bool | None:
    words, copied = program.split(), strip_blocks(trace).split()
    if copied[: len(words)] != words:
        return None
    tags = _TAG.findall(" ".join(copied[len(words) :]))
    return tags[-1].lower() == "valid" if tags else None
