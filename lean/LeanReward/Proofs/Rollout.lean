import LeanReward.Rollout
import LeanReward.Proofs.Penalties
import LeanReward.Proofs.Rewards
import LeanReward.Proofs.Votes

/-! What the evidence and the penalties of a rollout can and cannot do to its rewards. -/

namespace LeanReward

/-- No judge outvotes code. -/
theorem failed_check_minus (checks : List Bool) (ballots : List Ballot) (failed : false ∈ checks) :
    (Evidence.judged checks ballots).beta = some .minus ∧ (Evidence.decided checks).beta = some .minus := by
  have : checks.all id = false := by
    rw [List.all_eq_false]
    exact ⟨false, failed, by simp⟩
  constructor <;> simp [Evidence.beta, this]

/-- A stage that no available judge looked at is never +1 on the judges' account. -/
theorem unjudged_never_plus (checks : List Bool) (ballots : List Ballot)
    (h : ∀ ballot ∈ ballots, ballot.available = false) : (Evidence.judged checks ballots).beta ≠ some .plus := by
  simp only [Evidence.beta, beta_unavailable ballots h]
  cases checks.all id <;> simp

theorem mem_rewards {rate : PassRate} {rollout : Rollout} {reward : Int} (member : reward ∈ rollout.rewards rate) :
    ∃ signals ∈ rollout.signals (penalties rollout.placed),
      reward = stepTenths (inProcessBand rate.passed rate.known) rollout.alpha signals.beta signals.penalised := by
  have ⟨signals, inside, same⟩ := List.mem_map.mp member
  exact ⟨signals, inside, same.symm⟩

/-- Every reward of a rollout is between -1.2 and 1.5. -/
theorem rollout_bounds {rate : PassRate} {rollout : Rollout} {reward : Int} (member : reward ∈ rollout.rewards rate) :
    -12 ≤ reward ∧ reward ≤ 15 := by
  have ⟨signals, _, same⟩ := mem_rewards member
  rw [same]
  exact stepTenths_bounds ..

/-- Outside the process band every step of a rollout gets its outcome. -/
theorem rollout_out_of_band {rate : PassRate} {rollout : Rollout} {reward : Int}
    (band : inProcessBand rate.passed rate.known = false) (member : reward ∈ rollout.rewards rate) :
    reward = 10 * rollout.alpha.value := by
  have ⟨signals, _, same⟩ := mem_rewards member
  rw [same, band]
  exact out_of_band ..

/-- A rollout has a reward for each step that has a row. -/
theorem length_rollout_rewards (rate : PassRate) (rollout : Rollout) :
    (rollout.rewards rate).length = min rollout.rows.length rollout.steps.length := by
  simp [Rollout.rewards, length_rewards, Rollout.signals, Rollout.placed, length_penalties]

theorem sameList_iff {α : Type} {same : α → α → Bool} (exact : ∀ a b, same a b = true ↔ a = b) (as bs : List α) :
    sameList same as bs = true ↔ as = bs := by
  induction as generalizing bs with
  | nil => cases bs <;> simp [sameList]
  | cons a as ih => cases bs <;> simp [sameList, exact, ih]

theorem sameSign_iff (a b : Option Sign) : sameSign a b = true ↔ a = b := by
  rcases a with _ | a <;> rcases b with _ | b <;> (try cases a) <;> (try cases b) <;> simp [sameSign]

theorem sameInteger_iff (a b : Int) : sameInteger a b = true ↔ a = b := by
  cases a <;> cases b <;> simp only [sameInteger, Nat.beq_eq, Int.ofNat.injEq, Int.negSucc.injEq, reduceCtorEq,
    Bool.false_eq_true]

theorem segmentationHolds_iff (claim : Claim) :
    claim.segmentationHolds = true ↔ claim.transitions.legal claim.rollout.rows = claim.legal := by
  unfold Claim.segmentationHolds
  cases claim.legal <;> simp

theorem votesHold_iff (claim : Claim) :
    claim.votesHold = true ↔ claim.rollout.evidence.map (·.2.beta) = claim.betas :=
  sameList_iff sameSign_iff ..

theorem penaltiesHold_iff (claim : Claim) :
    claim.penaltiesHold = true ↔ LeanReward.penalties claim.rollout.placed = claim.rules :=
  sameList_iff (sameList_iff fun a b => by simp) ..

/-- What a certificate proves: every answer of the claim is what the library's functions give. -/
theorem claim_iff (claim : Claim) :
    claim.holds = true ↔
      claim.transitions.legal claim.rollout.rows = claim.legal ∧
        claim.rollout.evidence.map (·.2.beta) = claim.betas ∧ LeanReward.penalties claim.rollout.placed = claim.rules ∧
        claim.rollout.rewards claim.rate = claim.rewards := by
  unfold Claim.holds
  rw [Bool.and_eq_true, Bool.and_eq_true, Bool.and_eq_true, segmentationHolds_iff, votesHold_iff, penaltiesHold_iff,
    and_assoc, and_assoc]
  refine and_congr_right fun _ => and_congr_right fun _ => and_congr_right fun fired => ?_
  unfold Claim.rewardsHold Rollout.rewards
  rw [sameList_iff sameInteger_iff, fired]

end LeanReward
