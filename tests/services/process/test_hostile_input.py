"""Records are written by a policy that is paid to cheat: nothing crashes, hangs, or is penalised without evidence."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.process.penalties import gamma, penalties_of
from services.process.penalties.literal_script import only_prints_literals
from services.process.shell import parse
from services.process.trajectories import FORMATS, TrajectoryError, read_trajectory
from tests.services.process.turns import record

HOSTILE = {
    "parentheses": "(" * 50_000 + ")" * 50_000,
    "substitutions": "echo " + "$(" * 20_000 + "ls" + ")" * 20_000,
    "open quotes": '"$("' * 20_000,
    "error recovery": "[[ ((<<" * 30_000,
    "heredocs without end": "cat <<A; " * 20_000,
    "heredocs": "cat <<A\nx\nA\n" * 5_000,
    "braces": "echo {" + "," * 200_000,
    "digits": "sleep " + "1" * 60_000 + "x",
    "one long word": "echo '" + "a" * 500_000 + "'",
    "many commands": "echo hi; " * 100_000,
    "pipes": "a|" * 30_000 + "b",
    "expansions": "${" * 30_000,
    "backticks": "`" * 99_999,
    "less than": "<" * 50_000,
    "awk": "awk 'BEGIN{print " + "1 " * 30_000 + "'",
    "awk prints": "awk '" + "print" * 10_000 + "'",
    "python operators": "python -c 'print(" + "-" * 60_000 + "1)'",
    "python sums": "python -c 'print(" + "1+" * 20_000 + "1)'",
    "python brackets": "python -c 'print(" + "[" * 20_000 + "'",
    "python number": "python -c 'print(" + "9" * 50_000 + ")'",
    "javascript": "node -e 'console.log(" + "[" * 20_000 + "'",
    "nested shells": "bash -c " * 2_000 + "true",
    "wrappers": "time " * 20_000 + "true",
    "surrogates": "echo \ud800 \udfff",
    "controls": "echo \x00\x01\x1b[2J",
    "megabyte": "echo " + "ab " * 400_000,
}


@pytest.mark.parametrize("command", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_command_is_judged_within_a_bound(command: str) -> None:
    seconds: list[float] = []
    while len(seconds) < 3 and not any(one < 2.0 for one in seconds):  # a shared processor may take one from us
        start = time.thread_time()
        rows = penalties_of(record(command, command, command))
        seconds.append(time.thread_time() - start)
    assert min(seconds) < 2.0
    assert all(row.evidence for row in rows if row.gamma)
    for row in rows:
        row.model_dump_json()


PIECES = st.sampled_from([
    "echo", "cat", "true", "sleep 5", "ls", "rm x", "'", '"', "`", "$(", ")", "(", "{", "}", "<<EOF", "EOF", "\n", ";",
    "&&", "||", "|", "&", ">", "<", "<<<", "$x", "${x}", "#", "if", "then", "fi", "for i in", "do", "done", "while",
    "case", "esac", "python3 -c", "print('x')", "bash -c", "eval", "\\", "*", "~", "{a,b}", "0.5", " ", "\t", "\x00",
    "é", "\ud800",
])  # fmt: skip
SHELL = st.lists(PIECES, max_size=25).map(" ".join) | st.text(max_size=60)


@given(SHELL)
@settings(max_examples=400, deadline=None)
def test_any_shell_text_parses_or_does_not_and_a_normal_form_is_stable(text: str) -> None:
    script = parse(text)
    assert script == parse(text)


@given(st.lists(SHELL, max_size=6))
@settings(max_examples=200, deadline=None)
def test_every_penalty_has_its_evidence(commands: list[str]) -> None:
    rows = gamma(read_trajectory(record(*commands)))
    assert len(rows) == len(commands) + 1
    for row in rows:
        assert row.gamma == (-1 if row.penalties else 0)
        assert len(set(row.rules)) == len(row.rules)
        for penalty in row.penalties:
            assert penalty.step == row.step
            assert penalty.detail
            assert penalty.quote is not None or penalty.rule == 5
            if penalty.rule in (1, 6):
                assert penalty.earlier_step is not None
                assert penalty.earlier_step <= row.step


@given(st.sampled_from(["python", "javascript", "ruby", "perl", "php", "awk"]), st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_arbitrary_scripts_are_no_literal_prints_and_no_crash(language: str, code: str) -> None:
    if "print" not in code and "puts" not in code and "echo" not in code:
        assert not only_prints_literals(language, code) or language == "ruby"


KEYS = st.sampled_from([
    "thought", "tool_calls", "name", "arguments", "role", "content", "type", "message", "source", "action",
    "observation", "steps", "messages", "history", "events", "kind", "trajectory", "id", "uuid", "extra", "args",
    "schema_version", "agent", "function", "function_name", "results", "command", "tool_call_metadata",
])  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=5),
    max_leaves=25,
)


def follow(value: Any, location: list[str]) -> None:
    """Walks to the place of a complaint; only its last part may be missing from the record."""
    for part in location[:-1]:
        value = value[int(part)] if isinstance(value, list) else value[part]


@given(JSON.filter(lambda value: not isinstance(value, str)), st.sampled_from([None, *FORMATS]))
@settings(max_examples=600, deadline=None)
def test_any_json_is_read_or_refused_with_its_place(value: Any, name: str | None) -> None:
    try:
        steps = read_trajectory(value, name)
    except TrajectoryError as refused:
        fault = refused
    else:
        assert [step.index for step in steps] == list(range(len(steps)))
        assert [step.final for step in steps] == [False] * (len(steps) - 1) + [True] * bool(steps)
        gamma(steps)
        return
    assert fault.message
    follow(value, fault.location)


@given(st.text(max_size=60))
@settings(deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_trajectory(text)
    except TrajectoryError as refused:
        fault = refused
    else:
        return
    assert str(fault)
