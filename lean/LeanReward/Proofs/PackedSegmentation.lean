import LeanReward.Proofs.PackedWords

/-! The segmentation of a packed claim is as legal as that of the claim that it packs. -/

namespace LeanReward.Packed

theorem hasArc_eq (source target : Nat) (arcs : List Nat) :
    hasArc source target arcs = LeanReward.hasArc source target (arcs.map arcOf) := by
  rw [hasArc, any_eq]
  induction arcs with
  | nil => rfl
  | cons arc arcs ih =>
    rw [List.any_cons, ih, both_eq]
    rfl

theorem visits_eq (node : Nat) (entered : List Nat) : visits node entered = LeanReward.visits entered node := by
  induction entered with
  | nil => rfl
  | cons first rest ih =>
    show choose (Nat.beq first node) (Nat.succ (visits node rest)) (visits node rest) = _
    rw [LeanReward.visits, ih, choose_eq]
    cases Nat.beq first node <;> rfl

/-- A cursor as the packed claim keeps it. -/
def cursorOf (place : Nat) (entered : List Nat) : Cursor := ⟨nodeOf place, visitOf place, entered⟩

theorem enter_eq (cursor : Nat) (entered arcs : List Nat) (step : Nat) :
    (cursorOf cursor entered).enter (arcs.map arcOf) (rowOf step) =
      if enters cursor (place step) entered arcs then some (cursorOf (place step) (nodeOf (place step) :: entered))
      else none := by
  unfold Cursor.enter enters
  simp only [both_eq, hasArc_eq, visits_eq, cursorOf, rowOf]
  cases LeanReward.hasArc (nodeOf cursor) (nodeOf (place step)) (arcs.map arcOf) <;>
    cases Nat.beq (visitOf (place step)) (LeanReward.visits entered (nodeOf (place step))) <;> rfl

theorem legalFrom_eq (entry : Nat) (forward back steps : List Nat) (cursor : Nat) (entered : List Nat) :
    legalFrom forward back steps cursor entered =
      Transitions.legalFrom ⟨entry, forward.map arcOf, back.map arcOf⟩ (cursorOf cursor entered) (steps.map rowOf) := by
  induction steps generalizing cursor entered with
  | nil => rfl
  | cons step steps ih =>
    have unfolded : legalFrom forward back (step :: steps) cursor entered =
        choose (isZero (decision step))
          (both (Nat.beq (place step) cursor) (legalFrom forward back steps cursor entered))
          (both (enters cursor (place step) entered (choose (Nat.beq (decision step) 1) forward back))
            (legalFrom forward back steps (place step) (nodeOf (place step) :: entered))) := rfl
    rw [unfolded, ih, ih, List.map_cons, Transitions.legalFrom, choose_eq _ (both _ _), both_eq, both_eq, isZero_eq]
    clear unfolded
    by_cases stay : decision step = 0
    · have turn : Transitions.turn ⟨entry, forward.map arcOf, back.map arcOf⟩ (cursorOf cursor entered) (rowOf step) =
          bif Nat.beq (place step) cursor then some (cursorOf cursor entered) else none := by
        rw [place_iff]
        simp only [Transitions.turn, rowOf, stay, decisionOf]
        rfl
      rw [turn]
      cases Nat.beq (place step) cursor <;> simp [stay]
    · by_cases advance : decision step = 1
      · have turn : Transitions.turn ⟨entry, forward.map arcOf, back.map arcOf⟩ (cursorOf cursor entered) (rowOf step) =
            (cursorOf cursor entered).enter (forward.map arcOf) (rowOf step) := by
          simp only [Transitions.turn, rowOf, advance, decisionOf]
        have pick : choose (Nat.beq (decision step) 1) forward back = forward := by rw [advance]; rfl
        rw [turn, enter_eq, pick]
        cases enters cursor (place step) entered forward <;> simp [stay]
      · have back_ : decisionOf (decision step) = .loopBack := by
          unfold decisionOf
          split <;> simp_all
        have turn : Transitions.turn ⟨entry, forward.map arcOf, back.map arcOf⟩ (cursorOf cursor entered) (rowOf step) =
            (cursorOf cursor entered).enter (back.map arcOf) (rowOf step) := by
          simp only [Transitions.turn, rowOf, back_]
        have pick : choose (Nat.beq (decision step) 1) forward back = back := by rw [choose_eq, beq_eq]; simp [advance]
        rw [turn, enter_eq, pick]
        cases enters cursor (place step) entered back <;> simp [stay]

theorem segmentationHolds_eq (p : Packed) : p.segmentationHolds = p.claim.segmentationHolds := by
  have start : Transitions.start p.claim.transitions = cursorOf (nodeOf p.entry) [nodeOf p.entry] := by
    have below : p.entry % 4294967296 < 4294967296 := Nat.mod_lt _ (by decide)
    have node : nodeOf (nodeOf p.entry) = nodeOf p.entry := Nat.mod_eq_of_lt below
    have visit : visitOf (nodeOf p.entry) = 0 := (Nat.shiftRight_eq_div_pow _ 32).trans (Nat.div_eq_of_lt below)
    simp [Transitions.start, cursorOf, node, visit, claim]
  have legal : p.isLegal = p.claim.transitions.legal p.claim.rollout.rows := by
    rw [Transitions.legal, start, isLegal]
    exact legalFrom_eq ..
  rw [segmentationHolds, legal, choose_eq, negation_eq, isZero_eq]
  unfold Claim.segmentationHolds
  by_cases zero : p.legal = 0 <;> simp [claim, zero]

end LeanReward.Packed
