/-! A segmentation of a trajectory is legal when every turn stays, advances along a forward arc, or loops back along a
declared loop-back; each entry into a node is a visit of its own.

Like everything that certificates evaluate, this compares numbers by `Nat.beq` and `Nat.ble`, which the kernel computes in
one step. -/

namespace LeanReward

abbrev NodeId := Nat

/-- The entry of a workflow, the arcs along which it goes on, and its declared loop-backs. -/
structure Transitions where
  entry : NodeId
  forward : List (NodeId × NodeId)
  back : List (NodeId × NodeId)

inductive Decision
  | stay
  | advance
  | loopBack

/-- The assignment of one turn. -/
structure Row where
  decision : Decision
  node : NodeId
  visit : Nat

/-- Where the cursor is, and every node entered so far, the latest first. -/
structure Cursor where
  node : NodeId
  visit : Nat
  entered : List NodeId

/-- The cursor starts at the entry, in its visit 0. -/
def Transitions.start (w : Transitions) : Cursor := ⟨w.entry, 0, [w.entry]⟩

/-- How often a node was entered, which is the index of its next visit. -/
def visits (entered : List NodeId) (node : NodeId) : Nat :=
  match entered with
  | [] => 0
  | first :: rest => bif Nat.beq first node then visits rest node + 1 else visits rest node

def hasArc (source target : NodeId) : List (NodeId × NodeId) → Bool
  | [] => false
  | arc :: rest => (Nat.beq arc.1 source && Nat.beq arc.2 target) || hasArc source target rest

/-- The cursor after an entry into a node along one of `arcs`. -/
def Cursor.enter (cursor : Cursor) (arcs : List (NodeId × NodeId)) (row : Row) : Option Cursor :=
  bif hasArc cursor.node row.node arcs && Nat.beq row.visit (visits cursor.entered row.node) then
    some ⟨row.node, row.visit, row.node :: cursor.entered⟩
  else none

/-- The cursor after a turn; none when the turn is illegal. -/
def Transitions.turn (w : Transitions) (cursor : Cursor) (row : Row) : Option Cursor :=
  match row.decision with
  | .stay => bif Nat.beq row.node cursor.node && Nat.beq row.visit cursor.visit then some cursor else none
  | .advance => cursor.enter w.forward row
  | .loopBack => cursor.enter w.back row

/-- The index of the first illegal turn; none when all are legal. -/
def Transitions.firstIllegal (w : Transitions) (cursor : Cursor) : List Row → Option Nat
  | [] => none
  | row :: rest =>
    match w.turn cursor row with
    | none => some 0
    | some next => (w.firstIllegal next rest).map (· + 1)

def Transitions.legalFrom (w : Transitions) (cursor : Cursor) : List Row → Bool
  | [] => true
  | row :: rest =>
    match w.turn cursor row with
    | none => false
    | some next => w.legalFrom next rest

def Transitions.legal (w : Transitions) (rows : List Row) : Bool := w.legalFrom w.start rows

end LeanReward
