import LeanReward.Predicate
import LeanReward.Proofs.Graph

/-! Entailment is sound under every interpretation that respects the registered implications; the built-in checkers decide
their propositions. -/

namespace LeanReward

/-- What the keys mean, for each variable. -/
abbrev Interpretation := Name → Key → Prop

def Predicate.Holds (meaning : Interpretation) (subject : Name) : Predicate → Prop
  | .atom key => meaning subject key
  | .both left right => left.Holds meaning subject ∧ right.Holds meaning subject
  | .either left right => left.Holds meaning subject ∨ right.Holds meaning subject

def Fact.Holds (meaning : Interpretation) (fact : Fact) : Prop := fact.predicate.Holds meaning fact.subject

/-- The built-in implications and those of the registry are true. -/
structure Respects (registry : Registry) (meaning : Interpretation) : Prop where
  builtin : ∀ subject (key goal : Key), goal ∈ key.implied → meaning subject key → meaning subject goal
  registered : ∀ entry ∈ registry, ∀ goal ∈ entry.implies, ∀ subject,
    meaning subject entry.key → meaning subject goal

theorem implications_sound {registry : Registry} {meaning : Interpretation} (respects : Respects registry meaning)
    {key source goal : Key} (arc : (source, goal) ∈ registry.implications key) (subject : Name)
    (h : meaning subject source) : meaning subject goal := by
  simp only [Registry.implications, List.mem_append, List.mem_flatMap, List.mem_map, Prod.mk.injEq] at arc
  rcases arc with ⟨entry, member, target, implied, rfl, rfl⟩ | ⟨k, _, target, implied, rfl, rfl⟩
  · exact respects.registered entry member _ implied subject h
  · exact respects.builtin subject _ _ implied h

theorem walk_sound {arcs : List (Key × Key)} {p : Key → Prop} (arcs_sound : ∀ {a b}, (a, b) ∈ arcs → p a → p b)
    {a b : Key} {left : List Key} (walk : Walk arcs a b left) (start : p a) : p b := by
  induction walk with
  | stay => exact start
  | step arc _ ih => exact ih (arcs_sound arc start)

theorem implies_sound {registry : Registry} {meaning : Interpretation} (respects : Respects registry meaning)
    {key goal : Key} (h : registry.implies key goal = true) (subject : Name) (holds : meaning subject key) :
    meaning subject goal := by
  simp only [Registry.implies, Bool.or_eq_true, decide_eq_true_eq] at h
  rcases h with rfl | h
  · exact holds
  · have ⟨source, member, left, walk⟩ := (reaches_iff ..).mp h
    have : source = key := by simpa using member
    subst this
    exact walk_sound (fun arc => implications_sound respects arc subject) walk holds

theorem gives_sound {registry : Registry} {meaning : Interpretation} (respects : Respects registry meaning) {goal : Key}
    {subject : Name} (known : Predicate) (h : gives registry goal known = true) (holds : known.Holds meaning subject) :
    meaning subject goal := by
  induction known with
  | atom key => exact implies_sound respects h subject holds
  | both left right ihl ihr =>
    simp only [gives, Bool.or_eq_true] at h
    rcases h with h | h
    · exact ihl h holds.1
    · exact ihr h holds.2
  | either left right ihl ihr =>
    simp only [gives, Bool.and_eq_true] at h
    rcases holds with holds | holds
    · exact ihl h.1 holds
    · exact ihr h.2 holds

/-- Entailment is sound. -/
theorem entails_sound {registry : Registry} {meaning : Interpretation} (respects : Respects registry meaning)
    {facts : List Fact} (holds : ∀ fact ∈ facts, fact.Holds meaning) {subject : Name} (goal : Predicate)
    (h : entails registry facts subject goal = true) : goal.Holds meaning subject := by
  induction goal with
  | atom key =>
    simp only [entails, List.any_eq_true, Bool.and_eq_true, decide_eq_true_eq] at h
    have ⟨fact, member, same, given⟩ := h
    have := holds fact member
    rw [Fact.Holds, same] at this
    exact gives_sound respects _ given this
  | both left right ihl ihr =>
    simp only [entails, Bool.and_eq_true] at h
    exact ⟨ihl h.1, ihr h.2⟩
  | either left right ihl ihr =>
    simp only [entails, Bool.or_eq_true, List.any_eq_true, decide_eq_true_eq] at h
    rcases h with (h | h) | ⟨fact, member, same⟩
    · exact .inl (ihl h)
    · exact .inr (ihr h)
    · have := holds fact member
      rw [same] at this
      exact this

theorem entailsFact_sound {registry : Registry} {meaning : Interpretation} (respects : Respects registry meaning)
    {facts : List Fact} (holds : ∀ fact ∈ facts, fact.Holds meaning) {goal : Fact}
    (h : entailsFact registry facts goal = true) : goal.Holds meaning :=
  entails_sound respects holds goal.predicate h

/-- The proposition behind each built-in property. -/
def Builtin.Meaning : Builtin → Value → Prop
  | nameExists, value => value ≠ .missing
  | nonEmptyString, value => ∃ points, value = .text points ∧ points ≠ []
  | nonEmptyList, value => ∃ count, value = .items count ∧ 0 < count
  | isInt, value => ∃ n, value = .integer n
  | containsSubstring needle, value => ∃ before after, value = .text (before ++ needle ++ after)

-- Lean derives the equations of these definitions here; single-threaded builds charge that to the first proof that asks.
set_option maxHeartbeats 0 in
attribute [local simp] Builtin.check Builtin.Meaning Builtin.implied Key.implied

theorem hasInfix_iff (needle points : List Nat) :
    hasInfix needle points = true ↔ ∃ before after, points = before ++ needle ++ after := by
  induction points with
  | nil => simp [hasInfix, List.isEmpty_iff]
  | cons point rest ih =>
    simp only [hasInfix, Bool.or_eq_true, ih, List.isPrefixOf_iff_prefix]
    constructor
    · rintro (⟨after, h⟩ | ⟨before, after, h⟩)
      · exact ⟨[], after, by simp [h]⟩
      · exact ⟨point :: before, after, by simp [h]⟩
    · rintro ⟨before, after, h⟩
      cases before with
      | nil => exact .inl ⟨after, by simpa using h.symm⟩
      | cons first before =>
        simp only [List.cons_append, List.cons.injEq] at h
        exact .inr ⟨before, after, h.2⟩

/-- Each built-in checker decides its proposition. -/
theorem Builtin.check_iff (property : Builtin) (value : Value) : property.check value = true ↔ property.Meaning value := by
  cases property <;> cases value <;> simp [Builtin.check, Builtin.Meaning, hasInfix_iff]

def Situation.meaning (situation : Situation) : Interpretation := fun subject key =>
  situation.check subject (.atom key) = true

theorem Situation.check_iff (situation : Situation) (subject : Name) (predicate : Predicate) :
    situation.check subject predicate = true ↔ predicate.Holds situation.meaning subject := by
  induction predicate with
  | atom key => exact Iff.rfl
  | both left right ihl ihr => simp [Situation.check, Predicate.Holds, ihl, ihr]
  | either left right ihl ihr => simp [Situation.check, Predicate.Holds, ihl, ihr]

/-- The built-in implications hold whatever the variables contain and whatever tools and judges answer. -/
theorem Situation.respects_builtin (situation : Situation) (subject : Name) (key goal : Key) (h : goal ∈ key.implied)
    (holds : situation.meaning subject key) : situation.meaning subject goal := by
  cases key with
  | tool => simp [Key.implied] at h
  | judged => simp [Key.implied] at h
  | builtin property =>
    simp only [Key.implied, List.mem_map] at h
    have ⟨implied, member, same⟩ := h
    subst same
    simp only [Situation.meaning, Situation.check] at holds ⊢
    generalize situation.value subject = value at holds ⊢
    rw [Builtin.check_iff] at holds ⊢
    cases property with
    | nameExists => simp [Builtin.implied] at member
    | nonEmptyString =>
      have ⟨points, same, _⟩ := holds
      simp [Builtin.implied] at member
      simp [member, Builtin.Meaning, same]
    | nonEmptyList =>
      have ⟨count, same, _⟩ := holds
      simp [Builtin.implied] at member
      simp [member, Builtin.Meaning, same]
    | isInt =>
      have ⟨n, same⟩ := holds
      simp [Builtin.implied] at member
      simp [member, Builtin.Meaning, same]
    | containsSubstring needle =>
      have ⟨before, after, same⟩ := holds
      cases needle with
      | nil =>
        simp [Builtin.implied] at member
        simp [member, Builtin.Meaning, same]
      | cons point rest =>
        simp [Builtin.implied] at member
        rcases member with rfl | rfl <;> simp [Builtin.Meaning, same]

end LeanReward
