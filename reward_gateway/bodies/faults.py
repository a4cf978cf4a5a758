"""What is wrong with a request, as JSON pointers and plain words, bounded whatever was sent."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from services.contracts.base import PATTERNS
from services.contracts.problems import Fault, ProblemCode
from services.runtime.problems import MAX_FAULTS, ProblemError, printable

_LONGEST_KEY = 64
_LONGEST_POINTER = 300
_WORDS = {
    "missing": "this field is needed",
    "extra_forbidden": "the contract has no such field",
    "model_type": "an object is needed",
    "tuple_type": "an array is needed",
    "string_unicode": "the text holds a lone surrogate",
}


class Faults:
    """Collects faults and keeps the first few."""

    def __init__(self) -> None:
        self.first: list[Fault] = []
        self.count = 0

    def add(self, location: Sequence[str | int], detail: str) -> None:
        self.count += 1
        if len(self.first) < MAX_FAULTS:
            self.first.append(Fault(pointer=pointer(location), detail=printable(detail, 200)))

    def add_validation(self, error: ValidationError, prefix: Sequence[str | int] = (), shift: int = 0) -> None:
        """Add pydantic's errors; `shift` moves the first index of the location, for an array validated in parts."""
        entries = error.errors(include_url=False, include_input=False)
        for entry in entries:
            location = list(entry["loc"])
            if entry["type"] == "too_short" and any(_within(other, entry) for other in entries):
                continue  # pydantic counts the items that fit
            if location and isinstance(location[0], int):
                location[0] += shift
            self.add([*prefix, *location], _in_words(entry))

    def check(self) -> None:
        """Raises `ProblemError` (422) when there is any."""
        if self.count:
            raise ProblemError(
                ProblemCode.INVALID_REQUEST,
                "1 fault" if self.count == 1 else f"{self.count} faults",
                faults=self.first,
                more_faults=self.count - len(self.first),
            )


def _within(inner: ErrorDetails, outer: ErrorDetails) -> bool:
    depth = len(outer["loc"])
    return len(inner["loc"]) > depth and inner["loc"][:depth] == outer["loc"]


def _in_words(entry: ErrorDetails) -> str:
    if entry["type"] == "string_pattern_mismatch" and (words := PATTERNS.get(entry.get("ctx", {}).get("pattern", ""))):
        return words
    if entry["type"] == "too_short":
        return f"{entry['ctx']['min_length']} or more items are needed"
    return _WORDS.get(entry["type"], entry["msg"]).removeprefix("Value error, ")


def pointer(location: Sequence[str | int]) -> str:
    """The JSON pointer (RFC 6901) of a location; long keys and long pointers are cut."""
    parts = (printable(str(part), _LONGEST_KEY).replace("~", "~0").replace("/", "~1") for part in location)
    return printable("".join(f"/{part}" for part in parts), _LONGEST_POINTER)
