/-!
The six penalty rules (gamma) over parsed steps. Parsing and classification happen outside; here a command is what the
parser made of it: its normal form as a number, and what each simple command of its chain does.
-/

namespace LeanReward

/-- One simple command of a chain. -/
inductive Link
  /-- `exit`, `true`, a numeric `sleep`. -/
  | noop
  /-- `echo`, `printf` or a print-only `cat` of constants, neither redirected nor piped into another program. -/
  | constantPrint
  | other

def Link.isNoop : Link → Bool
  | noop => true
  | _ => false

def Link.isPrint : Link → Bool
  | constantPrint => true
  | _ => false

def Link.isOther : Link → Bool
  | other => true
  | _ => false

/-- One top-level statement of a script. -/
inductive Statement
  | literalPrint
  | other

def Statement.isPrint : Statement → Bool
  | literalPrint => true
  | other => false

/-- One tool call. -/
structure Action where
  /-- A shell command; anything else is compared by no rule. -/
  isShell : Bool
  /-- The normal form of the command, interned. -/
  text : Nat
  /-- The chain of a shell command; empty when it does not parse. -/
  chain : List Link
  /-- The statements of a script that the call runs; empty when there is none or it does not parse. -/
  script : List Statement
  /-- Whether it may change the environment; true when unknown. -/
  modifies : Bool

/-- A visit of a node: the node and the index of the visit. -/
abbrev Visit := Nat × Nat

structure Step where
  actions : List Action
  isFinal : Bool
  /-- The harness failed to parse the turn, or asked for a summary of the context. -/
  excused : Bool
  /-- The stage visit that the step belongs to; the same for all without stage labels. -/
  visit : Visit

/-- An action that ran, with its stage visit. Histories are lists of these, the latest first. -/
structure Run where
  action : Action
  visit : Visit

def Run.repeats (run : Run) (action : Action) : Bool := run.action.isShell && Nat.beq run.action.text action.text

/-- Rule 1: the third or a later back-to-back run of one shell command. -/
def consecutiveRepetition (history : List Run) (action : Action) : Bool :=
  action.isShell &&
    match history with
    | second :: first :: _ => second.repeats action && first.repeats action
    | _ => false

/-- Rule 2: nothing but no-operations. -/
def isNoOperation (action : Action) : Bool :=
  action.isShell && !action.chain.isEmpty && action.chain.all Link.isNoop

/-- Rule 3: constant prints, at least one, and otherwise no-operations. -/
def isConstantOutput (action : Action) : Bool :=
  action.isShell && action.chain.any Link.isPrint && !action.chain.any Link.isOther

/-- Rule 4: a script that only prints literals. -/
def isPurePrint (action : Action) : Bool :=
  !action.script.isEmpty && action.script.all Statement.isPrint

/-- Rules 2 to 4 fire on a step when they hold of everything that it does. -/
def wholeStep (rule : Action → Bool) (step : Step) : Bool := !step.actions.isEmpty && step.actions.all rule

/-- Rule 5: a step without an action that is neither final nor the harness's own. -/
def isIdle (step : Step) : Bool := step.actions.isEmpty && !step.isFinal && !step.excused

def sameVisit (a b : Visit) : Bool := Nat.beq a.1 b.1 && Nat.beq a.2 b.2

/-- Whether a run of the command is in the part of the history, latest first, in which this visit modified nothing. -/
def ranSince (visit : Visit) (action : Action) : List Run → Bool
  | [] => false
  | run :: earlier =>
    !run.action.modifies && sameVisit run.visit visit && (run.repeats action || ranSince visit action earlier)

/-- Rule 6: the same shell command ran before in this stage visit, and nothing from that run on modifies anything. -/
def noProgress (history : List Run) (visit : Visit) (action : Action) : Bool :=
  action.isShell && ranSince visit action history

/-- Whether a rule about the history fires at one of the actions, taken in order. -/
def anyAction (rule : List Run → Action → Bool) (visit : Visit) (history : List Run) : List Action → Bool
  | [] => false
  | action :: rest => rule history action || anyAction rule visit (⟨action, visit⟩ :: history) rest

/-- The history after the actions of a step. -/
def extend (visit : Visit) (history : List Run) : List Action → List Run
  | [] => history
  | action :: rest => extend visit (⟨action, visit⟩ :: history) rest

def whenever (fires : Bool) (rule : Nat) (rest : List Nat) : List Nat := bif fires then rule :: rest else rest

/-- The rules that fire on a step, in increasing order. -/
def rulesOf (history : List Run) (step : Step) : List Nat :=
  whenever (anyAction consecutiveRepetition step.visit history step.actions) 1 <|
  whenever (wholeStep isNoOperation step) 2 <|
  whenever (wholeStep isConstantOutput step) 3 <|
  whenever (wholeStep isPurePrint step) 4 <|
  whenever (isIdle step) 5 <|
  whenever (anyAction (fun before => noProgress before step.visit) step.visit history step.actions) 6 []

def penaltiesFrom (history : List Run) : List Step → List (List Nat)
  | [] => []
  | step :: rest => rulesOf history step :: penaltiesFrom (extend step.visit history step.actions) rest

/-- For each step of a trajectory, the rules that fire. -/
def penalties (steps : List Step) : List (List Nat) := penaltiesFrom [] steps

end LeanReward
