import LeanReward.Votes

/-! The reward of a step, equations 1 to 3, in tenths. -/

namespace LeanReward

/-- r0: alpha + (0.2 + 0.3 [alpha = 1]) beta (equation 1); alpha alone for an unannotated stage. -/
def stageTenths (alpha : Sign) : Option Sign → Int
  | none => 10 * alpha.value
  | some beta => 10 * alpha.value + (match alpha with | .plus => 5 | .minus => 2) * beta.value

/-- r1: at most -1 for a penalised step (equation 2). -/
def penalisedTenths (base : Int) (penalised : Bool) : Int := if penalised then min (-10) base else base

/-- r: r1 in the process band, else alpha (equation 3). -/
def stepTenths (inBand : Bool) (alpha : Sign) (beta : Option Sign) (penalised : Bool) : Int :=
  if inBand then penalisedTenths (stageTenths alpha beta) penalised else 10 * alpha.value

/-- The pass rate is 0 or at least 75%, over the rollouts whose alpha is known. -/
def inProcessBand (passed known : Nat) : Bool :=
  decide (0 < known) && (decide (passed = 0) || decide (3 * known ≤ 4 * passed))

/-- What the group's pass rate is made of. -/
structure PassRate where
  passed : Nat
  known : Nat

def passRate (alphas : List (Option Sign)) : PassRate :=
  ⟨alphas.countP fun alpha => decide (alpha = some .plus), alphas.countP fun alpha => !decide (alpha = none)⟩

/-- What one execution step's reward depends on within its rollout. -/
structure Signals where
  beta : Option Sign
  penalised : Bool

/-- The rewards of a rollout's execution steps, in tenths. -/
def rewards (rate : PassRate) (alpha : Sign) (steps : List Signals) : List Int :=
  steps.map fun step => stepTenths (inProcessBand rate.passed rate.known) alpha step.beta step.penalised

end LeanReward
