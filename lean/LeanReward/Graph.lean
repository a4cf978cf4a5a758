/-!
Directed graphs as lists of arcs, and the questions that the checkers ask of them.

Everything recurses on lists or on fuel, so that the kernel can evaluate it (`by decide`).
-/

namespace LeanReward

variable {α : Type} [DecidableEq α]

/-- `Walk arcs a b left`: a walk from `a` to `b` that leaves the nodes `left`, in order (all of its nodes but the last). -/
inductive Walk (arcs : List (α × α)) : α → α → List α → Prop
  | stay (a : α) : Walk arcs a a []
  | step {a b c : α} {left : List α} : (a, b) ∈ arcs → Walk arcs b c left → Walk arcs a c (a :: left)

/-- An arc that leaves `seen`. -/
def leaving (arcs : List (α × α)) (seen : List α) : Option (α × α) :=
  arcs.find? fun arc => decide (arc.1 ∈ seen) && !decide (arc.2 ∈ seen)

/-- `seen` and what is reached from it in at most `fuel` discoveries. -/
def saturate (arcs : List (α × α)) : Nat → List α → List α
  | 0, seen => seen
  | fuel + 1, seen =>
    match leaving arcs seen with
    | none => seen
    | some arc => saturate arcs fuel (arc.2 :: seen)

/-- Every node reachable from `sources`; each arc discovers at most one node, so their number is fuel enough. -/
def reachable (arcs : List (α × α)) (sources : List α) : List α := saturate arcs arcs.length sources

def reaches (arcs : List (α × α)) (sources : List α) (target : α) : Bool := decide (target ∈ reachable arcs sources)

/-- Whether every walk from `sources` to `target` leaves a node with `stop` before it gets there. -/
def everyWalkMeets (arcs : List (α × α)) (sources : List α) (target : α) (stop : α → Bool) : Bool :=
  !reaches (arcs.filter fun arc => !stop arc.1) sources target

/-- The position of `a` in `order`; the length of `order` when it is not there. -/
def rank (order : List α) (a : α) : Nat :=
  match order with
  | [] => 0
  | b :: rest => if a = b then 0 else rank rest a + 1

/-- Every arc goes from an earlier to a later member of `order`. -/
def isTopological (arcs : List (α × α)) (order : List α) : Bool :=
  arcs.all fun arc => decide (rank order arc.1 < rank order arc.2) && decide (rank order arc.2 < order.length)

end LeanReward
