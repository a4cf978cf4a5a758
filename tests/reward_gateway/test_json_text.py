"""The incremental reader agrees with the ordinary one on every text, good or bad."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_gateway.bodies.json_text import ObjectReader, parse_json
from services.contracts.problems import ProblemCode
from services.runtime.problems import ProblemError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(["a", "b", "candidates", "é"]), values, max_size=4)


async def _read(text: str) -> dict[str, Any]:
    reader = ObjectReader(text, "candidates")
    items = [item async for _, item in reader.items()]
    return {**reader.members, **({"candidates": items} if reader.found else {})}


def read(text: str) -> dict[str, Any]:
    return asyncio.run(_read(text))


@settings(deadline=None)
@given(objects, st.sampled_from([None, 1]), st.booleans())
def test_what_was_written_is_read_back(value: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert read(text) == value
    assert parse_json(text) == value


@settings(deadline=None)
@given(objects, st.data())
def test_damaged_text_is_refused_by_both_or_read_alike_by_both(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    damaged = (
        text[:at] + data.draw(st.sampled_from(["", ",", "]", "}", '"', ":", "[", "\\", " ", "1"])) + text[at + 1 :]
    )

    def outcome(reader: Any) -> Any:
        try:
            return reader(damaged)
        except ProblemError as error:
            return error.code

    whole = outcome(parse_json)
    if isinstance(whole, dict) or not isinstance(whole, (list, int, float, str, type(None))):
        assert outcome(read) == whole


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_value_or_a_problem(text: str) -> None:
    for reader in (read, parse_json):
        code = ProblemCode.MALFORMED_JSON
        try:
            reader(text)
        except ProblemError as error:
            code = error.code
        assert code is ProblemCode.MALFORMED_JSON


def test_nesting_is_bounded() -> None:
    parse_json("[" * 60 + "]" * 60)
    for text in ("[" * 100 + "]" * 100, '{"a":' * 100 + "1" + "}" * 100):
        with pytest.raises(ProblemError, match="nested deeper than 64"):
            parse_json(text)
