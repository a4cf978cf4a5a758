"""Predicates of a contract: their operands, their names, and what they imply (as `lean/LeanReward/Predicate.lean`).

`and` and `or` take `args` of `{"predicates": [...]}` or `{"left", "right"}`. Every other kind is an atom; two atoms are
one property exactly when kind, custom name and arguments are equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import ValidationError

from services.contracts.workflows import Predicate, VariablePredicate

# Spellings of the built-in kinds, by the name that they have here.
_BUILTIN = {
    "nameexists": "nameExists",
    "nonemptystring": "nonEmptyString",
    "isnonemptystring": "nonEmptyString",
    "nonemptylist": "nonEmptyList",
    "isnonemptylist": "nonEmptyList",
    "isint": "isInt",
    "containssubstring": "containsSubstring",
}
_NEEDLES = ("substring", "text")
CONNECTIVES = frozenset({"and", "or"})


def builtin(predicate: Predicate) -> str | None:
    """The built-in property that an atom names; None for a tool's or a judge's."""
    return _BUILTIN.get(predicate.kind.replace("_", "").lower())


def needle(predicate: Predicate) -> str | None:
    """The text that `containsSubstring` looks for."""
    return next((value for key in _NEEDLES if isinstance(value := predicate.args.get(key), str)), None)


def operands(predicate: Predicate) -> tuple[Predicate, ...]:
    """The parts of `and` and `or`; empty for an atom, and for a connective whose parts cannot be read."""
    if predicate.kind.lower() not in CONNECTIVES:
        return ()
    given = predicate.args.get("predicates", [predicate.args.get("left"), predicate.args.get("right")])
    try:
        return tuple(Predicate.model_validate(part) for part in given) if isinstance(given, list) else ()
    except (ValidationError, RecursionError):
        return ()


def in_words(fact: VariablePredicate) -> str:
    """A condition as a judge reads it."""
    return f"{_words(fact.predicate)} holds of {fact.var_name!r}"


def _words(predicate: Predicate) -> str:
    parts = operands(predicate)
    if parts:
        return f" {predicate.kind.lower()} ".join(f"({_words(part)})" for part in parts)
    arguments = f" {json.dumps(predicate.args, ensure_ascii=False, sort_keys=True)}" if predicate.args else ""
    return f"{predicate.custom_name or predicate.kind!s}{arguments}"


def key(predicate: Predicate) -> str:
    """The identity of a predicate."""
    kind = builtin(predicate) or predicate.kind
    if kind == "containsSubstring":
        return json.dumps([kind, needle(predicate)])
    return json.dumps([kind, predicate.custom_name, predicate.args], sort_keys=True)


def implies(have: str, goal: str) -> bool:
    """Whether an atom (its key) gives another about the same variable: equal, or by the built-in implications."""
    return have == goal or goal in _implied(have)


def _implied(have: str) -> Iterable[str]:
    kind, *rest = json.loads(have)
    plain = {name: json.dumps([name, None, {}], sort_keys=True) for name in ("nameExists", "nonEmptyString")}
    if kind == "containsSubstring":
        return plain.values() if rest[0] else [plain["nameExists"]]
    return [plain["nameExists"]] if kind in set(_BUILTIN.values()) - {"nameExists"} else []


def gives(have: Predicate, goal: str) -> bool:
    """Whether a predicate that holds makes the atom `goal` hold."""
    parts = operands(have)
    if not parts:
        return implies(key(have), goal)
    return (any if have.kind.lower() == "and" else all)(gives(part, goal) for part in parts)


def entails(facts: Iterable[VariablePredicate], goal: VariablePredicate) -> bool:
    """Whether available facts make a condition hold."""
    return _entails([fact.predicate for fact in facts if fact.var_name == goal.var_name], goal.predicate)


def _entails(about: list[Predicate], goal: Predicate) -> bool:
    parts = operands(goal)
    if not parts:
        wanted = key(goal)
        return any(gives(fact, wanted) for fact in about)
    if goal.kind.lower() == "and":
        return all(_entails(about, part) for part in parts)
    return any(_entails(about, part) for part in parts) or any(key(fact) == key(goal) for fact in about)
