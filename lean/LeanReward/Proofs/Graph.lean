import LeanReward.Graph

/-! Reachability is sound and complete, the path question is exact, and a topological order excludes cycles. -/

namespace LeanReward

variable {α : Type} [DecidableEq α]

omit [DecidableEq α] in
theorem Walk.append {arcs : List (α × α)} {a b c : α} {left : List α} (walk : Walk arcs a b left) (arc : (b, c) ∈ arcs) :
    Walk arcs a c (left ++ [b]) := by
  induction walk with
  | stay a => exact .step arc (.stay c)
  | step first _ ih => exact .step first (ih arc)

theorem leaving_some {arcs : List (α × α)} {seen : List α} {arc : α × α} (h : leaving arcs seen = some arc) :
    arc ∈ arcs ∧ arc.1 ∈ seen ∧ arc.2 ∉ seen := by
  have found := List.find?_some h
  simp at found
  exact ⟨List.mem_of_find?_eq_some h, found⟩

theorem leaving_none {arcs : List (α × α)} {seen : List α} (h : leaving arcs seen = none) {a b : α} (arc : (a, b) ∈ arcs)
    (source : a ∈ seen) : b ∈ seen := by
  have closed := List.find?_eq_none.mp h (a, b) arc
  simp [source] at closed
  exact closed

theorem subset_saturate (arcs : List (α × α)) (fuel : Nat) (seen : List α) {a : α} (h : a ∈ seen) :
    a ∈ saturate arcs fuel seen := by
  induction fuel generalizing seen with
  | zero => exact h
  | succ fuel ih =>
    unfold saturate
    split
    · exact h
    · exact ih _ (List.mem_cons_of_mem _ h)

theorem saturate_sound (arcs : List (α × α)) (fuel : Nat) (seen : List α) {b : α} (h : b ∈ saturate arcs fuel seen) :
    ∃ a ∈ seen, ∃ left, Walk arcs a b left := by
  induction fuel generalizing seen with
  | zero => exact ⟨b, h, [], .stay b⟩
  | succ fuel ih =>
    unfold saturate at h
    split at h
    · exact ⟨b, h, [], .stay b⟩
    · rename_i arc found
      have ⟨member, source, _⟩ := leaving_some found
      have ⟨a, ha, left, walk⟩ := ih _ h
      cases List.mem_cons.mp ha with
      | inl new => subst new; exact ⟨arc.1, source, _, .step member walk⟩
      | inr old => exact ⟨a, old, left, walk⟩

/-- The arcs that can still discover something. -/
private def pending (arcs : List (α × α)) (seen : List α) : Nat := arcs.countP fun arc => !decide (arc.2 ∈ seen)

omit [DecidableEq α] in
private theorem countP_lt {p q : α → Bool} {l : List α} (weaker : ∀ x, q x = true → p x = true) {a : α} (member : a ∈ l)
    (before : p a = true) (after : q a = false) : l.countP q < l.countP p := by
  induction l with
  | nil => cases member
  | cons x rest ih =>
    have le : rest.countP q ≤ rest.countP p := List.countP_mono_left fun y _ => weaker y
    simp only [List.countP_cons]
    cases List.mem_cons.mp member with
    | inl here => subst here; simp [before, after]; omega
    | inr there =>
      have := ih there
      cases hq : q x with
      | false => simp; omega
      | true => simp [weaker x hq]; omega

theorem saturate_closed (arcs : List (α × α)) (fuel : Nat) (seen : List α) (enough : pending arcs seen ≤ fuel) {a b : α}
    (arc : (a, b) ∈ arcs) (source : a ∈ saturate arcs fuel seen) : b ∈ saturate arcs fuel seen := by
  induction fuel generalizing seen with
  | zero =>
    have none := List.countP_eq_zero.mp (Nat.le_zero.mp enough) (a, b) arc
    simpa [saturate] using none
  | succ fuel ih =>
    cases found : leaving arcs seen with
    | none =>
      simp only [saturate, found] at source ⊢
      exact leaving_none found arc source
    | some new =>
      simp only [saturate, found] at source ⊢
      refine ih _ ?_ source
      have ⟨member, _, fresh⟩ := leaving_some found
      have : pending arcs (new.2 :: seen) < pending arcs seen :=
        countP_lt (a := new) (fun x h => by simp_all) member (by simp [fresh]) (by simp)
      omega

/-- Reachability is sound and complete. -/
theorem reaches_iff (arcs : List (α × α)) (sources : List α) (target : α) :
    reaches arcs sources target = true ↔ ∃ a ∈ sources, ∃ left, Walk arcs a target left := by
  constructor
  · intro h
    exact saturate_sound arcs _ _ (of_decide_eq_true h)
  · intro ⟨a, source, left, walk⟩
    refine decide_eq_true ?_
    have start : a ∈ reachable arcs sources := subset_saturate _ _ _ source
    clear source
    induction walk with
    | stay => exact start
    | step arc _ ih => exact ih (saturate_closed arcs _ _ List.countP_le_length arc start)

omit [DecidableEq α] in
theorem walk_filter_iff (arcs : List (α × α)) (stop : α → Bool) (a b : α) (left : List α) :
    Walk (arcs.filter fun arc => !stop arc.1) a b left ↔ Walk arcs a b left ∧ ∀ x ∈ left, stop x = false := by
  constructor
  · intro walk
    induction walk with
    | stay a => exact ⟨.stay a, nofun⟩
    | step arc _ ih =>
      have ⟨member, free⟩ := List.mem_filter.mp arc
      simp at free
      refine ⟨.step member ih.1, fun x hx => ?_⟩
      cases List.mem_cons.mp hx with
      | inl here => rw [here]; exact free
      | inr there => exact ih.2 x there
  · intro ⟨walk, free⟩
    induction walk with
    | stay a => exact .stay a
    | @step a b c rest arc _ ih =>
      refine .step (List.mem_filter.mpr ⟨arc, ?_⟩) (ih fun x hx => free x (List.mem_cons_of_mem _ hx))
      simp [free a (List.mem_cons_self ..)]

/-- The path question is exact: it holds iff every walk really leaves such a node. -/
theorem everyWalkMeets_iff (arcs : List (α × α)) (sources : List α) (target : α) (stop : α → Bool) :
    everyWalkMeets arcs sources target stop = true ↔
      ∀ a ∈ sources, ∀ left, Walk arcs a target left → ∃ x ∈ left, stop x = true := by
  have exact := reaches_iff (arcs.filter fun arc => !stop arc.1) sources target
  constructor
  · intro h a source left walk
    refine Classical.byContradiction fun none => ?_
    have free : ∀ x ∈ left, stop x = false := fun x hx =>
      Bool.eq_false_iff.mpr fun yes => none ⟨x, hx, yes⟩
    have := exact.mpr ⟨a, source, left, (walk_filter_iff ..).mpr ⟨walk, free⟩⟩
    simp [everyWalkMeets, this] at h
  · intro h
    refine Bool.not_eq_true' _ ▸ Bool.eq_false_iff.mpr fun yes => ?_
    have ⟨a, source, left, walk⟩ := exact.mp yes
    have ⟨walk, free⟩ := (walk_filter_iff ..).mp walk
    have ⟨x, hx, stopped⟩ := h a source left walk
    simp [free x hx] at stopped

theorem isTopological_rank {arcs : List (α × α)} {order : List α} (h : isTopological arcs order = true) {a b : α}
    (arc : (a, b) ∈ arcs) : rank order a < rank order b := by
  have := List.all_eq_true.mp h _ arc
  simp at this
  exact this.1

/-- Along every walk the position in a checked order grows with each step. -/
theorem isTopological_walk {arcs : List (α × α)} {order : List α} (h : isTopological arcs order = true) {a b : α}
    {left : List α} (walk : Walk arcs a b left) : rank order a + left.length ≤ rank order b := by
  induction walk with
  | stay => simp
  | step arc _ ih =>
    have := isTopological_rank h arc
    simp only [List.length_cons]
    omega

/-- The topological checker is sound: a graph with a checked order has no cycle. -/
theorem isTopological_acyclic {arcs : List (α × α)} {order : List α} (h : isTopological arcs order = true) {a : α}
    {left : List α} (walk : Walk arcs a a left) : left = [] := by
  have := isTopological_walk h walk
  exact List.eq_nil_of_length_eq_zero (by omega)

theorem rank_lt_mem {order : List α} {a : α} (h : rank order a < order.length) : a ∈ order := by
  induction order with
  | nil => simp [rank] at h
  | cons b rest ih =>
    by_cases same : a = b
    · simp [same]
    · simp [rank, same] at h
      exact List.mem_cons_of_mem _ (ih (by omega))

/-- Every arc of a checked order joins two of its members. -/
theorem isTopological_mem {arcs : List (α × α)} {order : List α} (h : isTopological arcs order = true) {a b : α}
    (arc : (a, b) ∈ arcs) : a ∈ order ∧ b ∈ order := by
  have bounds := List.all_eq_true.mp h _ arc
  simp at bounds
  exact ⟨rank_lt_mem (by omega), rank_lt_mem bounds.2⟩

end LeanReward
