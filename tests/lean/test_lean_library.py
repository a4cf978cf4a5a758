"""The Lean library itself: it compiles, its theorems are proved, and they rest on Lean's three axioms alone."""

from __future__ import annotations

import re

import pytest

from lean_worker.engines.embedded.engine import EmbeddedEngine
from services.contracts.lean import CheckStatus, CheckTask, Severity, TargetFacts
from services.process.certificates.sources import (
    CERTIFICATES,
    CHECKERS,
    EVERYTHING,
    LIBRARY,
    modules,
    preamble,
    source_of,
)

# What `facts` of the design ask to be proved, by the names of the theorems that say it.
PROMISED = {
    "entails_sound",
    "isTopological_acyclic",
    "chain_sound",
    "chain_exit_sound",
    "informationClosed_iff",
    "pathCoverage_iff",
    "coverOf_contributor",
    "reaches_iff",
    "legal_iff",
    "turns_walk",
    "missing_quote_never_positive",
    "future_quote_never_positive",
    "beta_perm",
    "beta_mono",
    "consecutiveRepetition_iff",
    "isNoOperation_iff",
    "isConstantOutput_iff",
    "isPurePrint_iff",
    "isIdle_iff",
    "noProgress_iff",
    "beta_term_le",
    "failed_lt_solved",
    "penalised_le",
    "penalty_never_raises",
    "out_of_band",
    "stepTenths_bounds",
    "claim_iff",
    "holds_eq",
}

_THEOREM = re.compile(r"^(?:private )?theorem (\S+)", re.MULTILINE)


def test_modules_come_after_their_imports() -> None:
    order = modules(EVERYTHING)
    for position, module in enumerate(order):
        for imported in re.findall(r"^import (\S+)$", source_of(module), re.MULTILINE):
            assert order.index(imported) < position
    assert not re.search(r"^import ", preamble(EVERYTHING), re.MULTILINE)


def test_definitions_stand_apart_from_proofs() -> None:
    for module in modules(*CHECKERS):
        assert not _THEOREM.search(source_of(module)), module
    assert set(modules(CERTIFICATES)) < set(modules(*CHECKERS))


def test_nothing_is_assumed() -> None:
    code = re.sub(r"/-.*?-/|--[^\n]*", "", preamble(EVERYTHING), flags=re.DOTALL)
    assert not re.search(r"\b(sorry|admit|axiom|constant|opaque|unsafe|native_decide|implemented_by|extern)\b", code)


WITHOUT_PACKING = (
    (
        "LeanReward.Proofs.Coverage",
        "LeanReward.Proofs.Information",
        "LeanReward.Proofs.Segmentation",
        "LeanReward.Proofs.VariableChain",
    ),
    ("LeanReward.Proofs.PackedRewards",),
)
"""All modules with theorems but those that the last one, `holds_eq`, is made of; an engine reports 100 at a time."""


def test_the_promised_theorems_are_there() -> None:
    names = _THEOREM.findall(preamble(EVERYTHING))
    assert len(names) == len(set(names)) >= 150
    assert set(names) >= PROMISED


@pytest.mark.lean
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("roots", WITHOUT_PACKING)
async def test_every_theorem_is_proved_from_the_three_axioms(lean: EmbeddedEngine, roots: tuple[str, ...]) -> None:
    code = preamble(*roots)
    answer = await lean.check(CheckTask(code=code, timeout_s=600, messages=True))
    assert answer.status is CheckStatus.DONE, answer.detail
    assert [message for message in answer.messages if message.severity is not Severity.INFO] == []
    assert not answer.has_placeholder
    # Lean adds theorems of its own, such as the fields of a proposition that is a structure.
    missing = [
        name
        for name in _THEOREM.findall(code)
        if not any(f".{fact.name}".endswith(f".{name}") for fact in answer.theorems)
    ]
    assert missing == []
    for fact in answer.theorems:
        assert fact.kind == "theorem"
        assert_sound(fact)


@pytest.mark.lean
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_a_packed_claim_holds_exactly_when_its_claim_does(lean: EmbeddedEngine) -> None:
    task = CheckTask(
        code=preamble("LeanReward.Proofs.Packed"),
        header=preamble("LeanReward.Reading"),
        statement="theorem LeanReward.Packed.holds_eq (p : LeanReward.Packed) : p.holds = p.claim.holds",
        timeout_s=600,
        messages=True,
    )
    answer = await lean.check(task)
    assert answer.status is CheckStatus.DONE, answer.detail
    assert [message for message in answer.messages if message.severity is not Severity.INFO] == []
    assert answer.target is not None
    assert answer.target.statement_match, answer
    assert_sound(answer.target)


def assert_sound(fact: TargetFacts) -> None:
    assert fact.kernel_accepts, (fact.name, fact.kernel_detail)
    assert fact.axioms.foreign == (), fact.name
    assert set(fact.axioms.core) <= {"propext", "Classical.choice", "Quot.sound"}


# The workflow of the format's description: find a site, then edit it.
TINY = """
namespace LeanReward
def site : Fact := ⟨0, .atom (.builtin .nonEmptyString)⟩
def renamed : Predicate := .atom (.judged 7)
def tiny : Workflow := {
  nodes := [
    { id := 0, post := [site], writes := [0], contextInfo := [5] },
    { id := 1, pre := [⟨0, .atom (.builtin .nameExists)⟩], infoRequires := [5], post := [⟨1, renamed⟩],
      contributes := [3] }]
  edges := [.seq 0 1], entry := 0, exits := [1], registry := [⟨.judged 7, []⟩]
  goals := [⟨3, 1, renamed, [.pathCoverage]⟩] }
def branched (post : List Fact) : Workflow := { tiny with
  nodes := tiny.nodes ++ [{ id := 2, writes := [0], post := post }]
  edges := [.branch 0 1 2, .seq 2 1] }
def looping (erased : List Name) : Workflow := { tiny with
  nodes := tiny.nodes ++ [{ id := 2, writes := erased }]
  edges := [.seq 0 1, .seq 1 2, .loopBack 2 1] }
"""

CHECKS = {
    "an honest workflow passes": "tiny.chain [0, 1] = .holds [(1, [⟨1, renamed⟩, site])]",
    "it is well formed": "tiny.isWellFormed = true",
    "its information is closed": "tiny.informationClosed = true",
    "its sub-goal is covered": "tiny.coverage [0, 1] = [(3, .full)]",
    "an order against an arc is refused": "tiny.chain [1, 0] = .notOrdered",
    "an order that leaves a node out is refused": "tiny.chain [0] = .notOrdered",
    "a write on one branch kills the fact":
        "(branched []).chain [0, 2, 1] = .missing 1 ⟨0, .atom (.builtin .nameExists)⟩ []",
    "a merge keeps what both branches entail":
        "(branched [⟨0, .atom (.builtin .isInt)⟩]).chain [0, 2, 1] "
        "= .missing 1 ⟨0, .atom (.builtin .nameExists)⟩ []",
    "a merge keeps what both branches give": "(branched [site]).chain [0, 2, 1] = .holds [(1, [⟨1, renamed⟩, site])]",
    "a loop that keeps the fact passes": "(looping []).chain [0, 1, 2] = .holds [(1, [⟨1, renamed⟩, site])]",
    "a loop body that overwrites it does not":
        "(looping [0]).chain [0, 1, 2] = .missing 1 ⟨0, .atom (.builtin .nameExists)⟩ []",
    "an unregistered requirement is never full":
        "({ tiny with registry := [] } : Workflow).coverage [0, 1] = [(3, .partly)]",
    "missing information is named":
        "({ tiny with nodes := tiny.nodes.map fun n => { n with contextInfo := [] } } : Workflow).closures.map "
        "(·.missing) = [[], [5]]",
    "a way around the contributor is weak":
        "({ tiny with edges := [.seq 0 1], exits := [0, 1] } : Workflow).coverage [0, 1] = [(3, .weak)]",
}  # fmt: skip


@pytest.mark.lean
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_static_checks_of_small_workflows(lean: EmbeddedEngine) -> None:
    examples = "\n".join(f"example : {statement} := by decide +kernel" for statement in CHECKS.values())
    program = preamble(*CHECKERS) + TINY + examples
    answer = await lean.check(CheckTask(code=program, timeout_s=300, messages=True))
    assert answer.status is CheckStatus.DONE, answer.detail
    lines = program.split("\n")
    assert [(lines[m.pos.line - 1], m.data) for m in answer.messages if m.pos] == []


@pytest.mark.lean
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_the_executable_elaborates(lean: EmbeddedEngine) -> None:
    """Building and running it needs a native toolchain; the embedded Lean can only check its types."""
    source = re.sub(r"^import .*$", "", (LIBRARY / "Main.lean").read_text(encoding="utf-8"), flags=re.MULTILINE)
    program = "import Lean\n" + preamble("LeanReward.Coverage", "LeanReward.Information") + source + "\n#check main"
    answer = await lean.check(CheckTask(code=program, timeout_s=300, messages=True))
    assert answer.status is CheckStatus.DONE, answer.detail
    assert [message.data for message in answer.messages] == ["main : IO UInt32"]
