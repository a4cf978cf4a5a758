"""The body of `POST /v1/proofs/score` and `/jobs`, read candidate by candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from reward_gateway.bodies.faults import Faults
from reward_gateway.bodies.json_text import ObjectReader
from services.contracts.base import MAX_PROGRAM_BYTES, MAX_PROGRAM_CHARACTERS
from services.contracts.problems import Fault, ProblemCode
from services.contracts.proofs import Candidate, ScoreOptions
from services.runtime.problems import ProblemError

_CHUNK = 64
_CANDIDATES = TypeAdapter(list[Candidate])


@dataclass(frozen=True, slots=True)
class ScoreBody:
    """A validated request: its options and its candidates, in order."""

    options: ScoreOptions
    candidates: list[Candidate]


async def parse_score_body(text: str, max_candidates: int) -> ScoreBody:
    """Raises `ProblemError`: malformed JSON (400), too many or too large (413), or what does not fit (422)."""
    reader = ObjectReader(text, "candidates")
    faults = Faults()
    candidates: list[Candidate] = []
    waiting: list[Any] = []
    seen: dict[str, int] = {}

    def validate() -> None:
        start = len(candidates)
        try:
            chunk = _CANDIDATES.validate_python(waiting)
        except ValidationError as error:
            faults.add_validation(error, prefix=("candidates",), shift=start)
            chunk = [_REFUSED] * len(waiting)
        waiting.clear()
        for index, candidate in enumerate(chunk, start):
            if candidate is _REFUSED:
                continue
            _check_size(candidate, index)
            if (first := seen.setdefault(candidate.id, index)) != index:
                faults.add(("candidates", index, "id"), f"the id of /candidates/{first} again")
        candidates.extend(chunk)

    async for index, item in reader.items():
        if index >= max_candidates:
            raise too_many(max_candidates, "/candidates")
        waiting.append(item)
        if len(waiting) == _CHUNK:
            validate()
    validate()
    if reader.found and not candidates:
        faults.add(("candidates",), "at least one candidate is needed")
    elif not reader.found:
        there = "candidates" in reader.members
        reader.members.pop("candidates", None)
        faults.add(("candidates",), "an array is needed" if there else "this field is needed")
    try:
        options = ScoreOptions.model_validate(reader.members)
    except ValidationError as error:
        faults.add_validation(error)
        options = ScoreOptions()
    faults.check()
    return ScoreBody(options, candidates)


_REFUSED = Candidate(id="refused", code="")
"""Stands for a candidate that did not validate, so that the indices of the others stay right."""


def too_many(most: int, pointer: str) -> ProblemError:
    """`most`: candidates in one batch of this caller; `pointer`: where they stand in the body."""
    return ProblemError(
        ProblemCode.TOO_MANY_CANDIDATES,
        f"at most {most} candidates fit into one batch",
        faults=[Fault(pointer=pointer, detail=f"more than {most} items")],
    )


def _check_size(candidate: Candidate, index: int) -> None:
    code = candidate.code
    if code is None or len(code) <= MAX_PROGRAM_CHARACTERS:  # that many characters never have more bytes
        return
    if len(code.encode("utf-8", "surrogatepass")) > MAX_PROGRAM_BYTES:
        raise ProblemError(
            ProblemCode.PROGRAM_TOO_LARGE,
            f"a program may have {MAX_PROGRAM_BYTES} bytes",
            faults=[Fault(pointer=f"/candidates/{index}/code", detail=f"more than {MAX_PROGRAM_BYTES} bytes of UTF-8")],
        )
