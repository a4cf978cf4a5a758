import LeanReward.Reading

/-! What the operations of a packed claim are in the words of the library. -/

namespace LeanReward.Packed

theorem choose_eq {β : Type} (condition : Bool) (yes no : β) : choose condition yes no = if condition then yes else no := by
  cases condition <;> rfl

theorem worked_eq {β : Type} (n : Nat) (use : Nat → β) : worked n use = use n := by cases n <;> rfl

theorem both_eq (a b : Bool) : both a b = (a && b) := by cases a <;> rfl

theorem either_eq (a b : Bool) : either a b = (a || b) := by cases a <;> rfl

theorem negation_eq (a : Bool) : negation a = !a := by cases a <;> rfl

theorem all_eq {α : Type} (rule : α → Bool) (xs : List α) : all rule xs = xs.all rule := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    show both (rule x) (all rule xs) = _
    rw [ih, both_eq, List.all_cons]

theorem any_eq {α : Type} (rule : α → Bool) (xs : List α) : any rule xs = xs.any rule := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    show either (rule x) (any rule xs) = _
    rw [ih, either_eq, List.any_cons]

theorem isZero_eq (n : Nat) : isZero n = decide (n = 0) := by
  cases n <;> rfl

theorem beq_eq (a b : Nat) : Nat.beq a b = decide (a = b) := by rw [Bool.eq_iff_iff]; simp

theorem hasBit_eq (n position : Nat) : hasBit n position = n.testBit position := by
  rw [Nat.testBit_eq_decide_div_mod_eq, ← Nat.shiftRight_eq_div_pow]
  exact beq_eq ..

theorem place_iff (a b : Nat) : Nat.beq a b = (Nat.beq (nodeOf a) (nodeOf b) && Nat.beq (visitOf a) (visitOf b)) := by
  have node (n : Nat) : nodeOf n = n % 4294967296 := rfl
  have visit (n : Nat) : visitOf n = n / 4294967296 := Nat.shiftRight_eq_div_pow n 32
  rw [Bool.eq_iff_iff]
  simp only [Bool.and_eq_true, Nat.beq_eq, node, visit]
  omega

end LeanReward.Packed
