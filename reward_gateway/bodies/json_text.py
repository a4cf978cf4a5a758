"""JSON as strictly as the contract needs it, read in pieces so that a large batch does not stop the event loop.

Refused: duplicate keys, NaN and infinities (also as `1e999`), nesting beyond `MAX_DEPTH`, text after the value. Lone
surrogates in escapes are let through, because in a candidate's program they are the candidate's own fault; the models
refuse them everywhere else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator
from typing import Any

from reward_gateway.pace import Pace
from services.contracts.problems import ProblemCode
from services.runtime.problems import ProblemError, printable

MAX_DEPTH = 64
_DECODER_SAYS = {
    "Expecting value": "a value is needed",
    "Invalid control character at": "control characters in a string must be escaped, as \\u0000",
}
_SPACE = re.compile(r"[ \t\n\r]*")


class _Refused(ValueError):
    """Valid as JSON, or nearly, but not accepted."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"the key {printable(key, 64)!r} occurs twice in one object")
            seen.add(key)
    return members


def _constant(name: str) -> Any:
    raise _Refused(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Refused("a number is beyond what a double can hold")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)


def parse_json(text: str) -> Any:
    """The value of a whole text. Raises `ProblemError` (400) that says where it is malformed."""
    value, end = _value(text, _space(text, 0))
    _end(text, end)
    _check_depth(value)
    return value


class ObjectReader:
    """Reads one object whose member `streamed` is a long array: its items come one by one, the rest as a dictionary.

    `items` yields (index, value) in order; afterwards `members` holds every other member. `found` tells whether the
    streamed member is there and an array (otherwise it is in `members` as it is, for the model to refuse).
    """

    def __init__(self, text: str, streamed: str) -> None:
        self._text = text
        self._streamed = streamed
        self.members: dict[str, Any] = {}
        self.found = False

    async def items(self) -> AsyncIterator[tuple[int, Any]]:
        """Raises `ProblemError` (400)."""
        text, pace = self._text, Pace()
        at = _space(text, 0)
        if text[at : at + 1] != "{":
            value, end = _value(text, at)
            _end(text, end)
            raise ProblemError(ProblemCode.MALFORMED_JSON, f"the body is {_kind(value)}, an object is needed")
        at = _space(text, at + 1)
        if text[at : at + 1] == "}":
            _end(text, at + 1)
            return
        while True:
            if text[at : at + 1] != '"':
                raise _malformed(text, at, "a key in double quotes is needed")
            key, at = _value(text, at)
            if key in self.members or (self.found and key == self._streamed):
                raise ProblemError(
                    ProblemCode.MALFORMED_JSON, f"the key {printable(key, 64)!r} occurs twice in one object"
                )
            at = _space(text, at)
            if text[at : at + 1] != ":":
                raise _malformed(text, at, "a colon is needed")
            at = _space(text, at + 1)
            if key == self._streamed and text[at : at + 1] == "[":
                self.found = True
                index, at = 0, _space(text, at + 1)
                if text[at : at + 1] == "]":
                    at += 1
                else:
                    while True:
                        value, at = _value(text, at)
                        yield index, value
                        index += 1
                        await pace.rest()
                        at = _space(text, at)
                        separator = text[at : at + 1]
                        if separator == "]":
                            at += 1
                            break
                        if separator != ",":
                            raise _malformed(text, at, "a comma or the end of the array is needed")
                        at = _space(text, at + 1)
            else:
                self.members[key], at = _value(text, at)
            at = _space(text, at)
            separator = text[at : at + 1]
            if separator == "}":
                _end(text, at + 1)
                return
            if separator != ",":
                raise _malformed(text, at, "a comma or the end of the object is needed")
            at = _space(text, at + 1)


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _malformed(text, error.pos, _DECODER_SAYS.get(error.msg, error.msg)) from None
    except RecursionError:
        raise ProblemError(ProblemCode.MALFORMED_JSON, f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # refused above, or an integer of thousands of digits
        detail = str(error) if isinstance(error, _Refused) else "a number has too many digits"
        raise ProblemError(ProblemCode.MALFORMED_JSON, detail) from None


def _space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _end(text: str, at: int) -> None:
    at = _space(text, at)
    if at != len(text):
        raise _malformed(text, at, "text after the end of the JSON value")


def _malformed(text: str, at: int, detail: str) -> ProblemError:
    if at >= len(text):
        detail = "the text ends too early" if text else "the body is empty"
    elif text.startswith("\ufeff") and at == 0:
        detail = "JSON does not begin with a byte order mark (U+FEFF)"
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return ProblemError(ProblemCode.MALFORMED_JSON, f"{detail} (line {line}, column {column})")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return kinds.get(type(value), "another value")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise ProblemError(ProblemCode.MALFORMED_JSON, f"nested deeper than {MAX_DEPTH} levels")
