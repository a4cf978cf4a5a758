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
  split <;> simp

theorem mem_rewards {rate : PassRate} {rollout : Rollout} {reward : Int} (member : reward ∈ rollout.rewards rate) :
    ∃ signals ∈ rollout.signals,
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

end LeanReward
