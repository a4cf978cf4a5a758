"""Each harness's record gives the same steps as our own, and what is no turn of the agent is none."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.process.penalties import gamma
from services.process.trajectories import FORMATS, Lapse, TrajectoryError, detect, read_trajectory
from services.process.trajectories.formats import decode
from tests.services.process import harness_records as records


def rules(record: Any, name: str | None = None) -> list[tuple[int, int]]:
    return [(row.step, rule) for row in gamma(read_trajectory(record, name)) for rule in row.rules]


@pytest.mark.parametrize(("name", "record"), records.RECORDS.values(), ids=records.RECORDS.keys())
def test_a_run_gives_the_same_penalties_in_every_format(name: str, record: Any) -> None:
    assert detect(decode(record) if isinstance(record, str) else record) == name
    assert rules(record) == rules(record, name) == records.PENALTIES
    steps = read_trajectory(record)
    assert len(steps) == 4
    assert [step.final for step in steps] == [False, False, False, True]
    assert [o.text.strip() for o in steps[0].observations][:1] in (["a.py"], [])


def test_every_format_of_the_contract_has_a_reader() -> None:
    from services.contracts.trajectories import TrajectoryFormat

    assert {f.value for f in TrajectoryFormat} == set(FORMATS)


def test_source_indices_point_at_the_messages_of_the_turn() -> None:
    assert [step.source for step in read_trajectory(records.CHAT)] == [(2, 3), (4,), (6, 7), (8,)]
    assert [step.source for step in read_trajectory(records.CLAUDE_CODE)] == [(1, 2, 3, 6), (7,), (10, 11), (12,)]
    assert [step.source for step in read_trajectory(records.ATIF)] == [(1,), (2,), (4,), (5,)]


def test_observations_keep_the_call_that_they_answer() -> None:
    step = read_trajectory(records.OPENHANDS_SDK)[0]
    assert [(o.call_id, o.text) for o in step.observations] == [("c0", "a.py"), ("c1", "no such file")]
    assert [call.name for call in step.calls] == ["terminal", "file_editor"]
    assert "kind" not in step.calls[0].arguments


def test_copied_history_is_no_turn() -> None:
    copied = copy.deepcopy(records.ATIF)
    copied["steps"][1:1] = [{**copied["steps"][1], "is_copied_context": True}] * 2
    assert len(read_trajectory(copied)) == 4
    events = [{**event, "uuid": f"u{i}"} for i, event in enumerate(records.CLAUDE_CODE)]
    assert len(read_trajectory(events + events)) == 4


def test_a_split_claude_message_is_one_turn_and_two_moments_are_two() -> None:
    text = {"step_id": 1, "source": "agent", "message": "I run it.", "timestamp": "2026-01-01T00:00:00Z"}
    call = {
        "step_id": 2,
        "source": "agent",
        "message": "",
        "timestamp": "2026-01-01T00:00:00Z",
        "tool_calls": [{"tool_call_id": "t", "function_name": "Bash", "arguments": {"command": "make"}}],
    }
    split = {"schema_version": "ATIF-v1.5", "agent": {"name": "claude-code"}, "steps": [text, call]}
    assert len(read_trajectory(split)) == 1
    apart = {**split, "steps": [text, {**call, "timestamp": "2026-01-01T00:00:09Z"}]}
    assert len(read_trajectory(apart)) == 2


def test_a_call_that_the_harness_could_not_execute_is_a_parse_failure() -> None:
    events = copy.deepcopy(records.OPENHANDS_SDK)
    events[-2]["action"] = None
    step = read_trajectory(events)[2]
    assert (step.calls, step.lapse) == ((), Lapse.PARSE_FAILURE)
    assert (2, 5) not in rules(events)


@pytest.mark.parametrize(
    ("extra", "content", "lapse"),
    [
        ({}, "No tool calls found in the response.", None),
        ({}, "Error parsing tool call arguments: Expecting value.", Lapse.PARSE_FAILURE),
        (
            {"n_actions": 2, "model_response": "```bash\na\n```\n```bash\nb\n```"},
            "Found 2 actions",
            Lapse.PARSE_FAILURE,
        ),
        ({"n_actions": 0, "model_response": "I am thinking."}, "Expected exactly 1 action, found 0.", None),
    ],
)
def test_a_format_error_of_mini_swe_agent_is_a_turn(extra: dict[str, Any], content: str, lapse: Lapse | None) -> None:
    record = copy.deepcopy(records.MINI_SWE_AGENT)
    record["messages"][4] = {"role": "user", "content": content, "extra": {"interrupt_type": "FormatError", **extra}}
    steps = read_trajectory(record)
    assert len(steps) == 4
    assert steps[1].lapse is lapse
    assert ((1, 5) in rules(record)) is (lapse is None)


def test_calls_of_one_response_are_one_turn() -> None:
    metadata = {"function_name": "execute_bash", "tool_call_id": "t", "total_calls_in_response": 2}
    events = [
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}, "tool_call_metadata": metadata},
        {"id": 2, "source": "agent", "action": "run", "args": {"command": "pwd"}, "tool_call_metadata": metadata},
        {"id": 3, "source": "agent", "cause": 2, "observation": "run", "content": "/w"},
        {"id": 4, "source": "agent", "action": "finish", "args": {}},
    ]
    assert [len(step.calls) for step in read_trajectory(events)] == [2, 1]
    response = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "look"}]},
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": '{"command": "ls"}'},
        {"type": "function_call", "call_id": "b", "name": "bash", "arguments": '{"command": "pwd"}'},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]
    assert [len(step.calls) for step in read_trajectory(response)] == [2, 0]


def test_calls_between_tags_are_calls_and_broken_ones_a_parse_failure() -> None:
    good = {"role": "assistant", "content": '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>'}
    bad = {"role": "assistant", "content": '<tool_call>{"name": "bash", "argu'}
    steps = read_trajectory([good, bad, {"role": "assistant", "content": "done"}])
    assert [len(step.calls) for step in steps] == [1, 0, 0]
    assert steps[1].lapse is Lapse.PARSE_FAILURE


def test_swe_agent_tools_are_tools_and_the_rest_is_bash() -> None:
    items = [
        {"action": a, "observation": "", "thought": ""} for a in ("open a.py 10", "str_replace_editor view /a", "ls")
    ]
    names = [step.calls[0].name for step in read_trajectory(items)]
    assert names == ["open", "str_replace_editor", "bash"]


def test_empty_records_have_no_steps() -> None:
    assert read_trajectory([]) == []
    assert read_trajectory({"schema_version": "ATIF-v1.6", "agent": {"name": "x"}, "steps": []}) == []


@pytest.mark.parametrize(
    ("name", "record", "pointer"),
    [
        ("steps", [{"tool_calls": "ls"}], "/0/tool_calls"),
        ("steps", [{}, {"tool_calls": [{"name": "a"}, {"name": 5}]}], "/1/tool_calls/1/name"),
        ("steps", [{"phase": "later"}], "/0/phase"),
        ("steps", [{"stage": 3}], "/0/stage"),
        ("steps", ["x"], "/0"),
        ("chat", [{"role": "robot"}], "/0/role"),
        ("chat", [{"role": "assistant", "content": 5}], "/0/content"),
        ("atif", {"steps": [{"source": "martian"}]}, "/steps/0/source"),
        ("atif", {"steps": [{"source": "agent", "tool_calls": [{}]}]}, "/steps/0/tool_calls/0/function_name"),
        ("swe_agent", {"trajectory": [{"action": 1}]}, "/trajectory/0/action"),
        ("openhands", [{"source": "agent", "action": "run", "args": "ls"}], "/0/args"),
        ("openhands_sdk", [{"kind": "ActionEvent", "action": {}, "tool_name": None}], "/0/tool_name"),
        ("claude_code", [{"type": "assistant", "message": "x"}], "/0/message"),
        ("mini_swe_agent", {"messages": [{"role": "assistant", "extra": {"actions": [{"command": 1}]}}]},
         "/messages/0/extra/actions/0/command"),
        (None, {"a~b": 1}, ""),
        (None, 7, ""),
        (None, "no json", ""),
        ("tape", [], ""),
    ],
)  # fmt: skip
def test_a_record_that_does_not_fit_names_the_place(name: str | None, record: Any, pointer: str) -> None:
    with pytest.raises(TrajectoryError) as refused:
        read_trajectory(record, name)
    assert refused.value.pointer == pointer


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = put(value[path[0]], path[1:], new)
    return changed


@given(st.sampled_from([r for r in records.RECORDS.values() if not isinstance(r[1], str)]), st.data())
@settings(max_examples=600, deadline=None)
def test_a_damaged_record_is_read_or_refused(named: tuple[str, Any], data: st.DataObject) -> None:
    name, record = named
    path = data.draw(st.sampled_from(places(record)))
    junk = data.draw(st.sampled_from([None, 0, -1, 1.5, True, "", "x", "{", [], [[]], {}, {"a": []}, ["x", None]]))
    damaged = put(record, path, junk)
    for chosen in (name, None):
        try:
            steps = read_trajectory(damaged, chosen)
        except TrajectoryError:
            continue
        assert len(gamma(steps)) == len(steps)


def test_text_may_hold_lines_that_are_no_json() -> None:
    text = "warming up\n" + "\n".join(json.dumps(event) for event in records.CLAUDE_CODE) + "\nbye"
    assert rules(text) == records.PENALTIES
