import LeanReward.Graph

/-!
Predicates about a variable, and which facts entail which.

Names (of variables, tools, judged properties, information atoms) are numbers: whoever writes a workflow down interns
them. What a tool or a judge answers is a parameter of `Situation`; nothing here assumes any answer.
-/

namespace LeanReward

abbrev Name := Nat

/-- The value of a variable, text as code points. -/
inductive Value
  | missing
  | text (points : List Nat)
  | items (count : Nat)
  | integer (value : Int)
  deriving DecidableEq

/-- Properties that code decides from the value alone. -/
inductive Builtin
  | nameExists
  | nonEmptyString
  | nonEmptyList
  | isInt
  | containsSubstring (needle : List Nat)
  deriving DecidableEq

/-- Whether `needle` stands somewhere in `points`. -/
def hasInfix (needle : List Nat) : List Nat → Bool
  | [] => needle.isEmpty
  | point :: rest => needle.isPrefixOf (point :: rest) || hasInfix needle rest

def Builtin.check : Builtin → Value → Bool
  | nameExists, value => match value with | .missing => false | _ => true
  | nonEmptyString, value => match value with | .text points => !points.isEmpty | _ => false
  | nonEmptyList, value => match value with | .items count => decide (0 < count) | _ => false
  | isInt, value => match value with | .integer _ => true | _ => false
  | containsSubstring needle, value => match value with | .text points => hasInfix needle points | _ => false

/-- An atomic property: decided here, checked by a tool (a file exists, JSON fits a schema), or judged. -/
inductive Key
  | builtin (property : Builtin)
  | tool (name : Name) (arguments : List Nat)
  | judged (name : Name)
  deriving DecidableEq

inductive Predicate
  | atom (key : Key)
  | both (left right : Predicate)
  | either (left right : Predicate)
  deriving DecidableEq

structure Fact where
  subject : Name
  predicate : Predicate
  deriving DecidableEq

/-- A key beyond the built-in ones, and the keys that it implies about the same variable. -/
structure Registered where
  key : Key
  implies : List Key

abbrev Registry := List Registered

def Builtin.implied : Builtin → List Builtin
  | nameExists => []
  | containsSubstring (_ :: _) => [nonEmptyString, nameExists]
  | containsSubstring [] => [nameExists]
  | _ => [nameExists]

def Key.implied : Key → List Key
  | builtin property => property.implied.map .builtin
  | _ => []

/-- Every implication that can start at `key` or at a key of the registry. -/
def Registry.implications (registry : Registry) (key : Key) : List (Key × Key) :=
  let own := registry.flatMap fun entry => entry.implies.map (entry.key, ·)
  own ++ (key :: own.map (·.2)).flatMap fun k => k.implied.map (k, ·)

def Registry.implies (registry : Registry) (key goal : Key) : Bool :=
  decide (key = goal) || reaches (registry.implications key) [key] goal

/-- A built-in key is always known; any other must be registered. -/
def Registry.knows (registry : Registry) : Predicate → Bool
  | .atom (.builtin _) => true
  | .atom key => registry.any fun entry => decide (entry.key = key)
  | .both left right => registry.knows left && registry.knows right
  | .either left right => registry.knows left && registry.knows right

/-- Whether a predicate that holds makes `goal` hold. -/
def gives (registry : Registry) (goal : Key) : Predicate → Bool
  | .atom key => registry.implies key goal
  | .both left right => gives registry goal left || gives registry goal right
  | .either left right => gives registry goal left && gives registry goal right

/-- Whether `facts` make `predicate` hold of `subject`. -/
def entails (registry : Registry) (facts : List Fact) (subject : Name) : Predicate → Bool
  | .atom key => facts.any fun fact => decide (fact.subject = subject) && gives registry key fact.predicate
  | .both left right => entails registry facts subject left && entails registry facts subject right
  | .either left right =>
    entails registry facts subject left || entails registry facts subject right ||
      facts.any fun fact => decide (fact = ⟨subject, .either left right⟩)

def entailsFact (registry : Registry) (facts : List Fact) (goal : Fact) : Bool :=
  entails registry facts goal.subject goal.predicate

/-- What the variables hold, and what tools and judges answered about them. -/
structure Situation where
  value : Name → Value
  tool : Name → Name → List Nat → Bool
  judge : Name → Name → Bool

/-- The Bool checker of a predicate, given the answers. -/
def Situation.check (situation : Situation) (subject : Name) : Predicate → Bool
  | .atom (.builtin property) => property.check (situation.value subject)
  | .atom (.tool name arguments) => situation.tool subject name arguments
  | .atom (.judged name) => situation.judge subject name
  | .both left right => situation.check subject left && situation.check subject right
  | .either left right => situation.check subject left || situation.check subject right

end LeanReward
