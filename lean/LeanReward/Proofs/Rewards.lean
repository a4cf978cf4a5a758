import LeanReward.Rewards

/-! The bounds of the reward algebra. -/

namespace LeanReward

/-- The beta term is at most 0.5. -/
theorem beta_term_le (alpha : Sign) (beta : Option Sign) :
    -5 ≤ stageTenths alpha beta - 10 * alpha.value ∧ stageTenths alpha beta - 10 * alpha.value ≤ 5 := by
  rcases beta with _ | beta <;> cases alpha <;> (try cases beta) <;> decide

/-- Whatever the stages, a failed rollout stays below a solved one. -/
theorem failed_lt_solved (failed solved : Option Sign) : stageTenths .minus failed < stageTenths .plus solved := by
  rcases failed with _ | failed <;> rcases solved with _ | solved <;> (try cases failed) <;> (try cases solved) <;> decide

/-- In the band a penalised step gets at most -1. -/
theorem penalised_le (alpha : Sign) (beta : Option Sign) : stepTenths true alpha beta true ≤ -10 := by
  simp only [stepTenths, penalisedTenths, ↓reduceIte]
  omega

/-- A penalty never raises the reward. -/
theorem penalty_never_raises (inBand : Bool) (alpha : Sign) (beta : Option Sign) :
    stepTenths inBand alpha beta true ≤ stepTenths inBand alpha beta false := by
  cases inBand
  · simp [stepTenths]
  · simp only [stepTenths, penalisedTenths, ↓reduceIte, Bool.false_eq_true]
    omega

/-- Outside the band the reward is alpha. -/
theorem out_of_band (alpha : Sign) (beta : Option Sign) (penalised : Bool) :
    stepTenths false alpha beta penalised = 10 * alpha.value := by
  simp [stepTenths]

/-- Every reward is between -1.2 and 1.5. -/
theorem stepTenths_bounds (inBand : Bool) (alpha : Sign) (beta : Option Sign) (penalised : Bool) :
    -12 ≤ stepTenths inBand alpha beta penalised ∧ stepTenths inBand alpha beta penalised ≤ 15 := by
  rcases beta with _ | beta <;> cases alpha <;> cases inBand <;> cases penalised <;> (try cases beta) <;> decide

/-- The six values that a reward can have. -/
theorem stepTenths_values (inBand : Bool) (alpha : Sign) (beta : Option Sign) (penalised : Bool) :
    stepTenths inBand alpha beta penalised ∈ [-12, -10, -8, 5, 10, 15] := by
  rcases beta with _ | beta <;> cases alpha <;> cases inBand <;> cases penalised <;> (try cases beta) <;> decide

/-- The band is p = 0 or p ≥ 75%, as whole numbers. -/
theorem inProcessBand_iff (passed known : Nat) :
    inProcessBand passed known = true ↔ 0 < known ∧ (passed = 0 ∨ 75 * known ≤ 100 * passed) := by
  simp only [inProcessBand, Bool.and_eq_true, Bool.or_eq_true, decide_eq_true_eq]
  omega

theorem passRate_le (alphas : List (Option Sign)) : (passRate alphas).passed ≤ (passRate alphas).known := by
  refine List.countP_mono_left fun alpha _ h => ?_
  simp only [decide_eq_true_eq] at h
  simp [h]

theorem length_rewards (rate : PassRate) (alpha : Sign) (steps : List Signals) :
    (rewards rate alpha steps).length = steps.length := by
  simp [rewards]

end LeanReward
