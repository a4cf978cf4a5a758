import LeanReward.Workflow

/-!
Information closure: each atom that a node requires must be visible, through a variable that the node reads or through
the unbroken chain of earlier steps. Unbroken means on every way to the node, not on some way; a write to a variable
without the atom breaks what the variable carried.
-/

namespace LeanReward

/-- The nodes with `p`, as a test on ids. -/
def Workflow.having (w : Workflow) (p : Node → Bool) (id : NodeId) : Bool :=
  w.nodes.any fun node => decide (node.id = id) && p node

def Node.carries (subject atom : Name) (node : Node) : Bool := decide ((subject, atom) ∈ node.variableInfo)

/-- A node that overwrites the variable without the atom. -/
def Node.erases (subject atom : Name) (node : Node) : Bool :=
  decide (subject ∈ node.writes) && !node.carries subject atom

/-- Where an atom may be absent from a variable: at the entry unless it is given, and just after an erasing node. -/
def Workflow.lacking (w : Workflow) (subject atom : Name) : List NodeId :=
  (if (subject, atom) ∈ w.givenInfo then [] else [w.entry]) ++
    ((w.arcs.filter fun arc => w.having (Node.erases subject atom) arc.1).map (·.2))

/-- Visible through a variable: from wherever the atom may be absent, every way to the node passes a node that puts it in. -/
def Workflow.viaVariable (w : Workflow) (node : Node) (atom : Name) : Bool :=
  node.reads.any fun subject =>
    (decide ((subject, atom) ∈ w.givenInfo) || w.nodes.any (Node.carries subject atom)) &&
      everyWalkMeets w.arcs (w.lacking subject atom) node.id (w.having (Node.carries subject atom))

/-- Visible through the context: every way from the entry to the node passes a node that leaves the atom there. -/
def Workflow.viaContext (w : Workflow) (node : Node) (atom : Name) : Bool :=
  w.nodes.any (fun other => decide (atom ∈ other.contextInfo)) &&
    everyWalkMeets w.arcs [w.entry] node.id (w.having fun other => decide (atom ∈ other.contextInfo))

structure Closure where
  node : NodeId
  required : List Name
  viaVariable : List Name
  viaContext : List Name
  missing : List Name
  deriving DecidableEq

def Workflow.closureOf (w : Workflow) (node : Node) : Closure where
  node := node.id
  required := node.infoRequires
  viaVariable := node.infoRequires.filter (w.viaVariable node)
  viaContext := node.infoRequires.filter (w.viaContext node)
  missing := node.infoRequires.filter fun atom => !(w.viaVariable node atom || w.viaContext node atom)

def Workflow.closures (w : Workflow) : List Closure := w.nodes.map w.closureOf

def Workflow.informationClosed (w : Workflow) : Bool := w.closures.all fun closure => closure.missing.isEmpty

end LeanReward
