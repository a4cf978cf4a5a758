import LeanReward.Information
import LeanReward.Proofs.Graph

/-! The information checker holds iff every required atom is visible. -/

namespace LeanReward

/-- `subject` carries `atom` on entry to the node, whatever way led there. -/
def Workflow.Carried (w : Workflow) (node : Node) (subject atom : Name) : Prop :=
  ((subject, atom) ∈ w.givenInfo ∨ ∃ other ∈ w.nodes, (subject, atom) ∈ other.variableInfo) ∧
    ∀ start ∈ w.lacking subject atom, ∀ left, Walk w.arcs start node.id left →
      ∃ id ∈ left, ∃ other ∈ w.nodes, other.id = id ∧ (subject, atom) ∈ other.variableInfo

/-- The chain of steps from the entry to the node leaves `atom` in the context, whatever way led there. -/
def Workflow.InContext (w : Workflow) (node : Node) (atom : Name) : Prop :=
  (∃ other ∈ w.nodes, atom ∈ other.contextInfo) ∧
    ∀ left, Walk w.arcs w.entry node.id left → ∃ id ∈ left, ∃ other ∈ w.nodes, other.id = id ∧ atom ∈ other.contextInfo

def Workflow.Visible (w : Workflow) (node : Node) (atom : Name) : Prop :=
  (∃ subject ∈ node.reads, w.Carried node subject atom) ∨ w.InContext node atom

theorem having_iff (w : Workflow) (p : Node → Bool) (id : NodeId) :
    w.having p id = true ↔ ∃ node ∈ w.nodes, node.id = id ∧ p node = true := by
  simp [Workflow.having, List.any_eq_true]

theorem viaVariable_iff (w : Workflow) (node : Node) (atom : Name) :
    w.viaVariable node atom = true ↔ ∃ subject ∈ node.reads, w.Carried node subject atom := by
  simp only [Workflow.viaVariable, Workflow.Carried, List.any_eq_true, Bool.and_eq_true, Bool.or_eq_true,
    everyWalkMeets_iff, having_iff, Node.carries, decide_eq_true_eq]

theorem viaContext_iff (w : Workflow) (node : Node) (atom : Name) :
    w.viaContext node atom = true ↔ w.InContext node atom := by
  simp only [Workflow.viaContext, Workflow.InContext, List.any_eq_true, Bool.and_eq_true, everyWalkMeets_iff, having_iff,
    decide_eq_true_eq, List.mem_singleton, forall_eq]

/-- The information checker holds iff every atom that some node requires is visible there. -/
theorem informationClosed_iff (w : Workflow) :
    w.informationClosed = true ↔ ∀ node ∈ w.nodes, ∀ atom ∈ node.infoRequires, w.Visible node atom := by
  simp only [Workflow.informationClosed, Workflow.closures, List.all_eq_true, List.mem_map, forall_exists_index, and_imp,
    forall_apply_eq_imp_iff₂, Workflow.closureOf, List.isEmpty_iff, List.filter_eq_nil_iff, Bool.not_eq_true',
    Bool.not_eq_false, Bool.or_eq_true, viaVariable_iff, viaContext_iff, Workflow.Visible]

end LeanReward
