import LeanReward.VariableChain

/-! Coverage of the sub-goals: how much of what each requires the workflow gives. -/

namespace LeanReward

inductive Cover
  /-- Every required graph predicate holds and every exit establishes the required predicate. -/
  | full
  /-- Every way from the entry to an exit has a contributor, but something else that is required does not hold. -/
  | partly
  /-- There are contributors, but some way to an exit avoids them all. -/
  | weak
  /-- No node contributes. -/
  | uncovered
  deriving DecidableEq

def Workflow.contributors (w : Workflow) (goal : Name) : List NodeId :=
  (w.nodes.filter fun node => decide (goal ∈ node.contributes)).map (·.id)

def Workflow.verifiers (w : Workflow) (goal : Name) : List NodeId :=
  (w.nodes.filter fun node => decide (goal ∈ node.verifies)).map (·.id)

/-- Every way from `source` to an exit has one of `ids` on it, its two ends included. -/
def Workflow.everyWayHas (w : Workflow) (source : NodeId) (ids : List NodeId) : Bool :=
  w.exits.all fun exit => decide (exit ∈ ids) || everyWalkMeets w.arcs [source] exit fun id => decide (id ∈ ids)

def Workflow.pathCoverage (w : Workflow) (goal : Name) : Bool := w.everyWayHas w.entry (w.contributors goal)

/-- After each contributor, every way to an exit has a verifier. -/
def Workflow.verificationCoverage (w : Workflow) (goal : Name) : Bool :=
  (w.contributors goal).all fun source => w.everyWayHas source (w.verifiers goal)

/-- The verifiers loop back, and all to the same header. -/
def Workflow.unifiedLoopBack (w : Workflow) (goal : Name) : Bool :=
  match (w.back.filter fun arc => decide (arc.1 ∈ w.verifiers goal)).map (·.2) with
  | [] => false
  | header :: others => others.all fun other => decide (other = header)

def Workflow.graphPredicate (w : Workflow) (goal : Name) : GraphPredicate → Bool
  | .pathCoverage => w.pathCoverage goal
  | .verificationCoverage => w.verificationCoverage goal
  | .unifiedLoopBack => w.unifiedLoopBack goal

/-- Whether the facts after every exit give the required predicate; a key that nobody registered is never established. -/
def Workflow.establishes (w : Workflow) (goal : SubGoal) : ChainVerdict → Bool
  | .holds exits =>
    w.registry.knows goal.required && !exits.isEmpty &&
      exits.all fun exit => entails w.registry exit.2 goal.subject goal.required
  | _ => false

def Workflow.coverOf (w : Workflow) (chain : ChainVerdict) (goal : SubGoal) : Cover :=
  if (w.contributors goal.name).isEmpty then .uncovered
  else if !w.pathCoverage goal.name then .weak
  else if goal.graph.all (w.graphPredicate goal.name) && w.establishes goal chain then .full
  else .partly

def Workflow.coverage (w : Workflow) (order : List NodeId) : List (Name × Cover) :=
  let chain := w.chain order
  w.goals.map fun goal => (goal.name, w.coverOf chain goal)

end LeanReward
