/-!
What a certificate evaluates: a claim packed into one number.

The kernel evaluates this far faster than the definitions that it stands for: it computes with numbers of any size in one
step, and recursors unfold at once where `match` and structural recursion take ten steps. `Proofs/Packed.lean` proves that a
packed claim holds exactly when the claim that it packs (`Reading.lean`) does.

Of a list whose entries matter only by their kinds (the links of a chain, the chunks that a judge saw) the kinds that occur
are packed. Everything that has no small bound is a digit of 32 bits.
-/

noncomputable section

namespace LeanReward.Packed

def fold {α β : Type} (done : β) (next : α → β → β) (xs : List α) : β :=
  List.rec done (fun x _ rest => next x rest) xs

/-- The same over a number of turns. -/
def repeated {β : Type} (done : β) (next : β → β) (turns : Nat) : β := Nat.rec done (fun _ rest => next rest) turns

def choose {β : Type} (condition : Bool) (yes no : β) : β := Bool.rec no yes condition

def both (a b : Bool) : Bool := Bool.rec false b a

def either (a b : Bool) : Bool := Bool.rec b true a

def negation (a : Bool) : Bool := Bool.rec true false a

def all {α : Type} (rule : α → Bool) (xs : List α) : Bool := fold true (fun x rest => both (rule x) rest) xs

def any {α : Type} (rule : α → Bool) (xs : List α) : Bool := fold false (fun x rest => either (rule x) rest) xs

def isZero (n : Nat) : Bool := Nat.beq n (nat_lit 0)

def hasBit (n position : Nat) : Bool :=
  Nat.beq (Nat.mod (Nat.shiftRight n position) (nat_lit 2)) (nat_lit 1)

/-- A number worked out before it is used: what depends on it is then the same expression again, which the kernel remembers. -/
def worked {β : Type} (n : Nat) (use : Nat → β) : β := Nat.rec (use (nat_lit 0)) (fun before _ => use (Nat.succ before)) n

/-- The first `count` parts of a number, `width` bits each. -/
def parts (width count n : Nat) : List Nat :=
  repeated (fun _ => [])
    (fun rest n => List.cons (Nat.mod n (Nat.pow (nat_lit 2) width)) (rest (Nat.shiftRight n width))) count n

/-- The first digit. -/
def first (n : Nat) : Nat := Nat.mod n (nat_lit 4294967296)

/-- The digit after the first `skipped` bits. -/
def digit (n skipped : Nat) : Nat := Nat.mod (Nat.shiftRight n skipped) (nat_lit 4294967296)

/-- One number from its parts, `width` bits each. -/
def join (width : Nat) (parts : List Nat) : Nat :=
  fold (nat_lit 0) (fun part rest => Nat.lor part (Nat.shiftLeft rest width)) parts

/-! A step has 15 bits (decision 2, final, excused, rules 6, reward + 12), then digits: node, visit, number of actions, and the
actions. -/

def decision (step : Nat) : Nat := Nat.mod step (nat_lit 4)

def fired (step : Nat) : Nat := Nat.mod (Nat.shiftRight step (nat_lit 4)) (nat_lit 64)

def reward (step : Nat) : Nat := Nat.mod (Nat.shiftRight step (nat_lit 10)) (nat_lit 32)

/-- The stage visit of a step as one number, its two digits. -/
def place (step : Nat) : Nat := Nat.mod (Nat.shiftRight step (nat_lit 15)) (nat_lit 18446744073709551616)

def nodeOf (place : Nat) : Nat := Nat.mod place (nat_lit 4294967296)

def visitOf (place : Nat) : Nat := Nat.shiftRight place (nat_lit 32)

def count (step : Nat) : Nat := digit step (nat_lit 79)

def actions (step : Nat) : Nat := Nat.shiftRight step (nat_lit 111)

/-! An action has 6 bits (modifies, the chain's no-ops, prints and others, the script's prints and others), and then its
command: 2 * text + 1 for a shell command, an even number for anything else. -/

def modifies (action : Nat) : Bool := hasBit action (nat_lit 0)

def command (action : Nat) : Nat := Nat.shiftRight action (nat_lit 6)

def isShell (command : Nat) : Bool := Nat.beq (Nat.mod command (nat_lit 2)) (nat_lit 1)

/-- Rules 2, 3 and 4 of each of the 128 kinds of actions, 4 bits for each. -/
def kinds : Nat := nat_lit 0x222211000000000022221100444444446666554400000000222211000000000000000000000000000000000044444444444444440000000000000000

/-- Which of rules 2, 3 and 4 hold of an action, as bits. -/
def kindOf (action : Nat) : Nat :=
  Nat.mod (Nat.shiftRight kinds (Nat.mul (nat_lit 4) (Nat.mod action (nat_lit 128)))) (nat_lit 8)

/-- What rule 6 holds against a re-run in this place: the commands since the latest modification, as bits. -/
def here (place before since : Nat) : Nat := choose (Nat.beq before place) since (nat_lit 0)

def remember (place before since action : Nat) : Nat :=
  choose (modifies action) (nat_lit 0)
    (Nat.lor (here place before since) (Nat.shiftLeft (nat_lit 1) (command action)))

def isThird (command latest earlier : Nat) : Bool :=
  both (Nat.beq latest command) (both (Nat.beq earlier command) (isShell command))

def isAgain (place before since command : Nat) : Bool :=
  both (hasBit (here place before since) command) (isShell command)

/-- The rules that fire, as bits, from what held of the actions. -/
def bits (third again : Bool) (kind : Nat) : Nat :=
  Nat.add (choose third (nat_lit 1) (nat_lit 0)) (Nat.add (Nat.mul (nat_lit 2) kind) (choose again (nat_lit 32) (nat_lit 0)))

/-- Through the actions of a step, with what the rules remember (where the latest action ran, the commands since, the two latest
commands) and what held of the actions so far. -/
def runs (step : Nat) (rest : Nat → Nat → Nat → Nat → Bool) :
    Nat → Nat → Nat → Nat → Nat → Nat → Nat → Bool → Bool → Bool :=
  repeated
    (fun _ before since latest earlier kind third again =>
      both (Nat.beq (bits third again kind) (fired step)) (rest before since latest earlier))
    (fun next actions before since latest earlier kind third again =>
      next (Nat.shiftRight actions (nat_lit 32)) (place step) (remember (place step) before since (first actions))
        (command (first actions)) latest
        (Nat.land kind (kindOf (first actions)))
        (either (isThird (command (first actions)) latest earlier) third)
        (either (isAgain (place step) before since (command (first actions))) again))

/-- A step without an action that is neither final nor excused. -/
def isIdle (step : Nat) : Bool := isZero (Nat.mod (Nat.shiftRight step (nat_lit 2)) (nat_lit 4))

def penaltiesFrom (steps : List Nat) : Nat → Nat → Nat → Nat → Bool :=
  fold (fun _ _ _ _ => true)
    (fun step rest before since latest earlier =>
      choose (isZero (count step))
        (both (Nat.beq (choose (isIdle step) (nat_lit 16) (nat_lit 0)) (fired step)) (rest before since latest earlier))
        (runs step rest (count step) (actions step) before since latest earlier (nat_lit 7) false false))
    steps

/-! Segmentation. An arc has two digits. -/

def hasArc (source target : Nat) (arcs : List Nat) : Bool :=
  any (fun arc => both (Nat.beq (nodeOf arc) source) (Nat.beq (visitOf arc) target)) arcs

def visits (node : Nat) (entered : List Nat) : Nat :=
  fold (nat_lit 0) (fun head rest => choose (Nat.beq head node) (Nat.succ rest) rest) entered

def enters (cursor place : Nat) (entered arcs : List Nat) : Bool :=
  both (hasArc (nodeOf cursor) (nodeOf place) arcs) (Nat.beq (visitOf place) (visits (nodeOf place) entered))

def legalFrom (forward back steps : List Nat) : Nat → List Nat → Bool :=
  fold (fun _ _ => true)
    (fun step rest cursor entered =>
      choose (isZero (decision step))
        (both (Nat.beq (place step) cursor) (rest cursor entered))
        (both (enters cursor (place step) entered (choose (Nat.beq (decision step) (nat_lit 1)) forward back))
          (rest (place step) (List.cons (nodeOf (place step)) entered))))
    steps

/-! A stage has 8 bits: the claimed beta 2 (0 none, 1 minus, 2 plus), kind 2 (0 given, 1 decided, else judged), the given beta
2, whether some check passed, whether some failed; then digits: node, visit, number of ballots; and the ballots of three
digits each: 5 bits (available, chunks that support, quoted, chunks that contradict, chunks that say too little), the quote's
turn, and the segment's end. -/

def stagePlace (stage : Nat) : Nat := Nat.mod (Nat.shiftRight stage (nat_lit 8)) (nat_lit 18446744073709551616)

def ballots (stage : Nat) : List Nat := parts (nat_lit 96) (digit stage (nat_lit 72)) (Nat.shiftRight stage (nat_lit 104))

def turn (ballot : Nat) : Nat := digit ballot (nat_lit 32)

def segmentEnd (ballot : Nat) : Nat := Nat.shiftRight ballot (nat_lit 64)

def isPositive (ballot : Nat) : Bool :=
  both (Nat.beq (Nat.mod ballot (nat_lit 16)) (nat_lit 7)) (Nat.ble (turn ballot) (segmentEnd ballot))

def counted (rule : Nat → Bool) (xs : List Nat) : Nat :=
  fold (nat_lit 0) (fun x rest => choose (rule x) (Nat.succ rest) rest) xs

def majority (ballots : List Nat) : Nat :=
  choose
    (Nat.ble (Nat.succ (counted (fun _ => true) ballots)) (Nat.mul (nat_lit 2) (counted isPositive ballots)))
    (nat_lit 2) (nat_lit 1)

def voted (ballots : List Nat) : Nat :=
  choose (any (fun ballot => hasBit ballot (nat_lit 0)) ballots) (majority ballots) (nat_lit 0)

def sourceOf (stage : Nat) : Nat := Nat.mod (Nat.shiftRight stage (nat_lit 2)) (nat_lit 4)

def given (stage : Nat) : Nat := Nat.mod (Nat.mod (Nat.shiftRight stage (nat_lit 4)) (nat_lit 4)) (nat_lit 3)

def claimed (stage : Nat) : Nat := Nat.mod (Nat.mod stage (nat_lit 4)) (nat_lit 3)

/-- 0 for none, 1 for minus, 2 for plus. -/
def betaOf (stage : Nat) : Nat :=
  choose (isZero (sourceOf stage)) (given stage)
    (choose (hasBit stage (nat_lit 7)) (nat_lit 1)
      (choose (Nat.beq (sourceOf stage) (nat_lit 1)) (nat_lit 2) (voted (ballots stage))))

def votesHold (stages : List Nat) : Bool := all (fun stage => Nat.beq (betaOf stage) (claimed stage)) stages

/-! Rewards, in tenths and 12 more. -/

def betaAt (stages : List Nat) (place : Nat) : Nat :=
  fold (nat_lit 0) (fun stage rest => choose (Nat.beq (stagePlace stage) place) (betaOf stage) rest) stages

def outcome (alpha : Nat) : Nat := choose (isZero alpha) (nat_lit 2) (nat_lit 22)

def stageReward (alpha beta : Nat) : Nat :=
  choose (isZero alpha)
    (choose (isZero beta) (nat_lit 2) (choose (Nat.beq beta (nat_lit 1)) (nat_lit 0) (nat_lit 4)))
    (choose (isZero beta) (nat_lit 22) (choose (Nat.beq beta (nat_lit 1)) (nat_lit 17) (nat_lit 27)))

def penalised (base : Nat) : Nat := choose (Nat.ble (nat_lit 2) base) (nat_lit 2) base

def isInBand (passed known : Nat) : Bool :=
  both (negation (isZero known))
    (either (isZero passed) (Nat.ble (Nat.mul (nat_lit 3) known) (Nat.mul (nat_lit 4) passed)))

def rewardInBand (alpha : Nat) (stages : List Nat) (step : Nat) : Nat :=
  worked (place step) fun place =>
    choose (isZero (fired step)) (stageReward alpha (betaAt stages place))
      (penalised (stageReward alpha (betaAt stages place)))

def rewardsHold (inBand : Bool) (alpha : Nat) (stages steps : List Nat) : Bool :=
  choose inBand (all (fun step => Nat.beq (rewardInBand alpha stages step) (reward step)) steps)
    (all (fun step => Nat.beq (outcome alpha) (reward step)) steps)

end LeanReward.Packed

namespace LeanReward

/-- A claim as numbers. -/
structure Packed where
  /-- 1 when the rollout was solved. -/
  alpha : Nat
  passed : Nat
  known : Nat
  /-- 1 when the segmentation is claimed to be legal. -/
  legal : Nat
  entry : Nat
  forward : List Nat
  back : List Nat
  stages : List Nat
  steps : List Nat

namespace Packed

/-- A claim in one number: eleven digits (alpha, passed, known, legal, entry, the numbers of forward arcs, of back arcs, of
stages and of steps, the widths of a stage and of a step in bits), the arcs, the stages, and the steps. -/
def read (n : Nat) : Packed :=
  let forward := digit n (nat_lit 160)
  let back := digit n (nat_lit 192)
  let stages := digit n (nat_lit 224)
  let stageWidth := digit n (nat_lit 288)
  let stageStart := Nat.add (nat_lit 352) (Nat.mul (nat_lit 64) (Nat.add forward back))
  let stepStart := Nat.add stageStart (Nat.mul stageWidth stages)
  ⟨digit n (nat_lit 0), digit n (nat_lit 32), digit n (nat_lit 64), digit n (nat_lit 96), digit n (nat_lit 128),
    parts (nat_lit 64) forward (Nat.shiftRight n (nat_lit 352)),
    parts (nat_lit 64) back (Nat.shiftRight n (Nat.add (nat_lit 352) (Nat.mul (nat_lit 64) forward))),
    parts stageWidth stages (Nat.shiftRight n stageStart),
    parts (digit n (nat_lit 320)) (digit n (nat_lit 256)) (Nat.shiftRight n stepStart)⟩

def isLegal (p : Packed) : Bool :=
  legalFrom p.forward p.back p.steps (nodeOf p.entry) [nodeOf p.entry]

def segmentationHolds (p : Packed) : Bool := choose (isZero p.legal) (negation p.isLegal) p.isLegal

def penaltiesHold (p : Packed) : Bool := penaltiesFrom p.steps (nat_lit 0) (nat_lit 0) (nat_lit 0) (nat_lit 0)

/-- Whether every answer of the claim is right: what a certificate proves. -/
def holds (p : Packed) : Bool :=
  both p.segmentationHolds
    (both (votesHold p.stages) (both p.penaltiesHold (rewardsHold (isInBand p.passed p.known) p.alpha p.stages p.steps)))

end Packed

end LeanReward

end
