"""What a candidate must have proved: the statement as Lean elaborates it where no candidate has been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lean_worker.engines.repl.probes import Printed, is_library_private, new_constants

# Words of printed terms that are no constants.
_NO_CONSTANTS = frozenset({"nat_lit", "Prop", "Type", "Sort", "⋯", "_"})


class Incomparable(Exception):
    """The statement elaborates, but what it mentions cannot be compared through the REPL."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """`target` as it must be; `definitions`: what it mentions and the library does not have, as that must be.

    With `error` the statement does not elaborate, and the rest is empty.
    """

    target: Printed | None
    definitions: Mapping[str, Printed] = field(default_factory=dict)
    signature: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    statement: bool
    binders: bool


def mentioned(printed: Printed) -> set[str]:
    """Constants that a declaration mentions, by the names under which probes can ask for them.

    Raises:
        Incomparable: a private definition of the program itself, for which no probe can ask.
    """
    names = {
        name
        for name in new_constants((printed.type, printed.value), _NO_CONSTANTS)
        if not name.startswith(".") and not is_library_private(name)
    }
    if private := next((name for name in names if name.startswith("_private")), None):
        raise Incomparable(f"the statement uses the private definition {private}")
    return names


def compare(expected: Expectation, target: Printed, definitions: Mapping[str, Printed | None]) -> Comparison:
    """Whether the candidate's `target` has the expected type, every definition in that type being the expected one."""
    assert expected.target is not None
    same = same_type(expected.target, target) and all(
        same_definition(wanted, definitions.get(name)) for name, wanted in expected.definitions.items()
    )
    assert expected.target.type is not None
    return Comparison(same, same and target.type is not None and target.type.kinds == expected.target.type.kinds)


def same_type(one: Printed, other: Printed) -> bool:
    """Equal types, universe parameters by position, names of bound variables and binder kinds aside."""
    if one.type is None or other.type is None or len(one.levels) != len(other.levels):
        return False
    return one.type.words == other.type.words


def same_definition(one: Printed, other: Printed | None) -> bool:
    """Equal kind, type and value; where Lean prints no term (inductive types), equal text."""
    if other is None or one.kind != other.kind or one.name != other.name:
        return False
    if one.type is None or other.type is None:
        return one.text == other.text
    values = [value.words if value is not None else None for value in (one.value, other.value)]
    return same_type(one, other) and values[0] == values[1]
