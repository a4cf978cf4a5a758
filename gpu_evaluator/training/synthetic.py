"""Small programs over core Lean, right and wrong, from which the demonstration model is made.

Every statement is combined with proofs that other statements need, so that Lean has to tell which of them hold.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

_STATEMENTS = (
    "(a b : Nat) : a + b = b + a",
    "(a b c : Nat) : a + b + c = a + (b + c)",
    "(a b : Nat) : a * b = b * a",
    "(a b c : Nat) : a * (b + c) = a * b + a * c",
    "(a : Nat) : a + 0 = a",
    "(a : Nat) : 0 + a = a",
    "(a : Nat) : a * {n} = a * {n} + 0",
    "(a b : Nat) (h : a ≤ b) : a ≤ b + {n}",
    "(a b : Nat) (h : a < b) : a + 1 ≤ b",
    "(a b c : Nat) (h : a ≤ b) (k : b ≤ c) : a ≤ c",
    "(a b : Nat) (h : a = b) : b = a",
    "(a b c : Nat) (h : a = b) (k : b = c) : a = c",
    "(a : Nat) (h : 0 < a) : a ≠ 0",
    "(a b : Nat) : a - b ≤ a",
    "(a b : Nat) : max a b = max b a",
    "(x y : Int) : x + y = y + x",
    "(x y : Int) : x * y = y * x",
    "(x : Int) : x - x = 0",
    "(x y : Int) (h : x < y) : ¬ y ≤ x",
    "(x y : Int) (h : {n} * x = {n} * y + {m}) : x = y",
    "(p q : Prop) (hp : p) (hq : q) : p ∧ q",
    "(p q : Prop) (h : p ∧ q) : q ∧ p",
    "(p q : Prop) (hp : p) : p ∨ q",
    "(p q : Prop) (h : p ∨ q) : q ∨ p",
    "(p q : Prop) (h : p → q) (hp : p) : q",
    "(p q r : Prop) (h : p → q) (k : q → r) : p → r",
    "(p : Prop) (h : ¬ ¬ p) : p",
    "(p : Prop) (hp : p) : ¬ ¬ p",
    "(a b : Bool) : (a && b) = (b && a)",
    "(a b : Bool) : (a || b) = (b || a)",
    "(a : Bool) : (!(!a)) = a",
    "(l : List Nat) : l ++ [] = l",
    "(l k : List Nat) : (l ++ k).length = l.length + k.length",
    "(l : List Nat) : l.reverse.reverse = l",
    "(l : List Nat) : (l.map id) = l",
    ": {n} + {m} = {s}",
    ": {n} * {m} = {t}",
    ": {n} < {s}",
    ": {s} ≤ {n}",
    ": ∃ x : Nat, x + {n} = {s}",
    ": ∃ x : Nat, x * {n} = {t}",
    ": ∀ x : Fin 3, x.val < {n}",
    "(a b : Nat) (h : a + {n} = b + {n}) : a = b",
    "(a b : Nat) (h : a * {n} < b * {n}) : a < b",
    "(f : Nat → Nat) (h : ∀ x, f x = x) : f {n} = {n}",
    "(α : Type) (x y : α) (h : x = y) : y = x",
    "(a b c d : Nat) (h : a = b) (k : c = d) : a + c = b + d",
    "(a b : Nat) (h : a ∣ b) : a ∣ b * {n}",
    "(a b : Nat) : (a + b) * (a + b) = a * a + 2 * (a * b) + b * b",
    "(a : Nat) (h : a % 2 = 1) : a ≠ {n} * 2",
)
_GENERAL = ("omega", "omega", "omega", "simp_all", "simp_all", "simp_all", "simp", "rfl", "decide", "assumption")
_PARTICULAR = (
    "exact h",
    "exact h.symm",
    "exact Nat.add_comm a b",
    "exact Nat.mul_comm a b",
    "exact Int.add_comm x y",
    "exact h k",
    "exact h hp",
    "exact ⟨hp, hq⟩",
    "exact ⟨h.2, h.1⟩",
    "exact Or.inl hp",
    "exact h.elim Or.inr Or.inl",
    "exact Nat.le_trans h k",
    "exact h.trans k",
    "exact fun hn => hn hp",
    "exact Classical.byContradiction h",
    "exact ⟨{m}, rfl⟩",
    "exact ⟨{m}, by omega⟩",
    "intro hp\n  exact k (h hp)",
    "intro x\n  omega",
    "cases a <;> cases b <;> rfl",
    "cases a <;> rfl",
    "rw [Nat.add_comm]",
    "rw [Nat.mul_comm]",
    "rw [h]",
    "rw [h, k]",
    "subst h\n  rfl",
    "subst h\n  subst k\n  rfl",
    "constructor\n  · assumption\n  · assumption",
    "left\n  exact hp",
    "cases h with\n  | inl hp => exact Or.inr hp\n  | inr hq => exact Or.inl hq",
    "induction a with\n  | zero => simp\n  | succ n ih => omega",
    "induction l with\n  | nil => rfl\n  | cons x xs ih => simp [ih]",
    "have e : a = a := rfl\n  omega",
    "have e := Nat.add_comm a b\n  omega",
    "have e := Nat.mul_comm a b\n  simp [e]",
    "exact Nat.mul_add a b c",
    "exact Nat.lt_of_mul_lt_mul_right h",
    "exact Dvd.dvd.mul_right h {n}",
    "exact Nat.dvd_trans h (Nat.dvd_mul_right b {n})",
    "simp [Nat.mul_add, Nat.add_mul, Nat.mul_comm]\n  omega",
    "intro e\n  omega",
    "simp [h]",
    "exact h {n}",
    "exact List.reverse_reverse l",
    "exact List.length_append",
    "linarith",
    "norm_num",
    "ring",
    "exact foo",
    "omega\n  simp",
    "simp at h\n  exact h",
    "apply Nat.le_of_lt\n  exact h",
    "by_cases e : a = b\n  · simp [e]\n  · omega",
)


_VARIABLE = re.compile(r"\b[abcdhklpqrxyf]\b|\bh[pq]\b")
_SHARE_GENERAL, _SHARE_OUT_OF_PLACE, _SHARE_TWO, _SHARE_INLINE = 0.65, 0.03, 0.06, 0.3


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program, the statement it must prove, and the problem that it belongs to."""

    id: str
    group: str
    statement: str
    code: str


def attempts(count: int, seed: int = 42) -> Iterator[Attempt]:
    """Yield different programs, each a statement with numbers filled in and a proof of one or two steps."""
    draw = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < count:
        number = draw.randrange(len(_STATEMENTS))
        n, m = draw.randint(2, 12), draw.randint(1, 12)
        numbers = {"n": n, "m": m, "s": n + m, "t": n * m + (draw.random() < 0.2)}
        statement = f"theorem t {_STATEMENTS[number]}".format(**numbers)
        steps = _step(draw, statement).format(**numbers)
        if draw.random() < _SHARE_TWO:
            steps = f"{_step(draw, statement).format(**numbers)}\n  {steps}"
        inline = "\n" not in steps and draw.random() < _SHARE_INLINE
        code = f"{statement} := by {steps}\n" if inline else f"{statement} := by\n  {steps}\n"
        if code not in seen:
            seen.add(code)
            yield Attempt(f"s{len(seen)}", f"s{number}-{n}-{m}", statement, code)


def _step(draw: random.Random, statement: str) -> str:
    """A tactic that is tried everywhere, or one whose variables the statement has, or now and then any."""
    if draw.random() < _SHARE_GENERAL:
        return draw.choice(_GENERAL)
    while True:
        tactic = draw.choice(_PARTICULAR)
        known = set(_VARIABLE.findall(statement)) | {"e", "x"}
        if set(_VARIABLE.findall(tactic)) <= known or draw.random() < _SHARE_OUT_OF_PLACE:
            return tactic


def main() -> None:
    """Print attempts as JSON lines for `lean-reward label`: `python -m gpu_evaluator.training.synthetic COUNT`."""
    for attempt in attempts(int(sys.argv[1])):
        print(json.dumps(asdict(attempt), ensure_ascii=False))


if __name__ == "__main__":
    main()
