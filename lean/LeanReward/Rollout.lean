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
  | decided checks => some (bif checks.all id then .plus else .minus)
  | judged checks ballots => bif checks.all id then LeanReward.beta ballots else some .minus

/-- The execution phase of one rollout: a row, a step and, for each stage visit, its evidence. -/
structure Rollout where
  alpha : Sign
  rows : List Row
  steps : List Step
  evidence : List (Visit × Evidence)

def betaAt (evidence : List (Visit × Evidence)) (visit : Visit) : Option Sign :=
  match evidence with
  | [] => none
  | entry :: rest => bif sameVisit entry.1 visit then entry.2.beta else betaAt rest visit

/-- The steps, each in the stage visit that its row assigns. -/
def Rollout.placed (rollout : Rollout) : List Step :=
  rollout.rows.zipWith (fun row step => { step with visit := (row.node, row.visit) }) rollout.steps

/-- What each step's reward depends on, given the rules that fire on it. -/
def Rollout.signals (rollout : Rollout) (rules : List (List Nat)) : List Signals :=
  rollout.rows.zipWith (fun row fired => ⟨betaAt rollout.evidence (row.node, row.visit), !fired.isEmpty⟩) rules

/-- The rewards of the execution steps, in tenths. -/
def Rollout.rewards (rate : PassRate) (rollout : Rollout) : List Int :=
  LeanReward.rewards rate rollout.alpha (rollout.signals (penalties rollout.placed))

def sameSign : Option Sign → Option Sign → Bool
  | none, none => true
  | some .plus, some .plus => true
  | some .minus, some .minus => true
  | _, _ => false

def sameInteger : Int → Int → Bool
  | .ofNat a, .ofNat b => Nat.beq a b
  | .negSucc a, .negSucc b => Nat.beq a b
  | _, _ => false

def sameList {α : Type} (same : α → α → Bool) : List α → List α → Bool
  | [], [] => true
  | a :: as, b :: bs => same a b && sameList same as bs
  | _, _ => false

/-- A rollout and everything that was answered about it. -/
structure Claim where
  transitions : Transitions
  rollout : Rollout
  rate : PassRate
  legal : Bool
  /-- For each entry of the evidence. -/
  betas : List (Option Sign)
  /-- For each step, the rules that fire. -/
  rules : List (List Nat)
  /-- For each step, in tenths. -/
  rewards : List Int

/-- Whether the segmentation is as legal as the claim says. -/
def Claim.segmentationHolds (claim : Claim) : Bool :=
  bif claim.legal then claim.transitions.legal claim.rollout.rows else !claim.transitions.legal claim.rollout.rows

def Claim.votesHold (claim : Claim) : Bool :=
  sameList sameSign (claim.rollout.evidence.map (·.2.beta)) claim.betas

def Claim.penaltiesHold (claim : Claim) : Bool :=
  sameList (sameList Nat.beq) (penalties claim.rollout.placed) claim.rules

/-- Whether the rewards follow from the rules of the claim, which `penaltiesHold` is about. -/
def Claim.rewardsHold (claim : Claim) : Bool :=
  sameList sameInteger (LeanReward.rewards claim.rate claim.rollout.alpha (claim.rollout.signals claim.rules)) claim.rewards

/-- Whether every answer is right: what a certificate proves. -/
def Claim.holds (claim : Claim) : Bool :=
  claim.segmentationHolds && claim.votesHold && claim.penaltiesHold && claim.rewardsHold

end LeanReward
