import LeanReward.Penalties
import LeanReward.Rewards
import LeanReward.Segmentation

/-! One rollout from its segmentation, evidence and parsed steps to its rewards: what a certificate is about. -/

namespace LeanReward

/-- Where the beta of a stage visit comes from. -/
inductive Evidence
  /-- Supplied by the caller; none when the stage is unannotated. -/
  | given (beta : Option Sign)
  /-- Every requirement was decided by code. -/
  | decided (checks : List Bool)
  /-- What code decided, and the replicas' judgements of the rest. -/
  | judged (checks : List Bool) (ballots : List Ballot)

/-- A failed check is -1 whatever the judges say; otherwise they decide what code cannot. -/
def Evidence.beta : Evidence → Option Sign
  | given beta => beta
  | decided checks => some (if checks.all id then .plus else .minus)
  | judged checks ballots => if checks.all id then LeanReward.beta ballots else some .minus

/-- The execution phase of one rollout: a row, a step and, for each stage visit, its evidence. -/
structure Rollout where
  alpha : Sign
  rows : List Row
  steps : List Step
  evidence : List (Visit × Evidence)

def betaAt (evidence : List (Visit × Evidence)) (visit : Visit) : Option Sign :=
  match evidence with
  | [] => none
  | entry :: rest => if entry.1 = visit then entry.2.beta else betaAt rest visit

/-- The steps, each in the stage visit that its row assigns. -/
def Rollout.placed (rollout : Rollout) : List Step :=
  rollout.rows.zipWith (fun row step => { step with visit := (row.node, row.visit) }) rollout.steps

def Rollout.signals (rollout : Rollout) : List Signals :=
  rollout.rows.zipWith
    (fun row rules => ⟨betaAt rollout.evidence (row.node, row.visit), !rules.isEmpty⟩) (penalties rollout.placed)

/-- The rewards of the execution steps, in tenths. -/
def Rollout.rewards (rate : PassRate) (rollout : Rollout) : List Int :=
  LeanReward.rewards rate rollout.alpha rollout.signals

end LeanReward
