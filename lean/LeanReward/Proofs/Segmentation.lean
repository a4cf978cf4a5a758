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

theorem turn_iff (w : Transitions) (cursor next : Cursor) (row : Row) :
    w.turn cursor row = some next ↔ Turn w cursor row next := by
  constructor
  · intro h
    cases row with
    | mk decision node visit =>
      cases decision <;> simp only [Transitions.turn, decide_eq_true_eq] at h <;> split at h <;> try cases h
      · rename_i same
        obtain ⟨rfl, rfl⟩ := same
        exact .stay cursor
      · rename_i same
        obtain ⟨arc, rfl⟩ := same
        exact .advance cursor node arc
      · rename_i same
        obtain ⟨arc, rfl⟩ := same
        exact .loopBack cursor node arc
  · intro h
    cases h with
    | stay => simp [Transitions.turn]
    | advance node arc => simp [Transitions.turn, arc]
    | loopBack node arc => simp [Transitions.turn, arc]

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
