import LeanReward.Proofs.PackedWords
import LeanReward.Proofs.Rollout

/-! The votes and rewards of a packed claim are those of the claim that it packs. -/

namespace LeanReward.Packed

theorem counted_eq (rule : Nat → Bool) (xs : List Nat) : counted rule xs = xs.countP rule := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    show choose (rule x) (Nat.succ (counted rule xs)) (counted rule xs) = _
    rw [ih, choose_eq, List.countP_cons]
    cases rule x <;> rfl

theorem positives_count (votes : List Bool) : positives votes = votes.countP id := by
  induction votes with
  | nil => rfl
  | cons vote votes ih => cases vote <;> simp [positives, ih]

theorem isPositive_eq (ballot : Nat) : isPositive ballot = (ballotOf ballot).positive := by
  have low : Nat.beq (Nat.mod ballot 16) 7 = (hasBit ballot 0 && hasBit ballot 1 && hasBit ballot 2 && !hasBit ballot 3) := by
    have bit (position : Nat) : hasBit ballot position = decide (ballot / 2 ^ position % 2 = 1) := by
      rw [hasBit_eq, Nat.testBit_eq_decide_div_mod_eq]
    rw [beq_eq, bit, bit, bit, bit, Bool.eq_iff_iff]
    show decide (ballot % 16 = 7) = true ↔ _
    simp only [decide_eq_true_eq, Bool.and_eq_true, Bool.not_eq_true', decide_eq_false_iff_not]
    omega
  unfold isPositive Ballot.positive ballotOf LeanReward.claims
  rw [both_eq, low]
  cases hasBit ballot 0 <;> cases hasBit ballot 1 <;> cases hasBit ballot 2 <;> cases hasBit ballot 3 <;>
    cases hasBit ballot 4 <;> simp [occurs, Answer.supports, Answer.contradicts]

theorem voted_eq (ballots : List Nat) : signOf (voted ballots) = beta (ballots.map ballotOf) := by
  unfold voted beta
  have available : (ballots.map ballotOf).any (·.available) = ballots.any fun ballot => hasBit ballot 0 := by
    rw [List.any_map]; rfl
  have votes : positives ((ballots.map ballotOf).map Ballot.positive) = ballots.countP isPositive := by
    rw [positives_count, List.map_map, List.countP_map]
    exact List.countP_congr fun ballot _ => by simp [isPositive_eq]
  rw [any_eq, available, choose_eq]
  cases ballots.any fun ballot => hasBit ballot 0
  · rfl
  · unfold LeanReward.majority majority
    rw [counted_eq, counted_eq, votes, choose_eq]
    simp only [List.length_map, Nat.blt, List.countP_true]
    show signOf (if Nat.ble (ballots.length + 1) (2 * _) = true then 2 else 1) =
      some (bif Nat.ble (ballots.length + 1) (2 * _) then _ else _)
    cases Nat.ble (ballots.length + 1) (2 * ballots.countP isPositive) <;> rfl

theorem betaOf_eq (stage : Nat) : signOf (betaOf stage) = (evidenceOf stage).beta := by
  unfold betaOf evidenceOf
  have checks : (occurs (hasBit stage 6) true (occurs (hasBit stage 7) false [])).all id = !hasBit stage 7 := by
    cases hasBit stage 6 <;> cases hasBit stage 7 <;> rfl
  rw [choose_eq, choose_eq, choose_eq, isZero_eq, beq_eq]
  by_cases zero : sourceOf stage = 0
  · rw [zero]; rfl
  · by_cases one : sourceOf stage = 1
    · simp only [one, Evidence.beta, checks]
      cases hasBit stage 7 <;> rfl
    · simp only [Evidence.beta, checks, ← voted_eq, zero, one]
      cases hasBit stage 7 <;> rfl

theorem betaOf_lt (stage : Nat) : betaOf stage < 3 := by
  unfold betaOf voted majority
  simp only [choose_eq]
  have below : given stage < 3 := Nat.mod_lt _ (by decide)
  repeat' split
  all_goals first | exact below | decide

theorem claimed_lt (stage : Nat) : claimed stage < 3 := Nat.mod_lt _ (by decide)

theorem same_sign (a b : Nat) (ha : a < 3) (hb : b < 3) : Nat.beq a b = sameSign (signOf a) (signOf b) := by
  match a, b with
  | 0, 0 | 0, 1 | 0, 2 | 1, 0 | 1, 1 | 1, 2 | 2, 0 | 2, 1 | 2, 2 => rfl
  | n + 3, _ => omega
  | _, n + 3 => omega

theorem votesHold_eq (p : Packed) : votesHold p.stages = p.claim.votesHold := by
  unfold Claim.votesHold claim votesHold
  rw [all_eq]
  generalize p.stages = stages
  induction stages with
  | nil => rfl
  | cons stage stages ih =>
    rw [List.all_cons, ih, same_sign _ _ (betaOf_lt stage) (claimed_lt stage), betaOf_eq]
    rfl

/-! Rewards. -/

theorem betaAt_lt (stages : List Nat) (place : Nat) : betaAt stages place < 3 := by
  induction stages with
  | nil => exact (by decide : 0 < 3)
  | cons stage stages ih =>
    show choose (Nat.beq (stagePlace stage) place) (betaOf stage) (betaAt stages place) < 3
    rw [choose_eq]
    split
    · exact betaOf_lt stage
    · exact ih

theorem betaAt_eq (stages : List Nat) (place : Nat) :
    signOf (betaAt stages place) =
      LeanReward.betaAt (stages.map fun stage => (visitAt (stagePlace stage), evidenceOf stage)) (visitAt place) := by
  induction stages with
  | nil => rfl
  | cons stage stages ih =>
    show signOf (choose (Nat.beq (stagePlace stage) place) (betaOf stage) (betaAt stages place)) = _
    rw [List.map_cons, LeanReward.betaAt, ← ih, ← betaOf_eq, choose_eq, place_iff]
    unfold sameVisit visitAt
    cases Nat.beq (nodeOf (stagePlace stage)) (nodeOf place) &&
      Nat.beq (visitOf (stagePlace stage)) (visitOf place) <;> rfl

theorem fired_lt (step : Nat) : fired step < 64 := Nat.mod_lt _ (by decide)

theorem isEmpty_rulesOf : ∀ m < 64, (rulesOf m).isEmpty = isZero m := by decide +kernel

def alphaOf (alpha : Nat) : Sign := if alpha = 0 then .minus else .plus

theorem stageReward_eq (alpha beta : Nat) (h : beta < 3) :
    (stageReward alpha beta : Int) - 12 = stageTenths (alphaOf alpha) (signOf beta) := by
  unfold stageReward alphaOf
  rw [choose_eq, isZero_eq]
  by_cases failed : alpha = 0 <;> simp only [failed, decide_true, decide_false, if_true, if_false] <;>
    match beta, h with
    | 0, _ | 1, _ | 2, _ => rfl

theorem outcome_eq (alpha : Nat) : (outcome alpha : Int) - 12 = 10 * (alphaOf alpha).value := by
  unfold outcome alphaOf
  rw [choose_eq, isZero_eq]
  by_cases failed : alpha = 0 <;> simp [failed] <;> rfl

theorem penalised_eq (base : Nat) : (penalised base : Int) - 12 = min (-10) ((base : Int) - 12) := by
  unfold penalised
  rw [choose_eq]
  by_cases high : 2 ≤ base
  · rw [if_pos (Nat.ble_eq.mpr high)]
    show (2 : Int) - 12 = _
    omega
  · rw [if_neg (fun le => high (Nat.ble_eq.mp le))]; omega

theorem isInBand_eq (passed known : Nat) : isInBand passed known = inProcessBand passed known := by
  unfold isInBand inProcessBand
  rw [both_eq, either_eq, negation_eq, isZero_eq, isZero_eq]
  have third : Nat.ble (Nat.mul 3 known) (Nat.mul 4 passed) = decide (3 * known ≤ 4 * passed) := by
    rw [Bool.eq_iff_iff]; simp
  rw [third]
  by_cases zero : known = 0
  · simp [zero]
  · simp [zero, Nat.pos_of_ne_zero zero]

theorem same_integer (a b : Nat) : Nat.beq a b = sameInteger ((a : Int) - 12) ((b : Int) - 12) := by
  rw [Bool.eq_iff_iff, sameInteger_iff, Nat.beq_eq]
  omega

theorem reward_eq (p : Packed) (step : Nat) :
    Nat.beq (choose (isInBand p.passed p.known) (rewardInBand p.alpha p.stages step) (outcome p.alpha)) (reward step) =
      sameInteger
        (stepTenths (inProcessBand p.passed p.known) (alphaOf p.alpha)
          (LeanReward.betaAt p.claim.rollout.evidence (visitAt (place step))) (!(rulesOf (fired step)).isEmpty))
        ((reward step : Int) - 12) := by
  rw [same_integer, isInBand_eq, isEmpty_rulesOf _ (fired_lt step), isZero_eq, choose_eq]
  have base := stageReward_eq p.alpha _ (betaAt_lt p.stages (place step))
  rw [betaAt_eq] at base
  unfold stepTenths rewardInBand
  simp only [worked_eq]
  cases inProcessBand p.passed p.known
  · simp only [if_false, outcome_eq, Bool.false_eq_true]
  · simp only [if_true, choose_eq, isZero_eq]
    by_cases none : fired step = 0
    · simp [none, base, penalisedTenths, claim]
    · simp [none, penalised_eq, base, penalisedTenths, claim]

theorem rewardsHold_eq (p : Packed) :
    rewardsHold (isInBand p.passed p.known) p.alpha p.stages p.steps = p.claim.rewardsHold := by
  have each (steps : List Nat) :
      rewardsHold (isInBand p.passed p.known) p.alpha p.stages steps =
        steps.all fun step =>
          Nat.beq (choose (isInBand p.passed p.known) (rewardInBand p.alpha p.stages step) (outcome p.alpha)) (reward step) := by
    unfold rewardsHold
    rw [choose_eq, all_eq, all_eq]
    cases isInBand p.passed p.known <;> rfl
  rw [each]
  unfold Claim.rewardsHold LeanReward.rewards Rollout.signals
  show _ = sameList sameInteger
    (((p.steps.map rowOf).zipWith _ (p.steps.map fun step => rulesOf (fired step))).map _)
    (p.steps.map fun step => (reward step : Int) - 12)
  generalize p.steps = steps
  induction steps with
  | nil => rfl
  | cons step steps ih =>
    rw [List.all_cons, ih, reward_eq]
    rfl

end LeanReward.Packed
