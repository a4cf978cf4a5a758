import Lean.Data.Json
import LeanReward.Coverage
import LeanReward.Information

/-!
`check-workflow`: a workflow contract as JSON on standard input, the three static verdicts as JSON on standard output.

The checkers know numbers only, so every name of the contract is interned; the answer gives the names back.
-/

open Lean (Json)
open LeanReward

namespace CheckWorkflow

/-- Reads JSON; the state is the names seen so far. -/
abbrev Reader := StateT (Array String) (Except String)

def intern (name : String) : Reader Name := do
  let names ← get
  match names.toList.findIdx? (· == name) with
  | some index => return index
  | none => set (names.push name); return names.size

def field (json : Json) (key : String) : Json := (json.getObjVal? key).toOption.getD .null

def each {α : Type} (json : Json) (key : String) (read : Json → Reader α) : Reader (List α) :=
  match field json key with
  | .null => return []
  | .arr items => items.toList.mapM read
  | _ => throw s!"{key}: expected a list"

def str (json : Json) (key : String) : Reader String :=
  match (field json key).getStr? with
  | .ok text => return text
  | .error _ => throw s!"{key}: expected a string"

def nat (json : Json) (key : String) : Reader Nat :=
  match (field json key).getNat? with
  | .ok number => return number
  | .error _ => throw s!"{key}: expected a natural number"

def name (json : Json) : Reader Name :=
  match json.getStr? with
  | .ok text => intern text
  | .error _ => throw s!"expected a name, not {json.compress}"

/-- An object by its `kind` and `args`; what is neither built in, a connective nor judged is a tool's. -/
partial def predicate (json : Json) : Reader Predicate := do
  let args := field json "args"
  match ← str json "kind" with
  | "nameExists" => return .atom (.builtin .nameExists)
  | "isNonEmptyString" | "nonEmptyString" => return .atom (.builtin .nonEmptyString)
  | "isNonEmptyList" | "nonEmptyList" => return .atom (.builtin .nonEmptyList)
  | "isInt" => return .atom (.builtin .isInt)
  | "containsSubstring" =>
    return .atom (.builtin (.containsSubstring ((← str args "substring").toList.map Char.toNat)))
  | "custom" => return .atom (.judged (← intern (← str json "custom_name")))
  | "and" => return .both (← predicate (field args "left")) (← predicate (field args "right"))
  | "or" => return .either (← predicate (field args "left")) (← predicate (field args "right"))
  | kind => return .atom (.tool (← intern kind) [])

def fact (json : Json) : Reader Fact := do
  return ⟨← intern (← str json "var_name"), ← predicate (field json "predicate")⟩

/-- An object from variables to lists of atoms. -/
def info (json : Json) (key : String) : Reader (List (Name × Name)) := do
  match field json key with
  | .null => return []
  | .obj entries =>
    let rows ← entries.toList.mapM fun ⟨subject, _⟩ => do
      let atoms ← each (.obj entries) subject name
      let subject ← intern subject
      return atoms.map (subject, ·)
    return rows.flatten
  | _ => throw s!"{key}: expected an object"

def node (json : Json) : Reader Node := do
  return {
    id := ← nat json "id", reads := ← each json "reads" name, writes := ← each json "writes" name
    pre := ← each json "precond_extra" fact, post := ← each json "postcond_extra" fact
    invariant := ← each json "invariant" fact, infoRequires := ← each json "info_requires" name
    variableInfo := ← info json "produces_variable_info", contextInfo := ← each json "produces_context_info" name
    contributes := ← each json "sub_goal_contributions" fun goal => do intern (← str goal "sub_goal_name")
    verifies := ← each json "sub_goal_verifications" fun goal => do intern (← str goal "sub_goal_name") }

def edge (json : Json) : Reader Edge := do
  match ← str json "edge_type" with
  | "seq" => return .seq (← nat json "from_node") (← nat json "to_node")
  | "branch" => return .branch (← nat json "cond_node") (← nat json "then_node") (← nat json "else_node")
  | "loop" => return .loop (← nat json "header_node") (← nat json "body_entry") (← nat json "exit_node")
  | "loopBack" => return .loopBack (← nat json "body_end") (← nat json "header_node")
  | other => throw s!"edge_type: unknown {other}"

def graphPredicate (json : Json) : Reader GraphPredicate := do
  match ← str json "kind" with
  | "pathCoverage" => return .pathCoverage
  | "verificationCoverage" => return .verificationCoverage
  | "unifiedLoopBack" => return .unifiedLoopBack
  | other => throw s!"required_graph_predicates: unknown {other}"

def goal (json : Json) : Reader SubGoal := do
  return ⟨← intern (← str json "name"), ← intern (← str json "variable_name"),
    ← predicate (field json "required_predicate"), ← each json "required_graph_predicates" graphPredicate⟩

/-- The keys beyond the built-in ones that a predicate mentions. -/
def mentioned : Predicate → List Key
  | .atom (.builtin _) => []
  | .atom key => [key]
  | .both left right => mentioned left ++ mentioned right
  | .either left right => mentioned left ++ mentioned right

def workflow (json : Json) : Reader Workflow := do
  let nodes ← each json "nodes" node
  let given ← each json "param_postcond" fact
  let established := (given ++ nodes.flatMap (·.post)).flatMap fun fact => mentioned fact.predicate
  return {
    nodes, given, edges := ← each json "edges" edge, entry := ← nat json "entry"
    exits := ← each json "exits" fun exit => ofExcept (exit.getNat?), givenInfo := ← info json "param_produces_variable_info"
    goals := ← each (field json "goal_spec") "sub_goals" goal, registry := established.map (⟨·, []⟩) }

/-- A topological order of the nodes, as far as there is one: sources of what is left first. -/
def order (w : Workflow) : List NodeId := go w.nodes.length (w.nodes.map (·.id))
where
  go : Nat → List NodeId → List NodeId
    | 0, _ => []
    | fuel + 1, left =>
      match left.find? fun id => !w.forward.any fun arc => arc.2 == id && left.contains arc.1 with
      | none => []
      | some id => id :: go fuel (left.filter (· != id))

def answer (w : Workflow) (names : Array String) : Json :=
  let named (id : Name) : Json := names.getD id (toString id)
  let list {α : Type} (show_ : α → Json) (items : List α) : Json := .arr (items.map show_).toArray
  let chain := match w.chain (order w) with
    | .holds _ => Json.mkObj [("verdict", "holds")]
    | .missing id fact available => Json.mkObj [("verdict", "missing"), ("node", id), ("variable", named fact.subject),
        ("available", list (fun known => named known.subject) available)]
    | .notOrdered => Json.mkObj [("verdict", "not_ordered")]
  let cover : Cover → Json
    | .full => "FULL"
    | .partly => "PARTIAL"
    | .weak => "WEAK"
    | .uncovered => "UNCOVERED"
  Json.mkObj [("well_formed", w.isWellFormed), ("variable_chain", chain),
    ("information", list (fun closure => Json.mkObj [("node", closure.node), ("required", list named closure.required),
      ("via_variable", list named closure.viaVariable), ("via_context", list named closure.viaContext),
      ("missing", list named closure.missing)]) w.closures),
    ("coverage", list (fun row => Json.mkObj [("sub_goal", named row.1), ("verdict", cover row.2)])
      (w.coverage (order w)))]

def run (text : String) : Except String Json := do
  let (w, names) ← (workflow (← Json.parse text)).run #[]
  return answer w names

end CheckWorkflow

def main : IO UInt32 := do
  match CheckWorkflow.run (← (← IO.getStdin).readToEnd) with
  | .ok json => IO.println json.compress; return 0
  | .error message => IO.eprintln message; return 1
