import LeanReward.Proofs.PackedWords

/-! The penalties of a packed claim are those of the claim that it packs. -/

namespace LeanReward.Packed

theorem place_same (a b : Nat) : sameVisit (visitAt a) (visitAt b) = Nat.beq a b := (place_iff a b).symm

/-- Rules 2, 3 and 4 as bits. -/
def kindBits (noop prints pure : Bool) : Nat := noop.toNat + 2 * prints.toNat + 4 * pure.toNat

theorem kindBits_land (a b c d e f : Bool) :
    Nat.land (kindBits a b c) (kindBits d e f) = kindBits (a && d) (b && e) (c && f) := by
  cases a <;> cases b <;> cases c <;> cases d <;> cases e <;> cases f <;> rfl

def kindBitsOf (action : Nat) : Nat :=
  kindBits (LeanReward.isNoOperation (actionOf action)) (LeanReward.isConstantOutput (actionOf action))
    (LeanReward.isPurePrint (actionOf action))

theorem kind_table : ∀ kind < 128, Nat.mod (Nat.shiftRight kinds (Nat.mul 4 kind)) 8 = kindBitsOf kind := by decide +kernel

theorem kindOf_eq (action : Nat) : kindOf action = kindBitsOf action := by
  have below : action % 128 < 128 := Nat.mod_lt _ (by decide)
  have low (position : Nat) (h : position < 7) : hasBit (action % 128) position = hasBit action position := by
    rw [hasBit_eq, hasBit_eq, show 128 = 2 ^ 7 from rfl, Nat.testBit_mod_two_pow]
    simp [h]
  have shell (a : Nat) : isShell (command a) = hasBit a 6 := rfl
  have same : kindBitsOf (action % 128) = kindBitsOf action := by
    unfold kindBitsOf LeanReward.isNoOperation LeanReward.isConstantOutput LeanReward.isPurePrint actionOf
    simp only [shell, low _ (by decide : 1 < 7), low _ (by decide : 2 < 7), low _ (by decide : 3 < 7),
      low _ (by decide : 4 < 7), low _ (by decide : 5 < 7), low _ (by decide : 6 < 7)]
  rw [← same]
  exact kind_table _ below

/-- That what a packed claim remembers tells of a history what the rules ask of it. -/
structure Remembers (history : List Run) (before since latest earlier : Nat) : Prop where
  ran : ∀ place action, isShell (command action) = true →
    ranSince (visitAt place) (actionOf action) history = hasBit (here place before since) (command action)
  third : ∀ action,
    LeanReward.consecutiveRepetition history (actionOf action) = isThird (command action) latest earlier
  latest_run : ∀ action, isShell (command action) = true →
    (match history with | [] => false | run :: _ => run.repeats (actionOf action)) = Nat.beq latest (command action)

theorem zero_not_shell {action : Nat} (shell : isShell (command action) = true) : Nat.beq 0 (command action) = false := by
  cases number : command action with
  | zero => rw [number] at shell; exact absurd shell (by decide)
  | succ n => rfl

theorem remembers_nothing : Remembers [] 0 0 0 0 where
  ran place action _ := by
    unfold here
    rw [choose_eq, ite_self, hasBit_eq]
    simp [ranSince]
  third action := by
    unfold isThird LeanReward.consecutiveRepetition
    rw [both_eq, both_eq]
    cases shell : isShell (command action)
    · simp
    · simp [zero_not_shell shell]
  latest_run action shell := (zero_not_shell shell).symm

theorem repeats_eq (run action : Nat) (visit : Visit) (shell : isShell (command action) = true) :
    Run.repeats ⟨actionOf run, visit⟩ (actionOf action) = Nat.beq (command run) (command action) := by
  show (isShell (command run) && Nat.beq (command run) (command action)) = _
  cases same : Nat.beq (command run) (command action)
  · simp
  · rw [Nat.eq_of_beq_eq_true same, shell]; rfl

theorem hasBit_insert (n a b : Nat) : hasBit (Nat.lor n (Nat.shiftLeft 1 a)) b = (hasBit n b || Nat.beq a b) := by
  rw [hasBit_eq, hasBit_eq]
  show (n ||| 1 <<< a).testBit b = _
  rw [Nat.testBit_or, Nat.one_shiftLeft, Nat.testBit_two_pow, beq_eq]

theorem remembers_more {history : List Run} {before since latest earlier : Nat} (place run : Nat)
    (remembers : Remembers history before since latest earlier) :
    Remembers (⟨actionOf run, visitAt place⟩ :: history) place (remember place before since run) (command run) latest where
  ran other action shell := by
    rw [ranSince, repeats_eq _ _ _ shell]
    show (!modifies run && sameVisit (visitAt place) (visitAt other) && _) = _
    rw [place_same]
    unfold here
    rw [choose_eq]
    cases same : Nat.beq place other
    · simp [hasBit_eq]
    · have same := Nat.eq_of_beq_eq_true same
      subst same
      rw [remembers.ran _ _ shell]
      unfold remember
      rw [choose_eq]
      cases modifies run
      · simp [hasBit_insert, Bool.or_comm]
      · simp [hasBit_eq]
  third action := by
    unfold isThird
    rw [both_eq, both_eq]
    cases shell : isShell (command action)
    · show (isShell (command action) && _) = _
      rw [shell]; simp
    · have last := remembers.latest_run action shell
      show (isShell (command action) && _) = _
      rw [shell, ← last]
      cases history with
      | nil => simp
      | cons first rest =>
        show (true && (Run.repeats ⟨actionOf run, visitAt place⟩ (actionOf action) && _)) = _
        rw [repeats_eq _ _ _ shell]
        simp
  latest_run action shell := repeats_eq _ _ _ shell

/-- The rules that fire on a step, as bits. -/
def code (third noop prints pure idle again : Bool) : Nat :=
  third.toNat + 2 * kindBits noop prints pure + 16 * idle.toNat + 32 * again.toNat

theorem rules_eq : ∀ fired < 64, ∀ third noop prints pure idle again : Bool,
    Nat.beq (code third noop prints pure idle again) fired =
      sameList Nat.beq
        (whenever third 1 <| whenever noop 2 <| whenever prints 3 <| whenever pure 4 <| whenever idle 5 <|
          whenever again 6 [])
        (rulesOf fired) := by
  decide +kernel

theorem bits_eq (third again noop prints pure : Bool) :
    bits third again (kindBits noop prints pure) = code third noop prints pure false again := by
  cases third <;> cases again <;> cases noop <;> cases prints <;> cases pure <;> rfl

theorem runs_eq (step : Nat) (rest : Nat → Nat → Nat → Nat → Bool) (goes : List Run → Bool)
    (same : ∀ {history before since latest earlier}, Remembers history before since latest earlier →
      rest before since latest earlier = goes history)
    (number acts : Nat) {history : List Run} {before since latest earlier : Nat}
    (remembers : Remembers history before since latest earlier) (third again noop prints pure : Bool) :
    runs step rest number acts before since latest earlier (kindBits noop prints pure) third again =
      (Nat.beq
        (code (third || anyAction consecutiveRepetition (visitAt (place step)) history ((digitsOf number acts).map actionOf))
          (noop && ((digitsOf number acts).map actionOf).all isNoOperation)
          (prints && ((digitsOf number acts).map actionOf).all isConstantOutput)
          (pure && ((digitsOf number acts).map actionOf).all isPurePrint) false
          (again || anyAction (fun before => noProgress before (visitAt (place step))) (visitAt (place step)) history
            ((digitsOf number acts).map actionOf)))
        (fired step) && goes (extend (visitAt (place step)) history ((digitsOf number acts).map actionOf))) := by
  induction number generalizing acts history before since latest earlier third again noop prints pure with
  | zero =>
    show both (Nat.beq (bits third again (kindBits noop prints pure)) (fired step)) (rest before since latest earlier) = _
    rw [both_eq, bits_eq, same remembers]
    simp [digitsOf, anyAction, extend]
  | succ number ih =>
    show runs step rest number (Nat.shiftRight acts 32) (place step) (remember (place step) before since (first acts))
      (command (first acts)) latest (Nat.land (kindBits noop prints pure) (kindOf (first acts)))
      (either (isThird (command (first acts)) latest earlier) third)
      (either (isAgain (place step) before since (command (first acts))) again) = _
    have rule6 : isAgain (place step) before since (command (first acts)) =
        noProgress history (visitAt (place step)) (actionOf (first acts)) := by
      unfold isAgain noProgress
      rw [both_eq]
      show _ = (isShell (command (first acts)) && _)
      cases shell : isShell (command (first acts))
      · simp
      · rw [remembers.ran _ _ shell]; simp
    rw [kindOf_eq, kindBitsOf, kindBits_land, either_eq, either_eq, ← remembers.third, rule6,
      ih _ (remembers_more (place step) (first acts) remembers)]
    simp only [digitsOf, List.map_cons, List.all_cons, anyAction, extend, Bool.and_assoc]
    congr 2
    congr 1 <;> simp only [Bool.or_assoc, Bool.or_comm]

theorem penaltiesFrom_eq (steps : List Nat) {history : List Run} {before since latest earlier : Nat}
    (remembers : Remembers history before since latest earlier) :
    penaltiesFrom steps before since latest earlier =
      sameList (sameList Nat.beq) (LeanReward.penaltiesFrom history (steps.map stepOf))
        (steps.map fun step => rulesOf (fired step)) := by
  induction steps generalizing history before since latest earlier with
  | nil => rfl
  | cons step steps ih =>
    have unfolded : penaltiesFrom (step :: steps) before since latest earlier =
        choose (isZero (count step))
          (both (Nat.beq (choose (isIdle step) 16 0) (fired step)) (penaltiesFrom steps before since latest earlier))
          (runs step (penaltiesFrom steps) (count step) (actions step) before since latest earlier 7 false false) := rfl
    have fired_eq := rules_eq (fired step) (Nat.mod_lt _ (by decide))
    rw [unfolded, choose_eq, isZero_eq, List.map_cons, List.map_cons, LeanReward.penaltiesFrom, sameList]
    unfold LeanReward.rulesOf
    rw [← fired_eq]
    have run := runs_eq step (penaltiesFrom steps) _ (fun remembers => ih remembers) (count step) (actions step) remembers
      false false true true true
    cases number : count step with
    | zero =>
      have none : (stepOf step).actions = [] := by simp [stepOf, number, digitsOf]
      have idle : LeanReward.isIdle (stepOf step) = isIdle step := by
        unfold LeanReward.isIdle isIdle
        rw [none, isZero_eq]
        show (true && !hasBit step 2 && !hasBit step 3) = decide (Nat.shiftRight step 2 % 4 = 0)
        have bit (position : Nat) : hasBit step position = decide (step / 2 ^ position % 2 = 1) := by
          rw [hasBit_eq, Nat.testBit_eq_decide_div_mod_eq]
        have half : Nat.shiftRight step 2 = step / 4 := Nat.shiftRight_eq_div_pow step 2
        rw [bit, bit, half, Bool.eq_iff_iff]
        simp only [Bool.true_and, decide_eq_true_eq, Bool.and_eq_true, Bool.not_eq_true', decide_eq_false_iff_not]
        omega
      rw [idle, both_eq, ih remembers]
      simp only [decide_true, if_true, wholeStep, none, anyAction, extend, List.isEmpty_nil, Bool.not_true, Bool.false_and]
      rw [choose_eq]
      cases isIdle step <;> rfl
    | succ less =>
      have idle : LeanReward.isIdle (stepOf step) = false := by simp [LeanReward.isIdle, stepOf, number, digitsOf]
      have all : (stepOf step).actions = (digitsOf (count step) (actions step)).map actionOf := rfl
      rw [number] at run all
      rw [idle]
      simp only [wholeStep, all]
      rw [if_neg (by simp)]
      exact run

theorem placed_eq (steps : List Nat) :
    ((steps.map rowOf).zipWith (fun row step => { step with visit := (row.node, row.visit) }) (steps.map stepOf)) =
      steps.map stepOf := by
  induction steps with
  | nil => rfl
  | cons step steps ih => simp only [List.map_cons, List.zipWith_cons_cons, ih]; rfl

theorem penaltiesHold_eq (p : Packed) : p.penaltiesHold = p.claim.penaltiesHold := by
  unfold Claim.penaltiesHold Rollout.placed penalties penaltiesHold
  show penaltiesFrom p.steps 0 0 0 0 = sameList _ (LeanReward.penaltiesFrom []
    ((p.steps.map rowOf).zipWith (fun row step => { step with visit := (row.node, row.visit) }) (p.steps.map stepOf))) _
  rw [placed_eq, penaltiesFrom_eq p.steps remembers_nothing]
  rfl

end LeanReward.Packed
