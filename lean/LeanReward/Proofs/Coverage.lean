import LeanReward.Coverage
import LeanReward.Proofs.Graph

/-! What a coverage verdict promises about every way through the workflow. -/

namespace LeanReward

/-- A way from `source` to `exit`, as the list of all its nodes. -/
def Workflow.Way (w : Workflow) (source exit : NodeId) (nodes : List NodeId) : Prop :=
  ∃ left, nodes = left ++ [exit] ∧ Walk w.arcs source exit left

theorem everyWayHas_iff (w : Workflow) (source : NodeId) (ids : List NodeId) :
    w.everyWayHas source ids = true ↔
      ∀ exit ∈ w.exits, ∀ nodes, w.Way source exit nodes → ∃ id ∈ nodes, id ∈ ids := by
  simp only [Workflow.everyWayHas, List.all_eq_true, Bool.or_eq_true, decide_eq_true_eq, everyWalkMeets_iff,
    List.mem_singleton, forall_eq]
  constructor
  · rintro h exit isExit nodes ⟨left, rfl, walk⟩
    rcases h exit isExit with last | meets
    · exact ⟨exit, by simp, last⟩
    · have ⟨id, member, here⟩ := meets left walk
      exact ⟨id, by simp [member], here⟩
  · intro h exit isExit
    by_cases last : exit ∈ ids
    · exact .inl last
    · refine .inr fun left walk => ?_
      have ⟨id, member, here⟩ := h exit isExit (left ++ [exit]) ⟨left, rfl, walk⟩
      simp only [List.mem_append, List.mem_singleton] at member
      rcases member with inside | rfl
      · exact ⟨id, inside, here⟩
      · exact absurd here last

/-- Path coverage holds iff every way from the entry to an exit has a contributor. -/
theorem pathCoverage_iff (w : Workflow) (goal : Name) :
    w.pathCoverage goal = true ↔
      ∀ exit ∈ w.exits, ∀ nodes, w.Way w.entry exit nodes → ∃ id ∈ nodes, id ∈ w.contributors goal :=
  everyWayHas_iff ..

/-- Verification coverage holds iff after each contributor every way to an exit has a verifier. -/
theorem verificationCoverage_iff (w : Workflow) (goal : Name) :
    w.verificationCoverage goal = true ↔
      ∀ source ∈ w.contributors goal, ∀ exit ∈ w.exits, ∀ nodes, w.Way source exit nodes →
        ∃ id ∈ nodes, id ∈ w.verifiers goal := by
  simp only [Workflow.verificationCoverage, List.all_eq_true, everyWayHas_iff]

/-- A sub-goal that is fully or partly covered has a contributor on every way from the entry to an exit. -/
theorem coverOf_contributor (w : Workflow) (chain : ChainVerdict) (goal : SubGoal)
    (h : w.coverOf chain goal = .full ∨ w.coverOf chain goal = .partly) :
    ∀ exit ∈ w.exits, ∀ nodes, w.Way w.entry exit nodes → ∃ id ∈ nodes, id ∈ w.contributors goal.name := by
  refine (pathCoverage_iff w goal.name).mp ?_
  unfold Workflow.coverOf at h
  split at h
  · simp at h
  · split at h
    · simp at h
    · rename_i covered
      simpa using covered

/-- A missing or unregistered requirement is never full coverage. -/
theorem coverOf_full (w : Workflow) (chain : ChainVerdict) (goal : SubGoal) (h : w.coverOf chain goal = .full) :
    w.registry.knows goal.required = true ∧ w.establishes goal chain = true := by
  unfold Workflow.coverOf at h
  split at h
  · cases h
  · split at h
    · cases h
    · split at h
      · rename_i all
        simp only [Bool.and_eq_true] at all
        refine ⟨?_, all.2⟩
        have established := all.2
        unfold Workflow.establishes at established
        split at established
        · simp only [Bool.and_eq_true] at established
          exact established.1.1
        · cases established
      · cases h

end LeanReward
