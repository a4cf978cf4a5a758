/-!
From the answers of the judge's replicas to the stage reward beta. The answers are data: nothing is assumed of them.
-/

namespace LeanReward

inductive Sign
  | minus
  | plus
  deriving DecidableEq

def Sign.value : Sign → Int
  | minus => -1
  | plus => 1

/-- What a judge found about the requirements in one chunk of the view. -/
inductive Answer
  | support
  | contradiction
  | insufficient

def Answer.supports : Answer → Bool
  | support => true
  | _ => false

def Answer.contradicts : Answer → Bool
  | contradiction => true
  | _ => false

/-- A replica claims +1 when some chunk supports and none contradicts. -/
def claims (chunks : List Answer) : Bool :=
  chunks.any Answer.supports && !chunks.any Answer.contradicts

/-- One replica's judgement of one stage. -/
structure Ballot where
  /-- False when the judge failed or could not be parsed. -/
  available : Bool
  chunks : List Answer
  /-- The turn at which the quoted evidence stands in the view that was shown; none when it is nowhere in it. -/
  quote : Option Nat
  /-- The last turn of the stage in this replica's segmentation. -/
  segmentEnd : Nat

inductive Downgrade
  | fromTheFuture
  | quoteNotFound

/-- Why a claim of +1 does not count. -/
def Ballot.downgrade (ballot : Ballot) : Option Downgrade :=
  if ballot.available && claims ballot.chunks then
    match ballot.quote with
    | none => some .quoteNotFound
    | some turn => if turn ≤ ballot.segmentEnd then none else some .fromTheFuture
  else none

/-- A positive vote is a claim whose quote stands in the view at a turn up to the segment's end. -/
def Ballot.positive (ballot : Ballot) : Bool :=
  ballot.available && claims ballot.chunks &&
    match ballot.quote with
    | none => false
    | some turn => Nat.ble turn ballot.segmentEnd

def positives : List Bool → Nat
  | [] => 0
  | true :: rest => positives rest + 1
  | false :: rest => positives rest

/-- The majority of the votes. -/
def majority (votes : List Bool) : Sign := bif Nat.blt votes.length (2 * positives votes) then .plus else .minus

/-- Beta of a stage; none, unannotated, when no judge was available. -/
def beta (ballots : List Ballot) : Option Sign :=
  bif ballots.any (·.available) then some (majority (ballots.map Ballot.positive)) else none

end LeanReward
