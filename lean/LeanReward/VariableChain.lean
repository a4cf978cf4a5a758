import LeanReward.Workflow

/-!
The variable chain (Hoare): which facts are available on entry to each node, and whether they entail its preconditions.

The facts are computed along a checked topological order and then narrowed until nothing is lost along any arc, loop-backs
included; a separate check, which alone is trusted, establishes that the result is inductive.
-/

namespace LeanReward

/-- For each node, the facts available on entry to it. -/
abbrev Available := List (NodeId × List Fact)

def Available.at (table : Available) (id : NodeId) : List Fact :=
  match table.find? fun row => decide (row.1 = id) with
  | some row => row.2
  | none => []

/-- What holds after a node: its postconditions, and what held before about variables that it does not write. -/
def Node.after (node : Node) (before : List Fact) : List Fact :=
  node.post ++ before.filter fun fact => !decide (fact.subject ∈ node.writes)

def Workflow.afterNode (w : Workflow) (table : Available) (id : NodeId) : List Fact :=
  match w.node? id with
  | some node => node.after (table.at id)
  | none => []

/-- The facts of `candidates` that every one of the `sources` gives. -/
def Workflow.merge (w : Workflow) (table : Available) (sources : List NodeId) (candidates : List Fact) : List Fact :=
  candidates.filter fun fact => sources.all fun source => entailsFact w.registry (w.afterNode table source) fact

/-- One pass along the order, forward arcs only. -/
def Workflow.spread (w : Workflow) : List NodeId → Available → Available
  | [], table => table
  | id :: rest, table =>
    let sources := (w.forward.filter fun arc => decide (arc.2 = id)).map (·.1)
    let facts :=
      if id = w.entry then w.given
      else
        match sources with
        | [] => []
        | first :: others => w.merge table others (w.afterNode table first)
    w.spread rest ((id, facts) :: table)

/-- Drop what some arc into a node, loop-backs included, does not give; `fuel` rounds. -/
def Workflow.narrow (w : Workflow) : Nat → Available → Available
  | 0, table => table
  | fuel + 1, table =>
    let next := table.map fun row =>
      (row.1, w.merge table ((w.arcs.filter fun arc => decide (arc.2 = row.1)).map (·.1)) row.2)
    if decide (next = table) then table else w.narrow fuel next

def Workflow.available (w : Workflow) (order : List NodeId) : Available :=
  let table := w.spread order []
  w.narrow ((table.map fun row => row.2.length).foldl (· + ·) 1) table

def entailsAll (registry : Registry) (facts goals : List Fact) : Bool := goals.all (entailsFact registry facts)

/-- Available facts start from what is given, and no arc brings in less. -/
def Workflow.isInductive (w : Workflow) (table : Available) : Bool :=
  entailsAll w.registry w.given (table.at w.entry) &&
    w.arcs.all fun arc => entailsAll w.registry (w.afterNode table arc.1) (table.at arc.2)

/-- What a node needs on entry; for a loop header its invariant too, at entry and whenever the body comes back. -/
def Node.needs (node : Node) : List Fact := node.pre ++ node.invariant

inductive ChainVerdict
  /-- Every precondition is entailed; the facts after each exit. -/
  | holds (exitFacts : List (NodeId × List Fact))
  /-- The first failure along the order: where, what is missing, what is available. -/
  | missing (node : NodeId) (fact : Fact) (available : List Fact)
  /-- The forward arcs have a cycle, or the order is not one of all nodes. -/
  | notOrdered
  deriving DecidableEq

def Workflow.firstMissing (w : Workflow) (table : Available) : List NodeId → Option (NodeId × Fact)
  | [] => none
  | id :: rest =>
    match w.node? id with
    | none => w.firstMissing table rest
    | some node =>
      match node.needs.find? fun fact => !entailsFact w.registry (table.at id) fact with
      | some fact => some (id, fact)
      | none => w.firstMissing table rest

/-- Whether `order` is a topological order of the forward arcs and lists every node. -/
def Workflow.isOrder (w : Workflow) (order : List NodeId) : Bool :=
  isTopological w.forward order && w.nodes.all fun node => decide (node.id ∈ order)

def Workflow.chain (w : Workflow) (order : List NodeId) : ChainVerdict :=
  let table := w.available order
  if w.isOrder order && w.isInductive table then
    match w.firstMissing table order with
    | some (id, fact) => .missing id fact (table.at id)
    | none => .holds (w.exits.map fun exit => (exit, w.afterNode table exit))
  else .notOrdered

end LeanReward
