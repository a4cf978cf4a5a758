"""Python's static verdicts on random contracts are those of the Lean library."""

from __future__ import annotations

import random

import pytest

from lean_worker.engines.embedded.engine import EmbeddedEngine
from services.contracts.lean import CheckStatus, CheckTask, Severity
from services.contracts.workflows import ChainVerdict, Cover, Predicate, VariablePredicate, Workflow
from services.process.certificates.sources import CHECKERS, preamble
from services.process.workflow.graph import arcs_of, topological
from services.process.workflow.predicates import needle, operands
from services.process.workflow.verdicts import static_verdicts
from tests.services.process.contracts import random_contract

NAMES = {name: number for number, name in enumerate(["x", "y", "i", "j", "p", "q", "g0", "g1"])}
CHAIN = {ChainVerdict.HOLDS: 0, ChainVerdict.MISSING: 1, ChainVerdict.NOT_ORDERED: 2}
COVER = {Cover.FULL: 0, Cover.PARTIAL: 1, Cover.WEAK: 2, Cover.UNCOVERED: 3}
CODES = """
def chainCode : ChainVerdict → Nat × Nat
  | .holds _ => (0, 0)
  | .missing node _ _ => (1, node)
  | .notOrdered => (2, 0)
def coverCode : Cover → Nat
  | .full => 0
  | .partly => 1
  | .weak => 2
  | .uncovered => 3
def answers (w : Workflow) (order : List NodeId) : (Nat × Nat) × List (List Nat) × List Nat :=
  (chainCode (w.chain order), w.closures.map (·.missing), (w.coverage order).map fun row => coverCode row.2)
"""


def several(values: object) -> str:
    return "[" + ", ".join(map(str, values)) + "]"  # type: ignore[call-overload]


def names(values: object) -> str:
    return several(NAMES[value] for value in values)  # type: ignore[attr-defined]


def predicate(value: Predicate) -> str:
    parts = operands(value)
    if parts:
        both = "both" if value.kind == "and" else "either"
        return f"(.{both} {predicate(parts[0])} {predicate(parts[1])})"
    if value.kind == "custom":
        return f"(.atom (.judged {NAMES[value.custom_name or '']}))"
    points = f" {several(map(ord, needle(value) or ''))}" if value.kind == "containsSubstring" else ""
    return f"(.atom (.builtin (.{value.kind}{points})))"


def facts(values: tuple[VariablePredicate, ...]) -> str:
    return several(f"⟨{NAMES[value.var_name]}, {predicate(value.predicate)}⟩" for value in values)


def term(w: Workflow) -> str:
    nodes = [
        f"{{ id := {n.id}, reads := {names(n.reads)}, writes := {names(n.writes)}, pre := {facts(n.precond_extra)}, "
        f"post := {facts(n.postcond_extra)}, infoRequires := {names(n.info_requires)}, variableInfo := "
        f"{several(f'({NAMES[v]}, {NAMES[a]})' for v, atoms in n.produces_variable_info.items() for a in atoms)}, "
        f"contextInfo := {names(n.produces_context_info)}, "
        f"contributes := {names(s.sub_goal_name for s in n.sub_goal_contributions)}, "
        f"verifies := {names(s.sub_goal_name for s in n.sub_goal_verifications)} }}"
        for n in w.nodes
    ]
    kinds = {"seq": "seq", "branch": "branch", "loop": "loop", "loop_back": "loopBack"}
    edges = [
        f".{kinds[e.edge_type]} {' '.join(str(value) for name, value in e if name != 'edge_type')}" for e in w.edges
    ]
    goals = w.goal_spec.sub_goals if w.goal_spec else ()
    wanted = [
        f"⟨{NAMES[g.name]}, {NAMES[g.variable_name]}, {predicate(g.required_predicate)}, "
        f"{several('.' + p.kind for p in g.required_graph_predicates)}⟩"
        for g in goals
    ]
    registry = several(f"⟨.judged {NAMES[name]}, []⟩" for name in "pq")
    return (
        f"{{ nodes := {several(nodes)}, edges := {several(edges)}, entry := {w.entry}, exits := {several(w.exits)}, "
        f"given := {facts(w.param_postcond)}, goals := {several(wanted)}, registry := {registry} }}"
    )


def answers(w: Workflow) -> str:
    verdicts = static_verdicts(w)
    missing = verdicts.variable_chain.missing
    by_node = {row.node: row.missing for row in verdicts.information}
    chain = f"({CHAIN[verdicts.variable_chain.verdict]}, {missing.node if missing else 0})"
    information = several(names(by_node.get(node.id, ())) for node in w.nodes)
    return f"({chain}, {information}, {several(COVER[row.cover] for row in verdicts.coverage)})"


@pytest.mark.lean
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("seed", [1, 2])
async def test_python_and_lean_agree_on_random_contracts(lean: EmbeddedEngine, seed: int) -> None:
    rng = random.Random(seed)
    lines = []
    for index in range(60):
        w = random_contract(rng)
        order = topological([node.id for node in w.nodes], arcs_of(w)[0]) or []
        lines.append(f"theorem t{index} : answers {term(w)} {several(order)} = {answers(w)} := by decide +kernel")
    code = f"{preamble(*CHECKERS)}\nnamespace LeanReward\n{CODES}\n" + "\n".join(lines) + "\nend LeanReward\n"
    answer = await lean.check(CheckTask(code=code, timeout_s=300, heartbeats=20_000_000, messages=True))
    assert answer.status is CheckStatus.DONE, answer.detail
    texts = code.split("\n")
    errors = [
        (m.data[:500], texts[m.pos.line - 1][:1500]) for m in answer.messages if m.severity is Severity.ERROR and m.pos
    ]
    assert not errors, (len(errors), errors[0])
