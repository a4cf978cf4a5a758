import LeanReward.Packed
import LeanReward.Rollout

/-! The claim that a packed claim stands for. -/

namespace LeanReward.Packed

/-- A kind, when it occurs. -/
def occurs {α : Type} (does : Bool) (kind : α) (rest : List α) : List α := if does then kind :: rest else rest

def actionOf (action : Nat) : Action where
  isShell := isShell (command action)
  text := command action
  chain := occurs (hasBit action 1) .noop <| occurs (hasBit action 2) .constantPrint <| occurs (hasBit action 3) .other []
  script := occurs (hasBit action 4) .literalPrint <| occurs (hasBit action 5) .other []
  modifies := modifies action

/-- The first digits of a number. -/
def digitsOf : Nat → Nat → List Nat
  | 0, _ => []
  | count + 1, n => first n :: digitsOf count (Nat.shiftRight n 32)

def visitAt (place : Nat) : Visit := (nodeOf place, visitOf place)

def stepOf (step : Nat) : Step where
  actions := (digitsOf (count step) (actions step)).map actionOf
  isFinal := hasBit step 2
  excused := hasBit step 3
  visit := visitAt (place step)

def decisionOf : Nat → Decision
  | 0 => .stay
  | 1 => .advance
  | _ => .loopBack

def rowOf (step : Nat) : Row := ⟨decisionOf (decision step), nodeOf (place step), visitOf (place step)⟩

def rulesOf (fired : Nat) : List Nat :=
  occurs (hasBit fired 0) 1 <| occurs (hasBit fired 1) 2 <| occurs (hasBit fired 2) 3 <| occurs (hasBit fired 3) 4 <|
    occurs (hasBit fired 4) 5 <| occurs (hasBit fired 5) 6 []

def ballotOf (ballot : Nat) : Ballot where
  available := hasBit ballot 0
  chunks := occurs (hasBit ballot 1) .support <| occurs (hasBit ballot 3) .contradiction <|
    occurs (hasBit ballot 4) .insufficient []
  quote := if hasBit ballot 2 then some (turn ballot) else none
  segmentEnd := segmentEnd ballot

def signOf : Nat → Option Sign
  | 1 => some .minus
  | 2 => some .plus
  | _ => none

def evidenceOf (stage : Nat) : Evidence :=
  let checks := occurs (hasBit stage 6) true <| occurs (hasBit stage 7) false []
  match sourceOf stage with
  | 0 => .given (signOf (given stage))
  | 1 => .decided checks
  | _ => .judged checks ((ballots stage).map ballotOf)

def arcOf (arc : Nat) : NodeId × NodeId := (nodeOf arc, visitOf arc)

def claim (p : Packed) : Claim where
  transitions := ⟨nodeOf p.entry, p.forward.map arcOf, p.back.map arcOf⟩
  rollout :=
    ⟨if p.alpha = 0 then .minus else .plus, p.steps.map rowOf, p.steps.map stepOf,
      p.stages.map fun stage => (visitAt (stagePlace stage), evidenceOf stage)⟩
  rate := ⟨p.passed, p.known⟩
  legal := decide (p.legal ≠ 0)
  betas := p.stages.map fun stage => signOf (claimed stage)
  rules := p.steps.map fun step => rulesOf (fired step)
  rewards := p.steps.map fun step => (reward step : Int) - 12

end LeanReward.Packed
