"""Labels, queries and shapes: the pure parts of other programs' protocols."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.compat.repl_shape import command_response, tactic_trees
from reward_gateway.compat.samples import read_label, response_of
from services.contracts.lean import LeanOutcome, Message, Position, Severity, TacticState
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.runtime.problems import ProblemError


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (None, {}),
        ("theorem t : True", {"statement": "theorem t : True"}),
        ({"statement": "theorem t : True", "other": 1}, {"statement": "theorem t : True"}),
        ({"statement": None, "group": "p1"}, {"group": "p1"}),
        ({"statement": "s", "group": 17, "group_size": 8}, {"statement": "s", "group": "17", "group_size": 8}),
        (' {"statement": "s", "header": "import Mathlib"}', {"statement": "s", "header": "import Mathlib"}),
    ],
)
def test_a_label_is_a_statement_an_object_or_its_json(label: Any, expected: dict[str, Any]) -> None:
    assert read_label(label).model_dump(exclude_none=True) == expected


@pytest.mark.parametrize(
    "label",
    [
        *(5, True, ["s"], '["s"]', '{"statement": '),
        *({}, {"statment": "theorem t : True"}, {"group": "p1"}, "{}"),  # any theorem would get the reward
        *({"statement": "s", "group_size": 0}, {"statement": "s", "group": ""}, {"statement": "s", "group": True}),
    ],
)
def test_a_label_that_cannot_be_read_is_a_fault_of_the_request_at_its_place(label: Any) -> None:
    with pytest.raises(ProblemError) as caught:
        read_label(label, ("labels", 3))
    assert caught.value.code.status == 422
    assert caught.value.faults[0].pointer.startswith("/labels/3")


@given(st.text(), st.text())
def test_the_response_is_what_stands_behind_the_prompt(prompt: str, response: str) -> None:
    assert response_of(prompt + response, prompt) == response


def test_code_in_the_prompt_is_never_the_response() -> None:
    prompt = "Prove it. Example:\n```lean\ntheorem e : True := trivial\n```"
    assert response_of(f"<user>{prompt}<assistant>no idea", prompt) == "<assistant>no idea"
    assert response_of("the template changed the prompt: answer", prompt) == "the template changed the prompt: answer"


def _outcome(reason: Reason, *messages: Message, tactics: tuple[TacticState, ...] = ()) -> LeanOutcome:
    return LeanOutcome(status=LeanStatus.OK, verdict=Verdict.INVALID, reason=reason, messages=messages, tactics=tactics)


def test_a_placeholder_is_a_sorry_whether_or_not_a_message_says_so() -> None:
    at = Position(line=2, column=8)
    warned = Message(severity=Severity.WARNING, data="declaration uses `sorry`", pos=at, end_pos=at)
    (sorry,) = command_response(_outcome(Reason.PLACEHOLDER, warned), infotree=False)["sorries"]
    assert sorry == {"pos": {"line": 2, "column": 8}, "endPos": {"line": 2, "column": 8}, "goal": ""}
    assert len(command_response(_outcome(Reason.PLACEHOLDER), infotree=False)["sorries"]) == 1
    printed = Message(severity=Severity.INFO, data="declaration uses `sorry`")
    assert "sorries" not in command_response(_outcome(Reason.OK, printed), infotree=False)


def test_messages_have_the_shape_of_the_repl() -> None:
    message = Message(severity=Severity.ERROR, data="no", pos=Position(line=3, column=0))
    assert command_response(_outcome(Reason.COMPILE_ERROR, message), infotree=True) == {
        "env": 0,
        "messages": [{"severity": "error", "pos": {"line": 3, "column": 0}, "endPos": None, "data": "no"}],
    }


def _tactic(text: str, start: tuple[int, int], end: tuple[int, int]) -> TacticState:
    return TacticState(
        tactic=text,
        pos=Position(line=start[0], column=start[1]),
        end_pos=Position(line=end[0], column=end[1]),
        goals_before=("⊢ a",),
        goals_after=(),
    )


def test_tactics_are_nested_by_the_text_that_they_span() -> None:
    tactics = (
        _tactic("simp", (2, 2), (2, 6)),
        _tactic("constructor <;> simp", (1, 0), (3, 0)),
        _tactic("rfl", (4, 0), (4, 3)),
        _tactic("skip", (2, 8), (2, 12)),
    )
    trees = tactic_trees(tactics)
    assert [tree["node"]["stx"]["pp"] for tree in trees] == ["constructor <;> simp", "rfl"]
    assert [child["node"]["stx"]["pp"] for child in trees[0]["children"]] == ["simp", "skip"]


_positions = st.tuples(st.integers(1, 6), st.integers(0, 6))


@given(st.lists(st.tuples(_positions, _positions)))
def test_no_tactic_is_lost_and_children_lie_inside(spans: list[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    tactics = tuple(_tactic(str(i), min(a, b), max(a, b)) for i, (a, b) in enumerate(spans))
    seen: list[str] = []

    def walk(node: dict[str, Any], outer: tuple[tuple[int, int], tuple[int, int]]) -> None:
        span = node["node"]["stx"]["range"]
        start, end = ((span[k]["line"], span[k]["column"]) for k in ("start", "finish"))
        assert outer[0] <= start <= end <= outer[1]
        seen.append(node["node"]["stx"]["pp"])
        for child in node["children"]:
            walk(child, (start, end))

    for tree in json.loads(json.dumps(tactic_trees(tactics))):
        walk(tree, ((0, 0), (9, 9)))
    assert sorted(seen, key=int) == [str(i) for i in range(len(spans))]
