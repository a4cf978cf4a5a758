"""Which labelled programs are learned from, and which problems are kept out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_evaluator.training.corpus import Chosen, Example, choose, is_held_out, read_examples
from gpu_evaluator.training.records import RecordError

RIGHT = "theorem t : 1 = 1 := by\n  rfl"
ERROR = RIGHT + "\n  /- <feedback>\n  -- type: error, msg: no\n  </feedback> -/"


def example(**given: Any) -> Example:
    values = {"problem": "p", "program": RIGHT, "valid": True, "trace": RIGHT, "toolchain": "4.15.0"}
    return Example(**{**values, **given})


def chosen_of(*examples: Example, traces: bool = False) -> tuple[list[Example], Chosen]:
    chosen = Chosen()
    return list(choose(examples, chosen, traces=traces)), chosen


def test_a_line_of_the_gateways_export_is_an_example_too(tmp_path: Path) -> None:
    line = {"code": "a\n/- <feedback>\nx\n</feedback> -/\nb", "header": "", "statement": "theorem t : 1 = 1"}
    line |= {"verdict": "valid", "reason": "ok", "toolchain": "4.15.0", "elapsed_s": 0.1, "predicted": "invalid"}
    line |= {"gate": 0.1, "model": "m", "problems": "", "audited": True, "at": 1.0}
    path = tmp_path / "export.jsonl"
    path.write_text(json.dumps(line))
    (found,) = read_examples([path])
    assert found == Example("theorem t : 1 = 1", "a\nb", True, None, "4.15.0")


def test_a_model_is_asked_about_the_text_that_was_labelled_not_the_one_that_ran(tmp_path: Path) -> None:
    line = {"program": "theorem t : 1 = 1 := by rfl", "code": RIGHT, "verdict": "valid", "toolchain": "4.15.0"}
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(line | {"trace": RIGHT}))
    (found,) = read_examples([path])
    assert (found.program, found.trace) == ("theorem t : 1 = 1 := by rfl", RIGHT)


@pytest.mark.parametrize(("change", "said"), [({"verdict": "unknown"}, "no verdict"), ({"toolchain": None}, "no tool")])
def test_a_line_that_teaches_nothing_is_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps({"code": "x", "verdict": "valid", "toolchain": "4.15.0"} | change))
    with pytest.raises(RecordError, match=f"line 1: {said}"):
        list(read_examples([path]))


def test_each_program_is_learned_once_and_its_first_verdict_counts() -> None:
    kept, chosen = chosen_of(example(), example(problem="q"), example(valid=False), example(program=" \n"))
    assert kept == [example()]
    assert chosen.left_out == {"duplicate": 1, "contradiction": 1, "empty": 1}
    assert (chosen.programs, chosen.valid) == (1, 1)


def test_a_trace_must_be_there_and_stand_for_leans_verdict() -> None:
    right, wrong = example(), example(program="x", valid=False, trace=ERROR)
    other_statement = example(program="y", valid=False)
    no_trace = example(program="z", trace=None)
    kept, chosen = chosen_of(right, wrong, other_statement, no_trace, traces=True)
    assert kept == [right, wrong]
    assert chosen.left_out == {"trace_disagrees": 1, "no_trace": 1}
    kept, _ = chosen_of(right, wrong, other_statement, no_trace)
    assert kept == [right, wrong, other_statement, no_trace]  # a classifier learns from all


def test_labels_of_two_toolchains_do_not_mix() -> None:
    with pytest.raises(RecordError, match="one toolchain"):
        chosen_of(example(), example(program="x", toolchain="4.28.0"))


@given(problem=st.text(), seed=st.integers(0, 9))
def test_a_problem_is_on_one_side_and_stays_out_when_more_are_kept_out(problem: str, seed: int) -> None:
    sides = [is_held_out(problem, share, seed) for share in (0.0, 0.1, 0.5, 1.0)]
    assert sides == sorted(sides)
    assert (sides[0], sides[-1]) == (False, True)


def test_about_the_share_that_is_asked_for_is_held_out() -> None:
    assert 180 < sum(is_held_out(f"p{n}", 0.2, 42) for n in range(1000)) < 220
