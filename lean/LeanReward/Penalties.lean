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
  deriving DecidableEq

/-- One top-level statement of a script. -/
inductive Statement
  | literalPrint
  | other
  deriving DecidableEq

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

def Run.repeats (run : Run) (action : Action) : Bool := run.action.isShell && decide (run.action.text = action.text)

/-- Rule 1: the third or a later back-to-back run of one shell command. -/
def consecutiveRepetition (history : List Run) (action : Action) : Bool :=
  action.isShell &&
    match history with
    | second :: first :: _ => second.repeats action && first.repeats action
    | _ => false

/-- Rule 2: nothing but no-operations. -/
def isNoOperation (action : Action) : Bool :=
  action.isShell && !action.chain.isEmpty && action.chain.all fun link => decide (link = .noop)

/-- Rule 3: constant prints, at least one, and otherwise no-operations. -/
def isConstantOutput (action : Action) : Bool :=
  action.isShell && action.chain.any (fun link => decide (link = .constantPrint)) &&
    action.chain.all fun link => !decide (link = .other)

/-- Rule 4: a script that only prints literals. -/
def isPurePrint (action : Action) : Bool :=
  !action.script.isEmpty && action.script.all fun statement => decide (statement = .literalPrint)

/-- Rules 2 to 4 fire on a step when they hold of everything that it does. -/
def wholeStep (rule : Action → Bool) (step : Step) : Bool := !step.actions.isEmpty && step.actions.all rule

/-- Rule 5: a step without an action that is neither final nor the harness's own. -/
def isIdle (step : Step) : Bool := step.actions.isEmpty && !step.isFinal && !step.excused

/-- Rule 6: the same shell command ran before in this stage visit, and nothing from that run on modifies anything. -/
def noProgress (history : List Run) (visit : Visit) (action : Action) : Bool :=
  action.isShell &&
    (history.takeWhile fun run => !run.action.modifies && decide (run.visit = visit)).any fun run => run.repeats action

/-- Whether a rule about the history fires at one of the actions, taken in order. -/
def anyAction (rule : List Run → Action → Bool) (visit : Visit) (history : List Run) : List Action → Bool
  | [] => false
  | action :: rest => rule history action || anyAction rule visit (⟨action, visit⟩ :: history) rest

/-- The history after a step. -/
def Step.extend (step : Step) (history : List Run) : List Run :=
  (step.actions.map fun action => ⟨action, step.visit⟩).reverse ++ history

/-- The rules that fire on a step, in increasing order. -/
def rulesOf (history : List Run) (step : Step) : List Nat :=
  (if anyAction consecutiveRepetition step.visit history step.actions then [1] else []) ++
    (if wholeStep isNoOperation step then [2] else []) ++ (if wholeStep isConstantOutput step then [3] else []) ++
    (if wholeStep isPurePrint step then [4] else []) ++ (if isIdle step then [5] else []) ++
    (if anyAction (fun before => noProgress before step.visit) step.visit history step.actions then [6] else [])

def penaltiesFrom (history : List Run) : List Step → List (List Nat)
  | [] => []
  | step :: rest => rulesOf history step :: penaltiesFrom (step.extend history) rest

/-- For each step of a trajectory, the rules that fire. -/
def penalties (steps : List Step) : List (List Nat) := penaltiesFrom [] steps

end LeanReward
