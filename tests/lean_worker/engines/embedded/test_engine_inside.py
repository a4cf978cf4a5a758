"""What no candidate can show from outside: memory is pristine, and the kernel refuses forged declarations."""

from __future__ import annotations

import json
import subprocess
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pytest

from lean_worker.engines.embedded.identity import HOST
from lean_worker.engines.embedded.layout import Installation, node_executable
from lean_worker.engines.embedded.snapshots import ensure_snapshot

ROOT = Path(__file__).parents[4]

pytestmark = [pytest.mark.lean, pytest.mark.slow]


#: Each of these makes Lean run code that the candidate wrote.
OWN_CODE = {
    "evaluated": "def f (n : Nat) := n + 1\n#eval f 3",
    "evaluated with the library interpreted": "set_option interpreter.prefer_native false\n#eval Nat.succ 3",
    "macro": 'macro "answer" : term => `(42)\nexample : answer = 42 := rfl',
    "notation": 'notation "answer" => 42',
    "infix": 'infixl:65 " +++ " => Nat.add\nexample : 1 +++ 1 = 2 := rfl',
    "tactic": 'macro "easy" : tactic => `(tactic| rfl)\ntheorem t : 1 = 1 := by easy',
    "syntax": 'syntax "answer" : term',
    "native decision": "theorem t : 10 < 20 := by native_decide",
    "reduced by the compiler": "def f := true\ntheorem t : f = true := Lean.ofReduceBool f true rfl",
    "configuration": "def c : Bool := true\ntheorem t : 1 + 1 = 2 := by simp (config := { decide := c })",
    "under a library's name": "def Lean.Meta.whnfAux (n : Nat) := n\n#eval Lean.Meta.whnfAux 3",
    "implemented elsewhere": "def g (n : Nat) := n\n@[implemented_by g] def f (n : Nat) := n + 1\n#eval f 3",
    "external": '@[extern "lean_nat_add"] opaque f (a b : Nat) : Nat\n#eval f 1 2',
    "guard": "#guard 1 + 1 == 2",
}


def demonstration() -> dict[str, str]:
    """The first two programs of each of its groups that `Init` is enough for."""
    rows = [json.loads(line) for line in (ROOT / "examples" / "proofs.jsonl").read_text("utf-8").splitlines()]
    fit = [row for row in rows if "import" not in row["code"] and not row["group"].startswith("slow")]
    groups = groupby(fit, key=lambda row: row["group"])
    return {row["id"]: row["code"] for _, group in groups for row in islice(group, 2)}


PROGRAMS = {**OWN_CODE, **demonstration()}


@pytest.fixture(scope="module")
def report(installation: Installation) -> dict[str, Any]:
    import asyncio

    snapshot = asyncio.run(ensure_snapshot(installation, ("Init",)))
    options = {
        "host": HOST,
        "js": installation.js,
        "wasm": installation.wasm,
        "snapshot": snapshot,
        "programs": list(PROGRAMS.values()),
    }
    command = [node_executable(), Path(__file__).with_name("inside.js"), json.dumps(options, default=str)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_every_word_of_memory_is_pristine_after_a_check(report: dict[str, Any]) -> None:
    assert report["afterCheck"] == [0, 0, 0]
    assert report["afterReset"] == 0


def test_the_comparison_sees_what_a_candidate_writes(report: dict[str, Any]) -> None:
    assert min(report["afterRun"]) > 1000


@pytest.mark.parametrize(
    ("forgery", "answer"),
    [
        ("honest", "accepted"),
        ("wrongProof", "(kernel) declaration type mismatch: t"),
        ("notAProposition", "(kernel) theorem type is not a proposition: t"),
        ("byItself", "t depends on itself"),
        ("unknown", "unknown constant nowhere"),
        ("unsafe", "f is unsafe"),
        ("wrongDefinition", "(kernel) declaration type mismatch: f"),
        ("orphanRecursor", "r belongs to no inductive type"),
    ],
)
def test_the_kernel_decides_about_forged_declarations(report: dict[str, Any], forgery: str, answer: str) -> None:
    assert report["forged"][forgery] == answer


def test_a_loose_variable_is_refused(report: dict[str, Any]) -> None:
    assert report["forged"]["looseVariable"] != "accepted"


@pytest.fixture(scope="module")
def seen(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return dict(zip(PROGRAMS, report["programs"], strict=True))


@pytest.mark.parametrize("name", OWN_CODE)
def test_all_memory_is_put_back_after_own_code(seen: dict[str, dict[str, Any]], name: str) -> None:
    assert seen[name]["putBack"]
    assert seen[name]["left"] == 0


def test_compiled_lean_alone_never_writes_to_the_library_which_is_not_looked_at(
    seen: dict[str, dict[str, Any]],
) -> None:
    alone = [name for name in demonstration() if seen[name]["asked"] == 0]
    assert len(alone) > 0.8 * len(demonstration())
    assert {name for name in alone if not seen[name]["libraryIsWhole"] or seen[name]["left"]} == set()
    assert {name for name in alone if seen[name]["putBack"]} == set()
