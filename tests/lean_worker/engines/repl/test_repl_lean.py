"""The native engine against a real Lean: the embedded one behind the REPL protocol (`repl_shim`)."""

import asyncio

import pytest
import pytest_asyncio

from lean_worker.engines.base import HeaderError
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.repl_shim import lay_out
from lean_worker.engines.repl.engine import ReplEngine
from lean_worker.sandbox import Tier
from services.contracts.lean import CheckStatus, CheckTask
from services.contracts.outcomes import Profile, Reason, Verdict
from services.proofs.precheck import precheck
from services.proofs.statement import read_statement
from services.proofs.verdict import judge
from services.runtime.settings import ReplSettings
from tests.conftest import load_cases

pytestmark = [pytest.mark.lean, pytest.mark.asyncio(loop_scope="module")]

CASES = load_cases("lean_cases.sample.json")
SLOW_S = 120.0


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["fast", "replay"])
async def engine(request, tmp_path_factory):
    shim = await lay_out(tmp_path_factory.mktemp("shim") / "repl", Installation.locate())
    settings = ReplSettings(
        folder=shim.folder, lake=str(shim.lake), read_only=shim.read_only, tier=request.param, memory_mb=4096
    )
    started = ReplEngine(settings)
    await started.start()
    yield started
    await started.stop()


def task(code, statement=None, **changes):
    text = read_statement(statement).text if statement else None
    return CheckTask(code=code, statement=text, **{"timeout_s": SLOW_S, **changes})


async def outcome(engine, code, statement=None, **changes):
    asked = task(code, statement, **changes)
    return judge(asked, await engine.check(asked), repeated=True)


ADD = "theorem add_swap (a b : Nat) : a + b = b + a"


async def test_it_runs_in_a_sandbox_and_knows_what_replay_does(engine):
    assert engine.sandbox in (Tier.BUBBLEWRAP, Tier.LANDLOCK)
    assert engine.identity.toolchain == "leanprover/lean4:v4.28.0"


HONEST = {
    "plain": (f"{ADD} := by omega", ADD),
    "other names and kinds of binders": ("theorem add_swap (x : Nat) {y : Nat} : x + y = y + x := by omega", ADD),
    "namespaced": ("namespace W\ntheorem t : 1 = 1 := rfl\nend W", "theorem W.t : 1 = 1"),
    "escaped name": ("theorem «a b».«c.d» : 1 = 1 := rfl", "theorem «a b».«c.d» : 1 = 1"),
    "universes of other names": (
        "theorem u.{w} {β : Type w} (y : β) : y = y := rfl",
        "theorem u.{v} {α : Type v} (x : α) : x = x",
    ),
    "instances, lists, a local definition": (
        "theorem l {α : Type} [Inhabited α] (xs : List α) (h : 0 < xs.length) : (let y := xs[0]; y) = xs[0] := rfl",
        "theorem l {β : Type} [inst : Inhabited β] (l : List β) (hl : 0 < l.length) : (let z := l[0]; z) = l[0]",
    ),
    "a matcher in the type": (
        "theorem m (n : Nat) : (match n with | 0 => 1 | k + 1 => k + 1) > 0 := by cases n <;> simp",
        "theorem m (n : Nat) : (match n with | 0 => 1 | k + 1 => k + 1) > 0",
    ),
    "quantifier or arrow": (
        "theorem i (p q : Prop) : p → q → p := fun a _ => a",
        "theorem i (p q : Prop) (a : p) : ∀ _ : q, p",
    ),
    "its own notation in the proof": (
        'local notation "two" => (2 : Nat)\ntheorem n : (1 : Nat) + 1 = 2 := by show (1 : Nat) + 1 = two; rfl',
        "theorem n : (1 : Nat) + 1 = 2",
    ),
    "an open namespace and variables at the end": (
        f"{ADD} := by omega\nnamespace N\nvariable (x : Nat) (h : x = 1)\nopen List",
        ADD,
    ),
    "the library's own axioms": ("theorem c (p : Prop) : p ∨ ¬p := Classical.em p", "theorem c (p : Prop) : p ∨ ¬p"),
    "traces that are left on": (
        f"set_option trace.Elab.command true\nset_option profiler true\n{ADD} := by omega",
        ADD,
    ),
    "little recursion left": (f"{ADD} := by omega\nset_option maxRecDepth 60", ADD),
    "options of the printer": (f"set_option pp.oneline true\nset_option pp.maxSteps 1\n{ADD} := by omega", ADD),
}


@pytest.mark.parametrize("case", HONEST)
async def test_honest_candidates_are_valid(engine, case):
    code, statement = HONEST[case]
    found = await outcome(engine, code, statement)
    assert (found.verdict, found.reason) == (Verdict.VALID, Reason.OK), found.detail


EVIL_ADD = "instance (priority := high) : HAdd Nat Nat Nat := ⟨fun a _ => a⟩\n"
FORGED = 'macro "#print" "axioms" x:ident : command => `(#check "\'one\' does not depend on any axioms")\n'
MUTED = 'macro "#check" x:term : command => `(#eval 1)\nmacro "#print" x:ident : command => `(section end)\n'
LYING = 'macro "#print" x:ident : command => `(#check "theorem one : @Eq.{1} Nat (nat_lit 1) (nat_lit 2) := ⋯")\n'
CHEATS = {
    "another statement": ("theorem add_swap (a b : Nat) : a + b = a + b := rfl", ADD, Reason.STATEMENT_MISMATCH),
    "in a namespace left open": (
        "namespace Evil\ntheorem one : (1 : Nat) = 1 := rfl",
        "theorem one : (1 : Nat) = 1",
        Reason.STATEMENT_MISMATCH,
    ),
    "shadowed through an opened namespace": (
        "theorem Evil.one : True := trivial\nopen Evil",
        "theorem one : True",
        Reason.STATEMENT_MISMATCH,
    ),
    "a private theorem": ("private theorem one : True := trivial", "theorem one : True", Reason.STATEMENT_MISMATCH),
    "a definition": ("def one : 1 = 1 := rfl", "theorem one : 1 = 1", Reason.STATEMENT_MISMATCH),
    "an instance that changes the meaning": (
        EVIL_ADD + "theorem add_nothing (a b : Nat) : a + b = a := rfl",
        "theorem add_nothing (a b : Nat) : a + b = a",
        Reason.STATEMENT_MISMATCH,
    ),
    "the same with instances hidden from the printer": (
        "set_option pp.instances false\nset_option pp.explicit false\nset_option pp.all false\n"
        + EVIL_ADD
        + "theorem add_nothing (a b : Nat) : a + b = a := rfl",
        "theorem add_nothing (a b : Nat) : a + b = a",
        Reason.STATEMENT_MISMATCH,
    ),
    "notation that changes the meaning": (
        'local notation "False" => True\ntheorem absurd_now : False := trivial',
        "theorem absurd_now : False",
        Reason.STATEMENT_MISMATCH,
    ),
    "an overridden #print axioms": (
        FORGED + "axiom bad : (1 : Nat) = 2\ntheorem one : (1 : Nat) = 2 := bad",
        "theorem one : (1 : Nat) = 2",
        Reason.AXIOM,
    ),
    "an overridden #check and #print": (
        MUTED + "theorem one : (1 : Nat) = 2 := by stop rfl",
        "theorem one : (1 : Nat) = 2",
        Reason.PLACEHOLDER,
    ),
    "an overridden #print with a printed forgery": (
        LYING + "theorem one : (1 : Nat) = 1 := rfl",
        "theorem one : (1 : Nat) = 2",
        Reason.STATEMENT_MISMATCH,
    ),
    "an axiom of its own": ("axiom bad : False\ntheorem one : 1 = 2 := bad.elim", "theorem one : 1 = 2", Reason.AXIOM),
    "an axiom named like a trusted one": (
        "axiom Evil.propext : False\nopen Evil\ntheorem one : 1 = 2 := Evil.propext.elim",
        "theorem one : 1 = 2",
        Reason.AXIOM,
    ),
    "a placeholder": ("theorem one : 1 = 2 := by sorry", "theorem one : 1 = 2", Reason.PLACEHOLDER),
    "a placeholder without its warning": (
        "#guard_msgs (drop warning) in\ntheorem one : 1 = 2 := by sorry",
        "theorem one : 1 = 2",
        Reason.PLACEHOLDER,
    ),
    "a name that the root does not have": (
        "variable («_root_» : Nat)\ntheorem Nat.one' : True := trivial",
        "theorem one' : True",
        Reason.STATEMENT_MISMATCH,
    ),
}


@pytest.mark.parametrize("case", CHEATS)
async def test_cheating_candidates_are_found_out(engine, case):
    code, statement, reason = CHEATS[case]
    found = await outcome(engine, code, statement)
    assert (found.verdict, found.reason) == (Verdict.INVALID, reason), found.detail


HEADER = "def Good (n : Nat) : Prop := n > 5\n"


@pytest.mark.parametrize(
    ("definition", "verdict"),
    [(HEADER, Verdict.VALID), ("def Good (n : Nat) : Prop := n > 4\n", Verdict.INVALID)],
    ids=["the header's", "its own"],
)
async def test_a_definition_of_the_header_may_not_be_replaced(engine, definition, verdict):
    found = await outcome(
        engine, definition + "theorem t : Good 7 := by unfold Good; omega", "theorem t : Good 7", header=HEADER
    )
    assert found.verdict is verdict, found.detail


async def test_compiled_evaluation_is_an_axiom_and_no_kernel_can_replay_it(engine):
    code, statement = "theorem one : (2 : Nat) + 2 = 4 := by native_decide", "theorem one : (2 : Nat) + 2 = 4"
    replayed = engine.identity.environment.endswith("+replay")
    strict = await outcome(engine, code, statement)
    assert strict.reason is (Reason.KERNEL_REJECTED if replayed else Reason.AXIOM)
    paper = await outcome(engine, code, statement, profile=Profile.PAPER)
    assert paper.verdict is (Verdict.INVALID if replayed else Verdict.VALID)


async def test_what_the_kernel_never_saw_is_refused_when_replayed(engine):
    """`paper` lets the option pass the precheck; so must the engine not."""
    found = await outcome(
        engine,
        "set_option debug.skipKernelTC true in\ntheorem one : (1 : Nat) = 2 := by decide +kernel",
        "theorem one : (1 : Nat) = 2",
        profile=Profile.PAPER,
    )
    assert (found.verdict, found.reason) == (Verdict.INVALID, Reason.KERNEL_REJECTED)
    assert (await outcome(engine, f"{ADD} := by omega", ADD)).verdict is Verdict.VALID


async def test_one_candidate_does_not_see_another(engine):
    first = 'theorem helper : True := trivial\ntheorem one : True := helper\nnotation "what" => True'
    assert (await outcome(engine, first, "theorem one : True")).verdict is Verdict.VALID
    for code in ("theorem one : True := helper", "theorem one : what := trivial"):
        assert (await outcome(engine, code, "theorem one : True")).reason is Reason.COMPILE_ERROR


async def test_without_a_statement_one_sound_theorem_is_enough(engine):
    code = "namespace A\ntheorem bad : 1 = 2 := by sorry\nend A"
    assert (await outcome(engine, code)).verdict is Verdict.INVALID
    found = await outcome(engine, "namespace A\ntheorem good : 1 = 1 := rfl\nend A\ntheorem also : True := trivial")
    assert found.verdict is Verdict.VALID


async def test_a_statement_that_does_not_elaborate_is_the_callers_fault(engine):
    found = await outcome(engine, "theorem t : True := trivial", "theorem t : Nonexistent 1")
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, Reason.STATEMENT_INVALID)
    assert "Nonexistent" in found.detail


async def test_tactics_come_with_their_goals(engine):
    found = await outcome(engine, f"{ADD} := by\n  rw [Nat.add_comm]", ADD, tactics=True)
    assert found.verdict is Verdict.VALID
    first = found.tactics[0]
    assert (first.tactic, first.pos.line) == ("rw [Nat.add_comm]", 2)
    assert first.goals_before[0].endswith("⊢ a + b = b + a")


async def test_positions_are_those_of_the_candidates_own_text(engine):
    found = await outcome(
        engine,
        "-- first\nimport Init\n\ntheorem t : True := by\n  exact nope",
        "theorem t : True",
        header="import Init",
    )
    assert found.reason is Reason.COMPILE_ERROR
    assert (found.position.line, found.position.column) == (5, 8)


async def test_headers_are_opened_and_their_errors_looked_at(engine):
    await engine.open("import Init\nopen Nat")
    for header, text in (("import Nope", "Nope"), ("def x : Nat := nope", "nope")):
        with pytest.raises(HeaderError, match=text):
            await engine.open(header)


async def test_the_budget_of_heartbeats_ends_a_check(engine):
    code = "set_option maxRecDepth 100000 in\ntheorem h : ∀ a b c : Fin 30, a + b + c = c + b + a := by decide"
    found = await outcome(engine, code, "theorem h : ∀ a b c : Fin 30, a + b + c = c + b + a", heartbeats=200)
    assert (found.verdict, found.reason) == (Verdict.INVALID, Reason.HEARTBEATS)


async def test_a_stack_overflow_is_one_candidates_crash(engine):
    deep = "theorem s : " + "(" * 20000 + "1" + ")" * 20000 + " = 1 := rfl"
    answer = await engine.check(task(deep, "theorem s : 1 = 1"))
    assert answer.status is not CheckStatus.TIMEOUT
    assert (await outcome(engine, f"{ADD} := by omega", ADD)).verdict is Verdict.VALID


async def test_a_check_that_runs_is_cancelled_and_leaves_a_clean_engine(engine):
    endless = "set_option maxRecDepth 1000000\ntheorem e : ∀ a b c : Fin 60, a + b + c = c + b + a := by decide"
    running = asyncio.create_task(engine.check(task(endless, "theorem e : True", heartbeats=100_000_000)))
    await asyncio.sleep(2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 0.2)
    assert (await outcome(engine, f"{ADD} := by omega", ADD)).verdict is Verdict.VALID


async def test_papers_profile_also_compares_the_printed_signature(engine):
    shown = "theorem add_swap (x y : Nat) : x + y = y + x := by omega"
    found = await outcome(engine, shown, ADD, profile=Profile.PAPER)
    assert found.reason is Reason.STATEMENT_MISMATCH
    assert (await outcome(engine, f"{ADD} := by omega", ADD, profile=Profile.PAPER)).verdict is Verdict.VALID


@pytest.mark.slow
@pytest.mark.skipif(not CASES, reason="the shared acceptance cases do not lie beside this checkout")
async def test_the_shared_cases_come_out_right(engine):
    wrong = []
    for case in CASES:
        if case["required_header"] or case["strictness"] != "must":
            continue
        valid = precheck(case["code"], "", Profile.STRICT) is None
        if valid:
            found = await outcome(engine, case["code"], case["expected_theorem"]["statement"])
            valid = found.verdict is Verdict.VALID
        if ("accept" if valid else "reject") != case["expected_verdict"]:
            wrong.append(case["id"])
    assert wrong == []
