"""How the answers to probes are read: signed, one for each question, in the words of several versions of Lean."""

import pytest
from lean_interact.interface import CommandResponse, Message, Pos

from lean_worker.engines.repl.answers import classify_axioms, messages, tactic_states, uses_placeholder
from lean_worker.engines.repl.expectation import Expectation, compare
from lean_worker.engines.repl.probes import (
    ProbeFault,
    make_probe,
    option_questions,
    printing_options,
    read_axioms,
    read_printed,
)
from services.contracts.lean import Severity


def said(data, line=1, severity="info"):
    return Message(start_pos=Pos(line=line, column=0), severity=severity, data=data)


def answer(*found):
    return CommandResponse(env=1, messages=list(found))


def test_each_question_gets_the_message_of_its_line():
    probe = make_probe(["#print a", "#print b"], "set_option pp.all true")
    assert probe.text.split("\n")[:3] == ["set_option pp.all true", "#print a", "#print b"]
    signed = said(f'"{probe.nonce}" : String', 4)
    assert probe.read(answer(said("B", 3), signed)) == [None, said("B", 3)]


def test_an_answer_without_the_nonce_is_refused():
    probe = make_probe(["#print a"])
    for forged in ((), (said('"other" : String', 3),), (said(f'"{probe.nonce}"', 3, "error"),)):
        with pytest.raises(ProbeFault, match="nonce"):
            probe.read(answer(said("A", 2), *forged))


def test_two_answers_to_one_question_are_refused():
    probe = make_probe(["#print a"])
    with pytest.raises(ProbeFault, match="2 answers"):
        probe.read(answer(said("A", 2), said("A", 2), said(f'"{probe.nonce}" : String', 3)))


def test_nonces_are_never_the_same_and_questions_one_line():
    assert make_probe([]).nonce != make_probe([]).nonce
    with pytest.raises(ValueError, match="one line"):
        make_probe(["#print a\n#print b"])


def test_only_options_that_this_lean_knows_are_set():
    answers = [
        said("Unknown option `x`" if "pp.match" in question else "type mismatch", severity="error")
        for question in option_questions()
    ]
    assert "pp.match" not in printing_options(answers)
    assert "set_option pp.all true" in printing_options(answers)
    with pytest.raises(ProbeFault, match=r"pp\.all"):
        printing_options([said("unknown option 'x'", severity="error")] * len(answers))


@pytest.mark.parametrize(
    ("text", "kind", "levels"),
    [
        ("theorem A.t.{u, v} : ∀ (α : Type u), P α :=\n⋯", "theorem", ("u", "v")),
        ("@[simp] protected theorem A.t : P :=\n⋯", "theorem", ()),
        ("@[reducible] def A.t : Nat :=\nf (let x : Nat := 1; x)", "def", ()),
        ("noncomputable def A.t : Nat := f", "def", ()),
        ("axiom A.t : P", "axiom", ()),
        ("opaque A.t : P", "opaque", ()),
        ("structure A.t : Type\nnumber of parameters: 0", "induct", ()),
        ("class A.t.{u} (α : Type u) : Type u\nnumber of parameters: 1", "induct", ("u",)),
        ("inductive A.t : Type", "induct", ()),
        ("constructor A.t : T", "ctor", ()),
        ("recursor A.t.{u} : T", "rec", ("u",)),
    ],
)
def test_declarations_are_read(text, kind, levels):
    printed = read_printed("A.t", said(text))
    assert (printed.name, printed.kind, printed.levels) == ("A.t", kind, levels)


def test_a_definition_has_its_value_and_a_local_definition_in_its_type_is_none():
    printed = read_printed("f", said('def f : (let x : Nat := 1; P x ":=") := g'))
    assert printed.value.words == ("g",)
    assert '":="' in printed.type.words
    assert read_printed("f", said("def f : let x : Nat := 1; P x := g")).value.words == ("g",)


@pytest.mark.parametrize("text", ["Unknown constant `A.t`", "unknown identifier 'A.t'", "Unknown identifier `A.t`"])
def test_what_does_not_exist_is_not_found(text):
    assert read_printed("A.t", said(text, severity="error")) is None


@pytest.mark.parametrize("text", ["private theorem A.t : P := ⋯", "theorem B.A.t : P := ⋯", "theorem A.t' : P := ⋯"])
def test_another_declaration_is_not_the_target(text):
    assert read_printed("A.t", said(text)) is None


@pytest.mark.parametrize("message", [None, said("deep recursion", severity="error"), said("anything at all")])
def test_what_is_no_answer_is_a_fault(message):
    with pytest.raises(ProbeFault):
        read_printed("A.t", message)


def test_axioms_are_listed_by_their_whole_names():
    text = "'t' depends on axioms: [propext,\n Classical.choice.extra,\n «a, b».c]"
    assert read_axioms("t", said(text)) == ("propext", "Classical.choice.extra", "«a, b».c")
    assert read_axioms("t", said("'t' does not depend on any axioms")) == ()
    for forged in (said("no axioms"), said(text, severity="error"), None):
        with pytest.raises(ProbeFault):
            read_axioms("t", forged)


def test_axioms_are_core_of_the_library_or_foreign():
    use = classify_axioms(
        ["propext", "sorryAx", "Lib.ax", "mine", "Lean.ofReduceBool"], frozenset({"Lib.ax", "sorryAx"})
    )
    assert (use.core, use.library) == (("propext",), ("Lib.ax",))
    assert use.foreign == ("Lean.ofReduceBool", "mine", "sorryAx")


@pytest.mark.parametrize("warning", ["declaration uses 'sorry'", "declaration uses `sorry`"])
def test_the_placeholder_warning_is_known_in_both_spellings(warning):
    assert uses_placeholder(answer(said(warning, severity="warning")))
    assert not uses_placeholder(answer(said("this uses no placeholder")))


def test_errors_are_kept_when_there_is_no_room_for_all_messages():
    many = [said("noise", line=i + 1) for i in range(1000)]
    kept, truncated = messages(answer(*many, said("the error", line=2000, severity="error")))
    assert truncated
    assert kept[-1].severity is Severity.ERROR
    assert len(kept) == 200


def test_an_unreadable_type_equals_no_other():
    wanted = Expectation(read_printed("t", said("theorem t : P := ⋯")))
    unreadable = read_printed("t", said("theorem t : P ) := ⋯"))
    assert unreadable.type is None
    assert not compare(wanted, unreadable, {}).statement


def test_goals_and_tactics_become_states():
    goals = "case a\nn : Nat\n⊢ n =\n    n\ncase b\n⊢ True"
    tactics = [
        {"pos": {"line": 1, "column": 2}, "endPos": {"line": 1, "column": 9}, "goals": goals, "tactic": "rfl"},
        {"pos": {"line": 2, "column": 2}, "endPos": {"line": 2, "column": 9}, "goals": "⊢ True", "tactic": "trivial"},
    ]
    first, last = tactic_states(CommandResponse.model_validate({"env": 1, "tactics": tactics}))
    assert first.goals_before == ("case a\nn : Nat\n⊢ n =\n    n", "case b\n⊢ True")
    assert first.goals_after == last.goals_before == ("⊢ True",)
    assert last.goals_after == ()
