import LeanReward.Penalties

/-! Each rule's checker holds iff its specification does. -/

namespace LeanReward

/-- A shell command with the same normal form. -/
def SameCommand (run : Run) (action : Action) : Prop := run.action.isShell = true ∧ run.action.text = action.text

theorem repeats_iff (run : Run) (action : Action) : run.repeats action = true ↔ SameCommand run action := by
  simp [Run.repeats, SameCommand]

/-- Rule 1 holds iff the two latest actions were runs of the same shell command. -/
theorem consecutiveRepetition_iff (history : List Run) (action : Action) :
    consecutiveRepetition history action = true ↔
      action.isShell = true ∧ ∃ second first rest, history = second :: first :: rest ∧
        SameCommand second action ∧ SameCommand first action := by
  unfold consecutiveRepetition
  rw [Bool.and_eq_true]
  refine and_congr_right fun _ => ?_
  split
  · rename_i second first rest
    simp only [Bool.and_eq_true, repeats_iff]
    constructor
    · intro h
      exact ⟨second, first, rest, rfl, h⟩
    · rintro ⟨_, _, _, same, h⟩
      injection same with same₁ same
      injection same with same₂ _
      subst same₁ same₂
      exact h
  · rename_i short
    simp only [Bool.false_eq_true, false_iff]
    rintro ⟨second, first, rest, same, _⟩
    exact short second first rest same

/-- Rule 2 holds iff the shell command parses into a chain of no-operations alone. -/
theorem isNoOperation_iff (action : Action) :
    isNoOperation action = true ↔ action.isShell = true ∧ action.chain ≠ [] ∧ ∀ link ∈ action.chain, link = .noop := by
  simp [isNoOperation, and_assoc]

/-- Rule 3 holds iff the chain prints constants and otherwise does nothing. -/
theorem isConstantOutput_iff (action : Action) :
    isConstantOutput action = true ↔
      action.isShell = true ∧ .constantPrint ∈ action.chain ∧
        ∀ link ∈ action.chain, link = .constantPrint ∨ link = .noop := by
  have each (link : Link) : (!decide (link = .other)) = true ↔ link = .constantPrint ∨ link = .noop := by
    cases link <;> decide
  simp only [isConstantOutput, Bool.and_eq_true, List.any_eq_true, List.all_eq_true, each, decide_eq_true_eq, and_assoc]
  refine and_congr_right fun _ => and_congr_left fun _ => ?_
  exact ⟨fun ⟨_, member, same⟩ => same ▸ member, fun member => ⟨_, member, rfl⟩⟩

/-- Rule 4 holds iff the script parses into statements that only print literals. -/
theorem isPurePrint_iff (action : Action) :
    isPurePrint action = true ↔ action.script ≠ [] ∧ ∀ statement ∈ action.script, statement = .literalPrint := by
  simp [isPurePrint]

theorem wholeStep_iff (rule : Action → Bool) (step : Step) :
    wholeStep rule step = true ↔ step.actions ≠ [] ∧ ∀ action ∈ step.actions, rule action = true := by
  simp [wholeStep]

/-- Rule 5 holds iff a step that is not the last does nothing, through no fault of the harness. -/
theorem isIdle_iff (step : Step) :
    isIdle step = true ↔ step.actions = [] ∧ step.isFinal = false ∧ step.excused = false := by
  simp [isIdle, and_assoc]

theorem takeWhile_any_iff {α : Type} (still p : α → Bool) (l : List α) :
    (l.takeWhile still).any p = true ↔
      ∃ later found earlier, l = later ++ found :: earlier ∧ (∀ x ∈ later, still x = true) ∧ still found = true ∧
        p found = true := by
  induction l with
  | nil => simp
  | cons x rest ih =>
    cases here : still x with
    | false =>
      simp only [List.takeWhile_cons, here, Bool.false_eq_true, ↓reduceIte, List.any_nil, false_iff]
      rintro ⟨later, found, earlier, same, all, stays, _⟩
      cases later with
      | nil =>
        injection same with same _
        subst same
        simp [here] at stays
      | cons first others =>
        injection same with same _
        subst same
        simp [here] at all
    | true =>
      simp only [List.takeWhile_cons, here, ↓reduceIte, List.any_cons, Bool.or_eq_true, ih]
      constructor
      · rintro (hit | ⟨later, found, earlier, same, all, stays, hit⟩)
        · exact ⟨[], x, rest, rfl, nofun, here, hit⟩
        · refine ⟨x :: later, found, earlier, by simp [same], fun y member => ?_, stays, hit⟩
          cases List.mem_cons.mp member with
          | inl same => rw [same]; exact here
          | inr inside => exact all y inside
      · rintro ⟨later, found, earlier, same, all, stays, hit⟩
        cases later with
        | nil =>
          injection same with same _
          subst same
          exact .inl hit
        | cons first others =>
          injection same with _ same
          exact .inr ⟨others, found, earlier, same, fun y member => all y (List.mem_cons_of_mem _ member), stays, hit⟩

/-- Rule 6 holds iff the same shell command ran earlier in the same stage visit and no action from that run on modifies. -/
theorem noProgress_iff (history : List Run) (visit : Visit) (action : Action) :
    noProgress history visit action = true ↔
      action.isShell = true ∧ ∃ later found earlier, history = later ++ found :: earlier ∧
        (∀ run ∈ later, run.action.modifies = false ∧ run.visit = visit) ∧
        (found.action.modifies = false ∧ found.visit = visit) ∧ SameCommand found action := by
  simp only [noProgress, Bool.and_eq_true, takeWhile_any_iff, repeats_iff, Bool.not_eq_true', decide_eq_true_eq]

/-- A rule about the history fires on a step iff it holds of one of its actions after those before it. -/
theorem anyAction_iff (rule : List Run → Action → Bool) (visit : Visit) (history : List Run) (actions : List Action) :
    anyAction rule visit history actions = true ↔
      ∃ before action after, actions = before ++ action :: after ∧
        rule ((before.map fun a => ⟨a, visit⟩).reverse ++ history) action = true := by
  induction actions generalizing history with
  | nil => simp [anyAction]
  | cons first rest ih =>
    simp only [anyAction, Bool.or_eq_true, ih]
    constructor
    · rintro (here | ⟨before, action, after, same, holds⟩)
      · exact ⟨[], first, rest, rfl, here⟩
      · exact ⟨first :: before, action, after, by simp [same], by simpa using holds⟩
    · rintro ⟨before, action, after, same, holds⟩
      cases before with
      | nil =>
        injection same with same _
        subst same
        exact .inl holds
      | cons b before =>
        injection same with same₁ same₂
        subst same₁
        exact .inr ⟨before, action, after, same₂, by simpa using holds⟩

/-- The rule numbers mean what they say. -/
theorem mem_rulesOf (history : List Run) (step : Step) (rule : Nat) :
    rule ∈ rulesOf history step ↔
      (rule = 1 ∧ anyAction consecutiveRepetition step.visit history step.actions = true) ∨
      (rule = 2 ∧ wholeStep isNoOperation step = true) ∨ (rule = 3 ∧ wholeStep isConstantOutput step = true) ∨
      (rule = 4 ∧ wholeStep isPurePrint step = true) ∨ (rule = 5 ∧ isIdle step = true) ∨
      (rule = 6 ∧ anyAction (fun before => noProgress before step.visit) step.visit history step.actions = true) := by
  have one (number : Nat) (fires : Bool) :
      rule ∈ (if fires = true then [number] else []) ↔ rule = number ∧ fires = true := by
    cases fires <;> simp
  simp only [rulesOf, List.mem_append, one, or_assoc]

theorem length_penaltiesFrom (history : List Run) (steps : List Step) :
    (penaltiesFrom history steps).length = steps.length := by
  induction steps generalizing history with
  | nil => rfl
  | cons step rest ih => simp [penaltiesFrom, ih]

/-- Every step gets exactly one answer. -/
theorem length_penalties (steps : List Step) : (penalties steps).length = steps.length := length_penaltiesFrom ..

end LeanReward
