import LeanReward.VariableChain
import LeanReward.Proofs.Predicate

/-!
The Hoare checker is sound: when it says `holds`, then in every execution whose nodes meet their postconditions (and leave
facts about variables that they do not write alone) each node is entered with its preconditions true, and the facts
reported for an exit are true after it. Executions follow any arcs, loop-backs any number of times.
-/

namespace LeanReward

/-- Worlds, what the keys mean in each, and which world a node may lead to. -/
structure Execution (World : Type) where
  meaning : World → Interpretation
  runs : Node → World → World → Prop

def Execution.True {World : Type} (e : Execution World) (world : World) (facts : List Fact) : Prop :=
  ∀ fact ∈ facts, fact.Holds (e.meaning world)

/-- A node entered with its preconditions leaves its postconditions, and it touches only what it writes. -/
structure Execution.Meets {World : Type} (e : Execution World) (node : Node) : Prop where
  posts : ∀ before after, e.runs node before after → e.True before node.pre → e.True after node.post
  frame : ∀ before after, e.runs node before after → ∀ fact : Fact, fact.subject ∉ node.writes →
    fact.Holds (e.meaning before) → fact.Holds (e.meaning after)

/-- The node that is entered, and the world in which it is. -/
inductive Enters {World : Type} (e : Execution World) (w : Workflow) (start : World) : NodeId → World → Prop
  | entry : Enters e w start w.entry start
  | arc {source target : NodeId} {node : Node} {before after : World} : Enters e w start source before →
      w.node? source = some node → e.runs node before after → (source, target) ∈ w.arcs →
      Enters e w start target after

theorem entailsAll_sound {World : Type} (e : Execution World) {registry : Registry} {world : World}
    (respects : Respects registry (e.meaning world)) {facts goals : List Fact} (holds : e.True world facts)
    (h : entailsAll registry facts goals = true) : e.True world goals := fun goal member =>
  entailsFact_sound respects holds (List.all_eq_true.mp h goal member)

theorem after_sound {World : Type} (e : Execution World) {node : Node} (meets : e.Meets node) {before after : World}
    (runs : e.runs node before after) {facts : List Fact} (holds : e.True before facts) (pre : e.True before node.pre) :
    e.True after (node.after facts) := by
  intro fact member
  simp only [Node.after, List.mem_append, List.mem_filter, Bool.not_eq_true', decide_eq_false_iff_not] at member
  rcases member with post | ⟨kept, untouched⟩
  · exact meets.posts before after runs pre fact post
  · exact meets.frame before after runs fact untouched (holds fact kept)

theorem firstMissing_none {w : Workflow} {table : Available} {order : List NodeId}
    (h : w.firstMissing table order = none) {id : NodeId} (member : id ∈ order) {node : Node}
    (found : w.node? id = some node) : entailsAll w.registry (table.at id) node.needs = true := by
  induction order with
  | nil => cases member
  | cons first rest ih =>
    unfold Workflow.firstMissing at h
    cases List.mem_cons.mp member with
    | inl here =>
      subst here
      simp only [found] at h
      split at h
      · cases h
      · rename_i none
        have all := List.find?_eq_none.mp none
        exact List.all_eq_true.mpr fun fact needed => by simpa using all fact needed
    | inr there =>
      split at h
      · exact ih h there
      · split at h
        · cases h
        · exact ih h there

theorem node?_mem {w : Workflow} {id : NodeId} {node : Node} (found : w.node? id = some node) :
    node ∈ w.nodes ∧ node.id = id := by
  have same := List.find?_some found
  exact ⟨List.mem_of_find?_eq_some found, of_decide_eq_true same⟩

section Soundness

variable {World : Type} (e : Execution World) {w : Workflow} {order : List NodeId} {exits : List (NodeId × List Fact)}
  (checked : w.chain order = .holds exits) (respects : ∀ world, Respects w.registry (e.meaning world))
  (meets : ∀ node ∈ w.nodes, e.Meets node) {start : World} (given : e.True start w.given)
include checked respects meets given

/-- The Hoare checker is sound: every node is entered with its preconditions (and invariants) true. -/
theorem chain_sound {id : NodeId} {world : World} (enters : Enters e w start id world) {node : Node}
    (found : w.node? id = some node) :
    e.True world (w.available order |>.at id) ∧ e.True world node.pre ∧ e.True world node.invariant := by
  unfold Workflow.chain at checked
  simp only at checked
  split at checked
  case isFalse => cases checked
  rename_i sound
  simp only [Bool.and_eq_true, Workflow.isOrder, Workflow.isInductive, List.all_eq_true, decide_eq_true_eq] at sound
  have ⟨⟨_, listed⟩, initial, arcs⟩ := sound
  split at checked
  · cases checked
  rename_i complete
  have needs : ∀ {id : NodeId} {world : World} {node : Node}, w.node? id = some node →
      e.True world ((w.available order).at id) → e.True world node.pre ∧ e.True world node.invariant := by
    intro id world node found holds
    have member : id ∈ order := (node?_mem found).2 ▸ listed node (node?_mem found).1
    have all := entailsAll_sound e (respects world) holds (firstMissing_none complete member found)
    exact ⟨fun fact h => all fact (List.mem_append.mpr (.inl h)), fun fact h => all fact (List.mem_append.mpr (.inr h))⟩
  have holds : e.True world ((w.available order).at id) := by
    clear found
    induction enters with
    | entry => exact entailsAll_sound e (respects start) given initial
    | @arc source target node' before after _ found' runs arc ih =>
      have out := after_sound e (meets node' (node?_mem found').1) runs ih (needs found' ih).1
      have := arcs (source, target) arc
      simp only [Workflow.afterNode, found'] at this
      exact entailsAll_sound e (respects after) out this
  exact ⟨holds, needs found holds⟩

/-- The facts that the checker reports for an exit are true after every run of it. -/
theorem chain_exit_sound {id : NodeId} {before after : World} {node : Node} {facts : List Fact}
    (enters : Enters e w start id before) (found : w.node? id = some node) (runs : e.runs node before after)
    (reported : (id, facts) ∈ exits) : e.True after facts := by
  have ⟨holds, pre, _⟩ := chain_sound e checked respects meets given enters found
  have out := after_sound e (meets node (node?_mem found).1) runs holds pre
  unfold Workflow.chain at checked
  simp only at checked
  split at checked
  case isFalse => cases checked
  split at checked
  · cases checked
  · injection checked with same
    rw [← same] at reported
    have ⟨exit, _, equal⟩ := List.mem_map.mp reported
    simp only [Prod.mk.injEq] at equal
    have ⟨sameId, sameFacts⟩ := equal
    rw [← sameFacts, sameId]
    simpa only [Workflow.afterNode, found] using out

end Soundness

end LeanReward
