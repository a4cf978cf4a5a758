import LeanReward.Predicate
import LeanReward.Segmentation

/-! The contract of a workflow: a graph of nodes with pre- and postconditions, information needs and sub-goals. -/

namespace LeanReward

inductive Edge
  | seq (source target : NodeId)
  | branch (source onTrue onFalse : NodeId)
  | loop (header bodyEntry exit : NodeId)
  | loopBack (bodyEnd header : NodeId)
  deriving DecidableEq

/-- The arcs that go on; a loop-back goes back. -/
def Edge.forward : Edge → List (NodeId × NodeId)
  | seq source target => [(source, target)]
  | branch source onTrue onFalse => [(source, onTrue), (source, onFalse)]
  | loop header bodyEntry exit => [(header, bodyEntry), (header, exit)]
  | loopBack _ _ => []

def Edge.back : Edge → List (NodeId × NodeId)
  | loopBack bodyEnd header => [(bodyEnd, header)]
  | _ => []

structure Node where
  id : NodeId
  reads : List Name := []
  writes : List Name := []
  pre : List Fact := []
  post : List Fact := []
  /-- For the header of a loop: holds at its entry and at the end of its body. -/
  invariant : List Fact := []
  infoRequires : List Name := []
  /-- Information atoms that a written variable carries. -/
  variableInfo : List (Name × Name) := []
  /-- Information atoms that the step leaves in the context. -/
  contextInfo : List Name := []
  contributes : List Name := []
  verifies : List Name := []

inductive GraphPredicate
  | pathCoverage
  | verificationCoverage
  | unifiedLoopBack
  deriving DecidableEq

structure SubGoal where
  name : Name
  subject : Name
  required : Predicate
  graph : List GraphPredicate

structure Workflow where
  nodes : List Node
  edges : List Edge
  entry : NodeId
  exits : List NodeId
  /-- Facts about the parameters and the tools, true at entry. -/
  given : List Fact := []
  /-- Information atoms that parameters carry. -/
  givenInfo : List (Name × Name) := []
  goals : List SubGoal := []
  registry : Registry := []

def Workflow.forward (w : Workflow) : List (NodeId × NodeId) := w.edges.flatMap Edge.forward

def Workflow.back (w : Workflow) : List (NodeId × NodeId) := w.edges.flatMap Edge.back

def Workflow.arcs (w : Workflow) : List (NodeId × NodeId) := w.forward ++ w.back

/-- Where a segmentation may go. -/
def Workflow.transitions (w : Workflow) : Transitions := ⟨w.entry, w.forward, w.back⟩

def Workflow.node? (w : Workflow) (id : NodeId) : Option Node := w.nodes.find? fun node => decide (node.id = id)

/-- Distinct ids, and every arc, the entry and the exits name a node. -/
def Workflow.isWellFormed (w : Workflow) : Bool :=
  let ids := w.nodes.map (·.id)
  decide ids.Nodup && decide (w.entry ∈ ids) && !w.exits.isEmpty && w.exits.all (fun exit => decide (exit ∈ ids)) &&
    w.arcs.all fun arc => decide (arc.1 ∈ ids) && decide (arc.2 ∈ ids)

end LeanReward
