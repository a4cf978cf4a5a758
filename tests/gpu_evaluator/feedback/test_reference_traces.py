from __future__ import annotations

from gpu_evaluator.feedback.metrics import SourcePreservation, audit_source
from gpu_evaluator.feedback.trace import build_trace, prepare_source
from gpu_evaluator.feedback.verdict import TraceSign, judge_trace
from services.contracts.lean import Message, Position, Severity, TacticState


def _tactic(line: int, *goals: str, column: int = 2) -> TacticState:
    pos = Position(line=line, column=column)
    return TacticState(tactic="_", pos=pos, end_pos=pos, goals_before=goals, goals_after=())


def _message(severity: Severity, line: int, data: str) -> Message:
    return Message(
        severity=severity, data=data, pos=Position(line=line, column=0), end_pos=Position(line=line, column=1)
    )


def test_states_stand_before_their_line_and_errors_after_theirs() -> None:
    source = "theorem t (p : Prop) (hp : p) : p := by\n  have h := hp\n  exact x\n  done"
    trace = build_trace(
        source,
        [_tactic(2, "p : Prop\nhp : p\n⊢ p"), _tactic(3, "p : Prop\nhp h : p\n⊢ p"), _tactic(3, "never shown")],
        [_message(Severity.WARNING, 1, "unused"), _message(Severity.ERROR, 3, "unknown\nidentifier 'x'")],
    )
    assert trace == (
        "theorem t (p : Prop) (hp : p) : p := by\n"
        "  /- <feedback>\n  -- proof state:\n  p : Prop\n  hp : p\n  ⊢ p\n  </feedback> -/\n"
        "  have h := hp\n"
        "  /- <feedback>\n  -- proof state:\n  h : p\n  ⊢ p\n  </feedback> -/\n"
        "  exact x\n"
        "  /- <feedback>\n  -- type: error, msg: unknown\n  identifier 'x'\n  </feedback> -/"
    )
    assert judge_trace(trace, hit_limit=False).sign is TraceSign.ERROR_MARKER
    assert audit_source(source, trace) is SourcePreservation.PREFIX


def test_a_changed_hypothesis_shows_what_it_was_and_continuations_are_joined() -> None:
    source = "theorem t : q := by\n  a\n  b"
    trace = build_trace(
        source, [_tactic(2, "x y : Nat\nh : a =\n    b\n⊢ q"), _tactic(3, "x y : Nat\nh : a = c\n⊢ q")], []
    )
    assert "  x : Nat\n  y : Nat\n  h : a = b\n  ⊢ q\n" in trace
    assert "  -- proof state:\n  h : a = c (was a = b)\n  ⊢ q\n" in trace


def test_case_labels_and_goals_repeat_and_their_continuations_are_no_hypotheses() -> None:
    state = "case inl\nh : p\n⊢ q ∧\n    r : s"
    trace = build_trace("t\n a\n b", [_tactic(2, state), _tactic(3, state)], [])
    assert trace.count("case inl") == 2
    assert trace.count("⊢ q ∧") == 2
    assert trace.count("h : p") == 1
    assert trace.count("    r : s") == 2


def test_a_state_that_directly_follows_a_diagnostic_is_merged_into_its_block() -> None:
    trace = build_trace("t\n  a\n  b", [_tactic(3, "⊢ q")], [_message(Severity.INFO, 2, "hint")])
    assert trace.count("<feedback>") == 1
    assert "-- type: info, msg: hint\n  -- proof state:\n  ⊢ q\n  </feedback> -/\n  b" in trace


def test_linter_notes_and_empty_diagnostics_leave_no_block() -> None:
    note = "note: this linter can be disabled with `set_option linter.x false`"
    assert build_trace("t", [], [_message(Severity.INFO, 1, note)]) == "t"


def test_a_message_that_quotes_a_delimiter_cannot_end_its_block() -> None:
    trace = build_trace("t", [], [_message(Severity.ERROR, 1, "bad </feedback> -/ theorem u")])
    assert trace.count("</feedback>") == 1


def test_an_inline_declaration_proof_gets_a_line_of_its_own_and_nothing_else_moves() -> None:
    assert prepare_source("theorem t : p := by simp\n") == "theorem t : p := by\n  simp\n"
    assert prepare_source("theorem t :\n    p := by simp; rfl") == "theorem t :\n    p := by\n  simp; rfl"
    for untouched in (
        "theorem t : p := by\n  have h : q := by simp\n  exact h\n",
        "theorem t : p := by constructor\n                    · simp\n",
        'def s : String := ":= by simp"\n',
        "-- theorem t : p := by simp\n",
    ):
        assert prepare_source(untouched) == untouched


def test_existing_feedback_is_removed_before_annotation() -> None:
    program = "theorem t : p := by\n  /- <feedback>\n  -- proof state:\n  ⊢ p\n  </feedback> -/\n  simp\n"
    assert prepare_source(program) == "theorem t : p := by\n  simp\n"
