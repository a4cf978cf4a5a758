from __future__ import annotations

import pytest

from services.contracts.lean import (
    AxiomUse,
    CheckAnswer,
    CheckStatus,
    CheckTask,
    LeanOutcome,
    Message,
    Position,
    Severity,
    TargetFacts,
)
from services.contracts.outcomes import LeanStatus, Profile, Reason, Verdict
from services.proofs.verdict import MAX_DETAIL, judge

STRICT = CheckTask(code="theorem t : True := trivial", statement="theorem t : True")
PAPER = STRICT.model_copy(update={"profile": Profile.PAPER})
ANY_THEOREM = STRICT.model_copy(update={"statement": None})
ERROR = Message(severity=Severity.ERROR, data="type mismatch", pos=Position(line=2, column=4))
WARNING = Message(severity=Severity.WARNING, data="error: this is not an error")


def target(**changes: object) -> TargetFacts:
    facts: dict[str, object] = {"name": "t", "found": True, "kind": "theorem", "statement_match": True, **changes}
    return TargetFacts.model_validate(facts)


def answer(**changes: object) -> CheckAnswer:
    facts: dict[str, object] = {"status": CheckStatus.DONE, "elapsed_s": 0.5, "target": target(), **changes}
    return CheckAnswer.model_validate(facts)


def summary(outcome: LeanOutcome) -> tuple[LeanStatus, Verdict, Reason]:
    return outcome.status, outcome.verdict, outcome.reason


def test_a_sound_proof_of_the_statement_is_valid() -> None:
    outcome = judge(
        STRICT, answer(target=target(axioms=AxiomUse(core=("propext",), library=("Lib.ax",)), kernel_accepts=True))
    )
    assert summary(outcome) == (LeanStatus.OK, Verdict.VALID, Reason.OK)
    assert outcome.axioms == ("propext", "Lib.ax")
    assert outcome.statement_match is True
    assert outcome.elapsed_s == 0.5


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": CheckStatus.TIMEOUT}, (LeanStatus.TIMEOUT, Verdict.UNKNOWN, Reason.LEAN_TIMEOUT)),
        ({"status": CheckStatus.CRASHED}, (LeanStatus.CRASHED, Verdict.UNKNOWN, Reason.INFRASTRUCTURE)),
        ({"status": CheckStatus.OUT_OF_MEMORY}, (LeanStatus.CRASHED, Verdict.UNKNOWN, Reason.INFRASTRUCTURE)),
        ({"status": CheckStatus.HEARTBEATS}, (LeanStatus.OK, Verdict.INVALID, Reason.HEARTBEATS)),
        ({"header_error": "unknown module"}, (LeanStatus.OK, Verdict.UNKNOWN, Reason.STATEMENT_INVALID)),
        ({"statement_error": "unknown id"}, (LeanStatus.OK, Verdict.UNKNOWN, Reason.STATEMENT_INVALID)),
        ({"messages": (WARNING, ERROR)}, (LeanStatus.OK, Verdict.INVALID, Reason.COMPILE_ERROR)),
        ({"messages": (WARNING,)}, (LeanStatus.OK, Verdict.VALID, Reason.OK)),
        ({"has_placeholder": True}, (LeanStatus.OK, Verdict.INVALID, Reason.PLACEHOLDER)),
        ({"target": None}, (LeanStatus.CRASHED, Verdict.UNKNOWN, Reason.INFRASTRUCTURE)),
        ({"target": target(found=False)}, (LeanStatus.OK, Verdict.INVALID, Reason.STATEMENT_MISMATCH)),
        ({"target": target(kind="def")}, (LeanStatus.OK, Verdict.INVALID, Reason.STATEMENT_MISMATCH)),
        ({"target": target(kind="axiom")}, (LeanStatus.OK, Verdict.INVALID, Reason.STATEMENT_MISMATCH)),
        ({"target": target(statement_match=False)}, (LeanStatus.OK, Verdict.INVALID, Reason.STATEMENT_MISMATCH)),
        ({"target": target(statement_match=None)}, (LeanStatus.CRASHED, Verdict.UNKNOWN, Reason.INFRASTRUCTURE)),
        (
            {"target": target(axioms=AxiomUse(foreign=("sorryAx",)))},
            (LeanStatus.OK, Verdict.INVALID, Reason.PLACEHOLDER),
        ),
        ({"target": target(axioms=AxiomUse(foreign=("cheat",)))}, (LeanStatus.OK, Verdict.INVALID, Reason.AXIOM)),
        ({"target": target(kernel_accepts=False)}, (LeanStatus.OK, Verdict.INVALID, Reason.KERNEL_REJECTED)),
        ({"messages_truncated": True}, (LeanStatus.CRASHED, Verdict.UNKNOWN, Reason.INFRASTRUCTURE)),
        ({"messages_truncated": True, "messages": (WARNING,)}, (LeanStatus.OK, Verdict.VALID, Reason.OK)),
        ({"messages_truncated": True, "messages": (ERROR,)}, (LeanStatus.OK, Verdict.INVALID, Reason.COMPILE_ERROR)),
    ],
)
@pytest.mark.parametrize("task", [STRICT, PAPER], ids=["strict", "paper"])
def test_each_fault_has_its_outcome(
    task: CheckTask, changes: dict[str, object], expected: tuple[LeanStatus, Verdict, Reason]
) -> None:
    assert summary(judge(task, answer(**changes))) == expected


@pytest.mark.parametrize("status", [CheckStatus.CRASHED, CheckStatus.OUT_OF_MEMORY])
def test_a_crash_that_repeats_is_the_candidates_fault(status: CheckStatus) -> None:
    outcome = judge(STRICT, answer(status=status, detail="trap"), repeated=True)
    assert summary(outcome) == (LeanStatus.OK, Verdict.INVALID, Reason.RESOURCE_EXHAUSTED)
    assert outcome.detail is not None
    assert outcome.detail.endswith("twice: trap")


def test_earlier_rules_win() -> None:
    everything = answer(
        header_error="h",
        statement_error="s",
        messages=(ERROR,),
        has_placeholder=True,
        target=target(statement_match=False, axioms=AxiomUse(foreign=("cheat",)), kernel_accepts=False),
    )
    order = []
    while (outcome := judge(STRICT, everything)).verdict is not Verdict.VALID:
        order.append((outcome.reason, (outcome.detail or "")[:7]))
        repair: dict[Reason, dict[str, object]] = {
            Reason.STATEMENT_INVALID: {"statement_error": None}
            if everything.header_error is None
            else {"header_error": None},
            Reason.COMPILE_ERROR: {"messages": ()},
            Reason.PLACEHOLDER: {"has_placeholder": False},
            Reason.STATEMENT_MISMATCH: {"target": target(axioms=AxiomUse(foreign=("cheat",)), kernel_accepts=False)},
            Reason.AXIOM: {"target": target(kernel_accepts=False)},
            Reason.KERNEL_REJECTED: {"target": target()},
        }
        everything = everything.model_copy(update=repair[outcome.reason])
    assert [reason for reason, _ in order] == [
        Reason.STATEMENT_INVALID,
        Reason.STATEMENT_INVALID,
        Reason.COMPILE_ERROR,
        Reason.PLACEHOLDER,
        Reason.STATEMENT_MISMATCH,
        Reason.AXIOM,
        Reason.KERNEL_REJECTED,
    ]
    assert order[0][1] == "header:"


def test_the_first_error_is_told_with_its_place() -> None:
    second = Message(severity=Severity.ERROR, data="later", pos=Position(line=9, column=0))
    outcome = judge(STRICT, answer(messages=(WARNING, ERROR, second)))
    assert outcome.detail == "type mismatch"
    assert outcome.position == Position(line=2, column=4)
    long = Message(severity=Severity.ERROR, data="x" * 100_000)
    assert len(judge(STRICT, answer(messages=(long,))).detail or "") == MAX_DETAIL


def test_leans_own_kind_of_placeholder_warning_counts_and_its_text_does_not() -> None:
    hole = Message(severity=Severity.WARNING, data="?", kind="hasSorry", pos=Position(line=1, column=0))
    assert judge(STRICT, answer(messages=(hole,))).reason is Reason.PLACEHOLDER
    printed = Message(severity=Severity.INFO, data="declaration uses 'sorry'")
    assert judge(STRICT, answer(messages=(printed,))).reason is Reason.OK


@pytest.mark.parametrize(
    ("facts", "strict", "paper"),
    [
        ({"axioms": AxiomUse(foreign=("Lean.ofReduceBool", "Lean.trustCompiler"))}, Reason.AXIOM, Reason.OK),
        ({"axioms": AxiomUse(foreign=("Lean.ofReduceBool.extra",))}, Reason.AXIOM, Reason.AXIOM),
        ({"binders_match": False}, Reason.OK, Reason.STATEMENT_MISMATCH),
        ({"binders_match": False, "printed_match": True}, Reason.OK, Reason.OK),
        ({"printed_match": False}, Reason.OK, Reason.STATEMENT_MISMATCH),
        ({"statement_match": False, "printed_match": True}, Reason.STATEMENT_MISMATCH, Reason.STATEMENT_MISMATCH),
    ],
)
def test_what_the_profiles_judge_differently(facts: dict[str, object], strict: Reason, paper: Reason) -> None:
    assert judge(STRICT, answer(target=target(**facts))).reason is strict
    assert judge(PAPER, answer(target=target(**facts))).reason is paper


def test_without_a_statement_one_sound_theorem_is_enough() -> None:
    unsound = target(name="a", statement_match=None, axioms=AxiomUse(foreign=("cheat",)))
    sound = target(name="b", statement_match=None, axioms=AxiomUse(core=("propext",)))
    definition = target(name="c", kind="def", statement_match=None)
    outcome = judge(ANY_THEOREM, answer(target=None, theorems=(unsound, definition, sound)))
    assert (outcome.reason, outcome.axioms, outcome.statement_match) == (Reason.OK, ("propext",), None)
    assert judge(ANY_THEOREM, answer(target=None, theorems=(unsound, definition))).reason is Reason.AXIOM
    assert judge(ANY_THEOREM, answer(target=None, theorems=(definition,))).reason is Reason.NO_THEOREM
    assert judge(ANY_THEOREM, answer(target=None)).reason is Reason.NO_THEOREM


def test_messages_are_kept_only_when_asked_for() -> None:
    told = answer(messages=(WARNING,))
    assert judge(STRICT, told).messages == ()
    assert judge(STRICT.model_copy(update={"messages": True}), told).messages == (WARNING,)


@pytest.mark.parametrize(
    ("rest", "line", "reason"),
    [
        ("theorem t : True := trivial", 2, Reason.STATEMENT_INVALID),
        ("-- note\n@[simp] theorem t : True := trivial", 1, Reason.STATEMENT_INVALID),
        ("theorem t : True := trivial", 3, Reason.COMPILE_ERROR),
        ("+ nope\ntheorem t : True := trivial", 2, Reason.COMPILE_ERROR),
        (".nope theorem t : True := trivial", 2, Reason.COMPILE_ERROR),
    ],
)
def test_an_error_in_the_header_is_the_callers_unless_the_candidate_went_on_with_it(
    rest: str, line: int, reason: Reason
) -> None:
    header = "open Nat\ndef x := 1\n"
    task = ANY_THEOREM.model_copy(update={"header": header, "code": f"{header}{rest}"})
    error = Message(severity=Severity.ERROR, data="bad", pos=Position(line=line, column=0))
    assert judge(task, answer(messages=(error,))).reason is reason
    copied = task.model_copy(update={"code": f"def y := 1\n{rest}"})
    assert judge(copied, answer(messages=(error,))).reason is Reason.COMPILE_ERROR
