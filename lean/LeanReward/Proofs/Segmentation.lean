import LeanReward.Segmentation
import LeanReward.Proofs.Graph

/-! The segmentation checker holds iff the segmentation is legal, and a legal segmentation follows a walk of the graph. -/

namespace LeanReward

/-- One legal turn. -/
inductive Turn (w : Transitions) : Cursor → Row → Cursor → Prop
  | stay (cursor : Cursor) : Turn w cursor ⟨.stay, cursor.node, cursor.visit⟩ cursor
  | advance (cursor : Cursor) (node : NodeId) : (cursor.node, node) ∈ w.forward →
      Turn w cursor ⟨.advance, node, visits cursor.entered node⟩
        ⟨node, visits cursor.entered node, node :: cursor.entered⟩
  | loopBack (cursor : Cursor) (node : NodeId) : (cursor.node, node) ∈ w.back →
      Turn w cursor ⟨.loopBack, node, visits cursor.entered node⟩
        ⟨node, visits cursor.entered node, node :: cursor.entered⟩

inductive Turns (w : Transitions) : Cursor → List Row → Cursor → Prop
  | done (cursor : Cursor) : Turns w cursor [] cursor
  | turn {first next last : Cursor} {row : Row} {rest : List Row} : Turn w first row next → Turns w next rest last →
      Turns w first (row :: rest) last

theorem hasArc_iff (source target : NodeId) (arcs : List (NodeId × NodeId)) :
    hasArc source target arcs = true ↔ (source, target) ∈ arcs := by
  induction arcs with
  | nil => simp [hasArc]
  | cons arc rest ih =>
    simp only [hasArc, Bool.or_eq_true, Bool.and_eq_true, Nat.beq_eq, ih, List.mem_cons]
    refine or_congr_left ⟨fun ⟨first, second⟩ => ?_, fun same => ?_⟩
    · rw [← first, ← second]
    · rw [← same]; exact ⟨rfl, rfl⟩

theorem enter_iff (cursor next : Cursor) (arcs : List (NodeId × NodeId)) (row : Row) :
    cursor.enter arcs row = some next ↔
      (cursor.node, row.node) ∈ arcs ∧ row.visit = visits cursor.entered row.node ∧
        next = ⟨row.node, row.visit, row.node :: cursor.entered⟩ := by
  unfold Cursor.enter
  cases h : hasArc cursor.node row.node arcs && Nat.beq row.visit (visits cursor.entered row.node) with
  | true =>
    simp only [Bool.and_eq_true, hasArc_iff, Nat.beq_eq] at h
    simp only [cond_true, Option.some.injEq]
    exact ⟨fun same => ⟨h.1, h.2, same.symm⟩, fun all => all.2.2.symm⟩
  | false =>
    have no : ¬(hasArc cursor.node row.node arcs && Nat.beq row.visit (visits cursor.entered row.node)) = true := by
      simp [h]
    simp only [Bool.and_eq_true, hasArc_iff, Nat.beq_eq] at no
    simp only [cond_false, reduceCtorEq, false_iff]
    exact fun all => no ⟨all.1, all.2.1⟩

theorem turn_iff (w : Transitions) (cursor next : Cursor) (row : Row) :
    w.turn cursor row = some next ↔ Turn w cursor row next := by
  constructor
  · intro h
    cases row with
    | mk decision node visit =>
      cases decision with
      | stay =>
        cases same : Nat.beq node cursor.node && Nat.beq visit cursor.visit with
        | false => simp [Transitions.turn, same] at h
        | true =>
          simp only [Transitions.turn, same, cond_true, Option.some.injEq] at h
          simp only [Bool.and_eq_true, Nat.beq_eq] at same
          obtain ⟨rfl, rfl⟩ := same
          exact h ▸ .stay cursor
      | advance =>
        have ⟨arc, number, same⟩ := (enter_iff ..).mp h
        simp only at arc number same
        rw [same, number]
        exact .advance cursor node arc
      | loopBack =>
        have ⟨arc, number, same⟩ := (enter_iff ..).mp h
        simp only at arc number same
        rw [same, number]
        exact .loopBack cursor node arc
  · intro h
    cases h with
    | stay => simp [Transitions.turn]
    | advance node arc => exact (enter_iff ..).mpr ⟨arc, rfl, rfl⟩
    | loopBack node arc => exact (enter_iff ..).mpr ⟨arc, rfl, rfl⟩

/-- The segmentation checker holds iff every turn is legal. -/
theorem legalFrom_iff (w : Transitions) (cursor : Cursor) (rows : List Row) :
    w.legalFrom cursor rows = true ↔ ∃ last, Turns w cursor rows last := by
  induction rows generalizing cursor with
  | nil => exact ⟨fun _ => ⟨cursor, .done cursor⟩, fun _ => rfl⟩
  | cons row rest ih =>
    unfold Transitions.legalFrom
    constructor
    · intro h
      split at h
      · cases h
      · rename_i next found
        have ⟨last, turns⟩ := (ih next).mp h
        exact ⟨last, .turn ((turn_iff ..).mp found) turns⟩
    · rintro ⟨last, turns⟩
      cases turns with
      | turn first others =>
        rw [(turn_iff ..).mpr first]
        exact (ih _).mpr ⟨last, others⟩

theorem legal_iff (w : Transitions) (rows : List Row) : w.legal rows = true ↔ ∃ last, Turns w w.start rows last :=
  legalFrom_iff ..

theorem firstIllegal_none_iff (w : Transitions) (cursor : Cursor) (rows : List Row) :
    w.firstIllegal cursor rows = none ↔ w.legalFrom cursor rows = true := by
  induction rows generalizing cursor with
  | nil => simp [Transitions.firstIllegal, Transitions.legalFrom]
  | cons row rest ih =>
    unfold Transitions.firstIllegal Transitions.legalFrom
    split
    · simp
    · rename_i next found
      simp [ih next]

/-- A legal segmentation follows a walk of the graph: it never jumps. -/
theorem turns_walk {w : Transitions} {first last : Cursor} {rows : List Row} (turns : Turns w first rows last) :
    ∃ left, Walk (w.forward ++ w.back) first.node last.node left := by
  induction turns with
  | done cursor => exact ⟨[], .stay _⟩
  | turn step _ ih =>
    have ⟨left, walk⟩ := ih
    cases step with
    | stay => exact ⟨left, walk⟩
    | advance node arc => exact ⟨_, .step (List.mem_append.mpr (.inl arc)) walk⟩
    | loopBack node arc => exact ⟨_, .step (List.mem_append.mpr (.inr arc)) walk⟩

/-- Without a loop-back arc, a legal segmentation never loops back. -/
theorem no_undeclared_loopBack {w : Transitions} {first last : Cursor} {rows : List Row} (none : w.back = [])
    (turns : Turns w first rows last) : ∀ row ∈ rows, row.decision ≠ .loopBack := by
  induction turns with
  | done => nofun
  | turn step _ ih =>
    intro row member
    cases List.mem_cons.mp member with
    | inr later => exact ih row later
    | inl here =>
      subst here
      cases step with
      | stay => nofun
      | advance => nofun
      | loopBack node arc => simp [none] at arc

end LeanReward
