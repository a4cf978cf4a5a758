import LeanReward.Penalties

/-! Each rule's checker holds iff its specification does. -/

namespace LeanReward

/-- A shell command with the same normal form. -/
def SameCommand (run : Run) (action : Action) : Prop := run.action.isShell = true ∧ run.action.text = action.text

theorem repeats_iff (run : Run) (action : Action) : run.repeats action = true ↔ SameCommand run action := by
  simp [Run.repeats, SameCommand, Nat.beq_eq]

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
  have each (link : Link) : link.isNoop = true ↔ link = .noop := by cases link <;> simp [Link.isNoop]
  simp [isNoOperation, and_assoc, each]

/-- Rule 3 holds iff the chain prints constants and otherwise does nothing. -/
theorem isConstantOutput_iff (action : Action) :
    isConstantOutput action = true ↔
      action.isShell = true ∧ .constantPrint ∈ action.chain ∧
        ∀ link ∈ action.chain, link = .constantPrint ∨ link = .noop := by
  have prints (link : Link) : link.isPrint = true ↔ link = .constantPrint := by cases link <;> simp [Link.isPrint]
  have inert (link : Link) : link.isOther = false ↔ link = .constantPrint ∨ link = .noop := by
    cases link <;> simp [Link.isOther]
  simp only [isConstantOutput, Bool.and_eq_true, Bool.not_eq_true', List.any_eq_true, List.any_eq_false, Bool.not_eq_true,
    prints, inert, and_assoc]
  refine and_congr_right fun _ => and_congr_left fun _ => ?_
  exact ⟨fun ⟨_, member, same⟩ => same ▸ member, fun member => ⟨_, member, rfl⟩⟩

/-- Rule 4 holds iff the script parses into statements that only print literals. -/
theorem isPurePrint_iff (action : Action) :
    isPurePrint action = true ↔ action.script ≠ [] ∧ ∀ statement ∈ action.script, statement = .literalPrint := by
  have each (statement : Statement) : statement.isPrint = true ↔ statement = .literalPrint := by
    cases statement <;> simp [Statement.isPrint]
  simp [isPurePrint, each]

theorem wholeStep_iff (rule : Action → Bool) (step : Step) :
    wholeStep rule step = true ↔ step.actions ≠ [] ∧ ∀ action ∈ step.actions, rule action = true := by
  simp [wholeStep]

/-- Rule 5 holds iff a step that is not the last does nothing, through no fault of the harness. -/
theorem isIdle_iff (step : Step) :
    isIdle step = true ↔ step.actions = [] ∧ step.isFinal = false ∧ step.excused = false := by
  simp [isIdle, and_assoc]

theorem sameVisit_iff (a b : Visit) : sameVisit a b = true ↔ a = b := by
  simp [sameVisit, Nat.beq_eq, Prod.ext_iff]

theorem ranSince_iff (visit : Visit) (action : Action) (history : List Run) :
    ranSince visit action history = true ↔
      ∃ later found earlier, history = later ++ found :: earlier ∧
        (∀ run ∈ later, run.action.modifies = false ∧ run.visit = visit) ∧
        (found.action.modifies = false ∧ found.visit = visit) ∧ SameCommand found action := by
  induction history with
  | nil => simp [ranSince]
  | cons run rest ih =>
    simp only [ranSince, Bool.and_eq_true, Bool.or_eq_true, Bool.not_eq_true', sameVisit_iff, repeats_iff, ih]
    constructor
    · rintro ⟨quiet, hit | ⟨later, found, earlier, same, all, stays, hit⟩⟩
      · exact ⟨[], run, rest, rfl, nofun, quiet, hit⟩
      · refine ⟨run :: later, found, earlier, by simp [same], fun y member => ?_, stays, hit⟩
        cases List.mem_cons.mp member with
        | inl here => rw [here]; exact quiet
        | inr inside => exact all y inside
    · rintro ⟨later, found, earlier, same, all, stays, hit⟩
      cases later with
      | nil =>
        injection same with same _
        subst same
        exact ⟨stays, .inl hit⟩
      | cons first others =>
        injection same with first_same same
        subst first_same
        exact ⟨all run (List.mem_cons_self ..), .inr
          ⟨others, found, earlier, same, fun y member => all y (List.mem_cons_of_mem _ member), stays, hit⟩⟩

/-- Rule 6 holds iff the same shell command ran earlier in the same stage visit and no action from that run on modifies. -/
theorem noProgress_iff (history : List Run) (visit : Visit) (action : Action) :
    noProgress history visit action = true ↔
      action.isShell = true ∧ ∃ later found earlier, history = later ++ found :: earlier ∧
        (∀ run ∈ later, run.action.modifies = false ∧ run.visit = visit) ∧
        (found.action.modifies = false ∧ found.visit = visit) ∧ SameCommand found action := by
  simp only [noProgress, Bool.and_eq_true, ranSince_iff]

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
  have one (fires : Bool) (number : Nat) (rest : List Nat) :
      rule ∈ whenever fires number rest ↔ (rule = number ∧ fires = true) ∨ rule ∈ rest := by
    cases fires <;> simp [whenever]
  simp only [rulesOf, one, List.not_mem_nil, or_false]

theorem length_penaltiesFrom (history : List Run) (steps : List Step) :
    (penaltiesFrom history steps).length = steps.length := by
  induction steps generalizing history with
  | nil => rfl
  | cons step rest ih => simp [penaltiesFrom, ih]

/-- Every step gets exactly one answer. -/
theorem length_penalties (steps : List Step) : (penalties steps).length = steps.length := length_penaltiesFrom ..

end LeanReward
