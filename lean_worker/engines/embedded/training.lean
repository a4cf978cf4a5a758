-- Programs whose checks show V8 which parts of Lean run often (machine_code.py). Each begins with a line of dashes and
-- the statement that it is checked against, if any; nobody looks at what comes out, so wrong ones are as good as right ones.
---- theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k
theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k := by omega
---- theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k
theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k := by
  rw [Nat.add_comm]
  exact h
---- theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k
theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k := by
  rw [Nat.mul_comm]
---- theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k
theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k := by
  induction n with
  | zero => simp at h; exact h
  | succ n ih => omega
---- theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k
theorem swapped (m n k : Nat) (h : m + n = k) : m + n = k := h
---- theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k
theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k := by
  have step : n + m = m + n := by simp [Nat.add_comm]
  calc n + m = m + n := step
    _ = k := h
---- theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k
theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k := by
  exact Nat.add_komm h ▸ rfl
---- theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k
theorem swapped (m n k : Nat) (h : m + n = k) : n + m = k := by
  cases n with
  | zero => simpa using h
  | succ n =>
    subst h
    grind
---- theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r
theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r := by
  intro ⟨hq, hr⟩
  apply hr
  apply hq
  exact hp
---- theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r
theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r := fun h => h.2 (h.1 hp)
---- theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r
theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r := by
  rintro ⟨hq, hr⟩
  simp_all
---- theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r
theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r := by
  intro h
  exact h.1 hp
---- theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r
theorem logic (p q r : Prop) (hp : p) : (p → q) ∧ (q → r) → r := by
  intro h
  obtain ⟨hq, hr⟩ := h
  exact hr (hq hp
---- theorem either (p q : Prop) : p ∨ q ↔ q ∨ p
theorem either (p q : Prop) : p ∨ q ↔ q ∨ p := by
  constructor
  · intro h
    cases h with
    | inl hp => exact Or.inr hp
    | inr hq => exact Or.inl hq
  · rintro (hq | hp)
    · right; assumption
    · left; assumption
---- theorem either (p q : Prop) : p ∨ q ↔ q ∨ p
theorem either (p q : Prop) : p ∨ q ↔ q ∨ p := Or.comm
---- theorem either (p q : Prop) : p ∨ q ↔ q ∨ p
theorem either (p q : Prop) : p ∨ q ↔ q ∨ p := by
  refine ⟨fun h => ?_, fun h => ?_⟩ <;> first | exact h.symm | contradiction
---- theorem either (p q : Prop) : p ∨ q ↔ q ∨ p
theorem either (p q : Prop) : p ∨ q ↔ q ∨ p := by
  by_cases h : p <;> by_cases g : q <;> simp [h, g]
---- theorem either (p q : Prop) : p ∨ q ↔ q ∨ p
theorem either (p q : Prop) : p ∨ q ↔ q ∨ p := by
  tauto
---- theorem joined (xs ys : List Nat) : (xs ++ ys).length = ys.length + xs.length
theorem joined (xs ys : List Nat) : (xs ++ ys).length = ys.length + xs.length := by
  rw [List.length_append, Nat.add_comm]
---- theorem joined (xs ys : List Nat) : (xs ++ ys).length = ys.length + xs.length
theorem joined (xs ys : List Nat) : (xs ++ ys).length = ys.length + xs.length := by
  induction xs with
  | nil => simp
  | cons x xs ih => simp only [List.cons_append, List.length_cons, ih]; omega
---- theorem joined (xs ys : List Nat) : (xs ++ ys).length = ys.length + xs.length
theorem joined (xs ys : List Nat) : (xs ++ ys).length = ys.length + xs.length := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [ih]
---- theorem mapped (xs : List Nat) (h : xs ≠ []) : ∃ y, y ∈ xs.map (· + 1)
theorem mapped (xs : List Nat) (h : xs ≠ []) : ∃ y, y ∈ xs.map (· + 1) := by
  match xs, h with
  | x :: _, _ => exact ⟨x + 1, by simp⟩
---- theorem mapped (xs : List Nat) (h : xs ≠ []) : ∃ y, y ∈ xs.map (· + 1)
theorem mapped (xs : List Nat) (h : xs ≠ []) : ∃ y, y ∈ xs.map (· + 1) := by
  cases xs with
  | nil => exact absurd rfl h
  | cons x xs => exists x + 1; simp
----
def twice : Nat → Nat
  | 0 => 0
  | n + 1 => twice n + 2
theorem doubled (n : Nat) : twice n = 2 * n := by
  induction n with
  | zero => rfl
  | succ n ih => simp [twice, ih]; omega
---- theorem doubled (n : Nat) : n + n = 2 * n
@[simp] def twice (n : Nat) : Nat := n + n
theorem helper (n : Nat) : twice n = 2 * n := by unfold twice; omega
theorem doubled (n : Nat) : n + n = 2 * n := helper n
----
def half (n : Nat) : Nat := if n < 2 then 0 else half (n - 2) + 1
termination_by n
decreasing_by omega
theorem halved (n : Nat) : half n ≤ n := by
  fun_induction half n <;> omega
----
inductive Tree where
  | leaf
  | node (left : Tree) (value : Nat) (right : Tree)
deriving Repr, DecidableEq
def Tree.mirror : Tree → Tree
  | .leaf => .leaf
  | .node l v r => .node r.mirror v l.mirror
theorem mirrored (t : Tree) : t.mirror.mirror = t := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [Tree.mirror, hl, hr]
----
structure Point where
  x : Int
  y : Int
namespace Point
instance : Add Point := ⟨fun a b => ⟨a.x + b.x, a.y + b.y⟩⟩
end Point
theorem pointwise (a b : Point) (h : a.x = b.x) (g : a.y = b.y) : a = b := by
  cases a; cases b; simp_all
---- theorem grouped (a b c : Nat) : a * (b + c) = c * a + b * a
theorem grouped (a b c : Nat) : a * (b + c) = c * a + b * a := by
  rw [Nat.mul_add, Nat.mul_comm a b, Nat.mul_comm a c, Nat.add_comm]
---- theorem grouped (a b c : Nat) : a * (b + c) = c * a + b * a
theorem grouped (a b c : Nat) : a * (b + c) = c * a + b * a := by
  conv => lhs; rw [Nat.mul_comm]
  simp [Nat.add_mul]
  ac_rfl
---- theorem grouped (a b c : Nat) : a * (b + c) = c * a + b * a
theorem grouped (a b c : Nat) : a * (b + c) = c * a + b * a := by
  ring
---- theorem bounded (x : Fin 30) : x.val * x.val < 1000
theorem bounded (x : Fin 30) : x.val * x.val < 1000 := by
  revert x; decide
---- theorem bounded (x : Fin 30) : x.val * x.val < 1000
theorem bounded (x : Fin 30) : x.val * x.val < 1000 := by
  have h := x.isLt
  exact Nat.lt_of_le_of_lt (Nat.mul_le_mul (Nat.le_of_lt h) (Nat.le_of_lt h)) (by decide)
---- theorem computed : (List.range 40).foldl (· + ·) 0 = 780
theorem computed : (List.range 40).foldl (· + ·) 0 = 780 := by decide
---- theorem computed : (List.range 40).foldl (· + ·) 0 = 780
theorem computed : (List.range 40).foldl (· + ·) 0 = 780 := rfl
---- theorem computed : 12 * 12 = 144
theorem computed : 12 * 12 = 144 := by native_decide
---- theorem ordered (a b c : Int) (h : a < b) (g : b ≤ c) : a < c + 1
theorem ordered (a b c : Int) (h : a < b) (g : b ≤ c) : a < c + 1 := by omega
---- theorem ordered (a b c : Int) (h : a < b) (g : b ≤ c) : a < c + 1
theorem ordered (a b c : Int) (h : a < b) (g : b ≤ c) : a < c + 1 := by
  have k : a < c := Int.lt_of_lt_of_le h g
  exact Int.lt_add_one_of_le (Int.le_of_lt k)
---- theorem ordered (a b c : Int) (h : a < b) (g : b ≤ c) : a < c + 1
theorem ordered (a b c : Int) (h : a < b) (g : b ≤ c) : a < c + 1 := by
  linarith
---- theorem ordered (a b c : Int) (h : a < b) (g : b ≤ c) : a < c + 1
theorem ordered (a b c : Int) (h : a < b) (g : b ≤ c) : a < c + 1 := by
  have k : a < c := by
    nlinarith [h, g]
  simp at k
  nofun
---- theorem split_if (n : Nat) : (if n % 2 = 0 then n else n + 1) ≥ n
theorem split_if (n : Nat) : (if n % 2 = 0 then n else n + 1) ≥ n := by
  split
  · exact Nat.le_refl n
  · exact Nat.le_succ n
---- theorem split_if (n : Nat) : (if n % 2 = 0 then n else n + 1) ≥ n
theorem split_if (n : Nat) : (if n % 2 = 0 then n else n + 1) ≥ n := by
  rcases Nat.mod_two_eq_zero_or_one n with h | h
  all_goals simp [h]
---- theorem extensional (f g : Nat → Nat) (h : ∀ n, f n = g n) : f = g
theorem extensional (f g : Nat → Nat) (h : ∀ n, f n = g n) : f = g := by
  funext n
  specialize h n
  exact h
---- theorem extensional (f g : Nat → Nat) (h : ∀ n, f n = g n) : f = g
theorem extensional (f g : Nat → Nat) (h : ∀ n, f n = g n) : f = g := by
  ext n
  have g := h n
  generalize f n = y at g
  subst g
  rfl
---- theorem chosen (p : Nat → Prop) (h : ∃ n, p n ∧ n > 3) : ∃ n, p n
theorem chosen (p : Nat → Prop) (h : ∃ n, p n ∧ n > 3) : ∃ n, p n := by
  obtain ⟨n, hn, _⟩ := h
  exact ⟨n, hn⟩
---- theorem chosen (p : Nat → Prop) (h : ∃ n, p n ∧ n > 3) : ∃ n, p n
theorem chosen (p : Nat → Prop) (h : ∃ n, p n ∧ n > 3) : ∃ n, p n := by
  have ⟨n, hn⟩ := h
  use n
---- theorem chosen (p : Nat → Prop) (h : ∃ n, p n ∧ n > 3) : ∃ n, p n
theorem chosen (p : Nat → Prop) (h : ∃ n, p n ∧ n > 3) : ∃ n, p n := by
  sorry
---- theorem excluded (p : Prop) (h : ¬¬p) : p
theorem excluded (p : Prop) (h : ¬¬p) : p := by
  apply Classical.byContradiction
  intro hn
  exact h hn
---- theorem excluded (p : Prop) (h : ¬¬p) : p
open Classical in
theorem excluded (p : Prop) (h : ¬¬p) : p := by
  by_cases k : p
  · assumption
  · exfalso; exact h k
----
infixl:65 " ⊕⊕ " => fun (a b : Nat) => a + b
macro "done_by_simp" : tactic => `(tactic| simp)
theorem written (n : Nat) : n + 0 = n := by done_by_simp
----
class Monoidish (α : Type u) where
  mul : α → α → α
  one : α
  one_mul : ∀ a, mul one a = a
variable {α : Type u} [Monoidish α]
theorem classed (a : α) : Monoidish.mul Monoidish.one a = a := Monoidish.one_mul a
---- theorem unequal (a b : Nat) (h : a.succ = b.succ) : a = b
theorem unequal (a b : Nat) (h : a.succ = b.succ) : a = b := by
  injection h
---- theorem unequal (a b : Nat) (h : a.succ = b.succ) : a = b
theorem unequal (a b : Nat) (h : a.succ = b.succ) : a = b := by
  intro x
  apply Nat.succ.inj at h
  show a = b from h
