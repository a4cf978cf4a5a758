-- Honest programs with helper definitions: each must be valid. One program from a line `--- NAME` to the next.
--- map
def f (a : List Nat) : List Nat := a.map (· + 1)
theorem t : f [1] = [2] := rfl

--- foldl
def s (a : List Nat) : Nat := a.foldl (· + ·) 0
theorem t : s [1,2] = 3 := by decide

--- reverse
def r (a : List Nat) := a.reverse
theorem t (a : List Nat) : r (r a) = a := by simp [r]

--- filter
def ev (a : List Nat) := a.filter (· % 2 == 0)
theorem t : ev [1,2] = [2] := by decide

--- array
def f (a : Array Nat) : Array Nat := a.map (· + 1)
theorem t : f #[1] = #[2] := by simp [f]

--- string
def g (s : String) : String := s ++ "!" ++ toString 3
theorem t (s : String) : g s = g s := rfl

--- option
def h (o : Option Nat) : Option Nat := do let x ← o; return x + 1
theorem t : h none = none := rfl

--- recursion
def fib : Nat → Nat | 0 => 0 | 1 => 1 | n+2 => fib n + fib (n+1)
theorem t : fib 10 = 55 := by decide

--- termination
def lg (n : Nat) : Nat := if h : n ≤ 1 then 0 else 1 + lg (n / 2)
termination_by n
decreasing_by omega
theorem t (n : Nat) : lg n = lg n := rfl

--- wf-unfold
def lg (n : Nat) : Nat := if h : n ≤ 1 then 0 else 1 + lg (n / 2)
termination_by n
decreasing_by omega
theorem t : lg 1 = 0 := by unfold lg; simp

--- wf-implicit
def gcd' (a b : Nat) : Nat := if h : b = 0 then a else gcd' b (a % b)
termination_by b
decreasing_by exact Nat.mod_lt _ (Nat.pos_of_ne_zero h)
theorem t (a : Nat) : gcd' a 0 = a := by rw [gcd']; simp

--- structural-list
def len {α} : List α → Nat | [] => 0 | _ :: xs => len xs + 1
theorem t {α} (a : List α) : len a = a.length := by induction a <;> simp [len, *]

--- partial
partial def loop (n : Nat) : Nat := if n > 100 then n else loop (n * 2 + (List.range n).length)
theorem t (n : Nat) : loop n = loop n := rfl

--- simp def
@[simp] def dbl (n : Nat) : Nat := [n, n].foldl (· + ·) 0
theorem t (n : Nat) : dbl n = n + n := by simp

--- abbrev
abbrev NatList := List Nat
abbrev tot (a : NatList) := a.foldr (· + ·) 0
theorem t : tot [] = 0 := rfl

--- instance
structure P where
  x : Nat
  y : Nat
instance : Add P := ⟨fun a b => ⟨a.x + b.x, a.y + b.y⟩⟩
theorem t (a b : P) : (a + b).x = a.x + b.x := rfl

--- instance-list
instance : Add (List Nat) := ⟨List.zipWith (· + ·)⟩
theorem t : ([1] + [2] : List Nat) = [3] := by decide

--- instance-decidable
def Even' (n : Nat) : Prop := n % 2 = 0
instance (n : Nat) : Decidable (Even' n) := inferInstanceAs (Decidable (n % 2 = 0))
theorem t : Even' 4 := by decide

--- instance-decpred
def Small (a : List Nat) : Prop := ∀ x ∈ a, x < 10
instance : DecidablePred Small := fun a => inferInstanceAs (Decidable (∀ x ∈ a, x < 10))
theorem t : Small [1,2] := by decide

--- derive rec BEq
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving BEq

theorem t : 1 + 1 = 2 := rfl

--- derive rec DecidableEq
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving DecidableEq

theorem t : 1 + 1 = 2 := rfl

--- derive rec Repr
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving Repr

theorem t : 1 + 1 = 2 := rfl

--- derive rec Hashable
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving Hashable

theorem t : 1 + 1 = 2 := rfl

--- derive rec Inhabited
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving Inhabited

theorem t : 1 + 1 = 2 := rfl

--- derive rec Ord
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving Ord

theorem t : 1 + 1 = 2 := rfl

--- derive enum BEq, Hashable, Repr, DecidableEq, Inhabited
inductive C | r | g | b
  deriving BEq, Hashable, Repr, DecidableEq, Inhabited

theorem t : 1 + 1 = 2 := rfl

--- derive struct BEq, Hashable, Repr, DecidableEq, Inhabited
structure S where
  x : Nat
  l : List Nat
  deriving BEq, Hashable, Repr, DecidableEq, Inhabited

theorem t : 1 + 1 = 2 := rfl

--- derive rec BEq, Hashable, Repr, DecidableEq, Inhabited
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving BEq, Hashable, Repr, DecidableEq, Inhabited

theorem t : 1 + 1 = 2 := rfl

--- derive rec Nonempty
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving Nonempty

theorem t : 1 + 1 = 2 := rfl

--- derive rec ReflBEq
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving BEq, ReflBEq

theorem t : 1 + 1 = 2 := rfl

--- derive rec LawfulBEq
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving BEq, ReflBEq, LawfulBEq

theorem t : 1 + 1 = 2 := rfl

--- derive rec TypeName
inductive Tr | leaf | node (l : Tr) (v : Nat) (r : Tr)
  deriving TypeName

theorem t : 1 + 1 = 2 := rfl

--- derive decide
inductive C | r | g | b
  deriving DecidableEq, Repr
theorem t : C.r ≠ C.g := by decide

--- derive decide rec
inductive Tr | leaf | node (l r : Tr)
  deriving DecidableEq
theorem t : Tr.leaf ≠ .node .leaf .leaf := by decide

--- derive param
inductive W (α : Type) | a (x : α) | b (l : List α)
  deriving DecidableEq, Repr, BEq, Hashable

theorem t : 1 + 1 = 2 := rfl

--- derive standalone
inductive C | r | g
deriving instance DecidableEq, Repr for C
theorem t : C.r ≠ C.g := by decide

--- beq decide
structure S where
  x : Nat
  y : Nat
  deriving BEq, DecidableEq
theorem t : ((⟨1,2⟩ : S) == ⟨1,2⟩) = true := by decide

--- namespace
namespace A
def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [2] := rfl
end A

--- section
section
variable (k : Nat)
def f (a : List Nat) := a.map (· + k)
end
theorem t : f 1 [1] = [2] := rfl

--- nested scopes
namespace A
section B
namespace C.D
def f (a : List Nat) := a.map (· + 1)
end C.D
end B
def g (a : List Nat) := C.D.f a.reverse
end A
theorem t : A.g [1] = [2] := rfl

--- noncomputable section
noncomputable section
def f (a : List Nat) := a.map (· + 1)
end
theorem t : f [1] = [2] := rfl

--- noncomputable def
noncomputable def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [2] := rfl

--- open in
open List in
def f (a : List Nat) := map (· + 1) a
theorem t : f [1] = [2] := rfl

--- mutual
mutual
def ev : Nat → Bool | 0 => true | n+1 => od n
def od : Nat → Bool | 0 => false | n+1 => ev n
end
theorem t : ev 4 = true := by decide

--- mutual-lists
mutual
def f1 : List Nat → List Nat | [] => [] | x :: xs => (f2 xs).map (· + x)
def f2 : List Nat → List Nat | [] => [] | x :: xs => (f1 xs).reverse ++ [x]
end
theorem t : f1 [] = [] := by simp [f1]

--- where
def f (a : List Nat) : Nat := go a 0
where go : List Nat → Nat → Nat
  | [], acc => acc
  | x :: xs, acc => go xs (acc + [x].length)
theorem t : f [] = 0 := rfl

--- let rec
def f (n : Nat) : List Nat :=
  let rec go : Nat → List Nat → List Nat
    | 0, acc => acc.reverse
    | k+1, acc => go k (k :: acc)
  go n []
theorem t : f 0 = [] := rfl

--- private
private def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [2] := rfl

--- protected
protected def Nat.foo (a : Nat) := (List.range a).length
theorem t : Nat.foo 3 = 3 := by decide

--- structure default
structure S where
  xs : List Nat := [1,2].map (· + 1)
  n : Nat := xs.length
theorem t : ({} : S).n = 2 := by decide

--- class
class Shape (α : Type) where
  area : α → Nat
  twice : α → Nat := fun a => [area a, area a].foldl (· + ·) 0
instance : Shape Nat := { area := fun n => n * n }
theorem t : Shape.twice (2 : Nat) = 8 := by decide

--- class extends
class A (α : Type) where
  op : α → α → α
class B (α : Type) extends A α where
  e : α
  law : ∀ x, op e x = x
instance : B Nat := { op := (· + ·), e := 0, law := by simp }
theorem t : B.e = (0 : Nat) := rfl

--- local notation
local notation "⟪" a "⟫" => List.length a
theorem t : ⟪[1,2]⟫ = 2 := rfl

--- notation
notation:65 a " ⊞ " b => a ++ b
theorem t : ([1] ⊞ [2]) = [1,2] := rfl

--- infixl
def app (a b : List Nat) := a ++ b.map id
infixl:65 " ⊞ " => app
theorem t : ([1] ⊞ [2]) = [1,2] := rfl

--- macro tactic
macro "triv" : tactic => `(tactic| first | rfl | simp | omega)
theorem t (a b : Nat) : a + b = b + a := by triv

--- macro term
macro "two" : term => `(2)
theorem t : 1 + 1 = two := rfl

--- macro arg
macro "dup" x:term:max : term => `($x + $x)
theorem t : dup 2 = 4 := rfl

--- syntax+rules
syntax "mytac" : tactic
macro_rules | `(tactic| mytac) => `(tactic| omega)
theorem t (a b : Nat) : a + b = b + a := by mytac

--- macro+def
macro "triv" : tactic => `(tactic| first | rfl | simp | omega)
def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [2] := by triv

--- check
def f (a : List Nat) := a.map (· + 1)
#check f
#print f
#reduce f [1]
theorem t : f [1] = [2] := rfl

--- example
def f (a : List Nat) := a.map (· + 1)
example : f [1] = [2] := rfl
theorem t : f [1,2] = [2,3] := rfl

--- opaque fn noncomp choice
noncomputable def pick (p : Nat → Prop) (h : ∃ n, p n) : Nat := Classical.choose h
theorem t (p : Nat → Prop) (h) : p (pick p h) := Classical.choose_spec h

--- choice no kw
open Classical in
noncomputable def m (p : Prop) : Nat := if p then 1 else 0
theorem t : m True = 1 := by simp [m]

--- fun_induction
def len : List Nat → Nat | [] => 0 | _ :: xs => len xs + 1
theorem t (a : List Nat) : len a = a.length := by
  fun_induction len a <;> simp_all

--- functional induction
def half : Nat → Nat | 0 => 0 | 1 => 0 | n+2 => half n + 1
theorem t (n : Nat) : half n ≤ n := by
  induction n using half.induct <;> simp_all [half] <;> omega

--- match
def cls (n : Nat) : String := match n with | 0 => "z" | 1 | 2 => "s" | _ => toString n
theorem t : cls 0 = "z" := rfl

--- inline attr
@[inline, reducible] def f (a : List Nat) := a.length
@[specialize] def g (h : Nat → Nat) (a : List Nat) := a.map h
theorem t : f [1] = 1 := rfl

--- ext
@[ext] structure P where
  x : Nat
  y : List Nat
theorem t (a b : P) (h : a.x = b.x) (k : a.y = b.y) : a = b := P.ext h k

--- coe
structure Pos where
  n : Nat
  h : n > 0
instance : Coe Pos Nat := ⟨Pos.n⟩
def f (p : Pos) : Nat := (p : Nat) + 1
theorem t (p : Pos) : f p = p.n + 1 := rfl

--- monad
def St (σ α : Type) := σ → α × σ
instance : Monad (St σ) := { pure := fun a s => (a, s), bind := fun x f s => let (a, s') := x s; f a s' }
theorem t (s : Nat) : (pure 1 : St Nat Nat) s = (1, s) := rfl

--- IO main
def main : IO Unit := IO.println "hi"
theorem t : 1 + 1 = 2 := rfl

--- IO list
def main (args : List String) : IO Unit := do
  for a in args do IO.println a.length
theorem t : 1 + 1 = 2 := rfl

--- except
def f (n : Nat) : Except String Nat := if n = 0 then throw "zero" else pure (n - 1)
theorem t : f 0 = .error "zero" := rfl

--- char
def up (s : String) : List Char := s.toList.map Char.toUpper
theorem t : 1 + 1 = 2 := rfl

--- fin
def fs (n : Nat) : List (Fin n) := List.finRange n
theorem t : (fs 2).length = 2 := by decide

--- bitvec
def f (x : BitVec 8) : BitVec 8 := x.rotateLeft 1 ^^^ x
theorem t : f 0#8 = 0#8 := by decide

--- uint
def f (x : UInt8) : UInt8 := x * 3 + 1
theorem t : f 1 = 4 := by decide

--- float
def f (x : Float) : Float := x * 2.0
theorem t : 1 + 1 = 2 := rfl

--- quot
def Z2 := Quot (fun (a b : Nat) => a % 2 = b % 2)
def Z2.mk (n : Nat) : Z2 := Quot.mk _ n
theorem t : Z2.mk 0 = Z2.mk 2 := Quot.sound rfl

--- subtype
def Ev := { n : Nat // n % 2 = 0 }
def Ev.add (a b : Ev) : Ev := ⟨a.1 + b.1, by have := a.2; have := b.2; omega⟩
theorem t : 1 + 1 = 2 := rfl

--- inductive pred
inductive Ev : Nat → Prop | z : Ev 0 | s (n) : Ev n → Ev (n+2)
theorem t : Ev 4 := .s _ (.s _ .z)

--- nested inductive
inductive Ro | node (c : List Ro)
def Ro.size : Ro → Nat | node c => 1 + (c.attach.map (fun ⟨x, _⟩ => x.size)).sum
theorem t : 1 + 1 = 2 := rfl

--- casesOn
def pr (n : Nat) : Nat := Nat.casesOn n 0 (fun m => m)
theorem t : pr 3 = 2 := rfl

--- rec
def ad (n : Nat) : Nat := Nat.rec 0 (fun _ ih => ih + 1) n
theorem t : ad 3 = 3 := rfl

--- rec noncomp
noncomputable def ad (n : Nat) : Nat := Nat.rec 0 (fun _ ih => ih + 1) n
theorem t : ad 3 = 3 := rfl

--- hashmap-less sort
def so (a : List Nat) : List Nat := a.mergeSort
theorem t : 1 + 1 = 2 := rfl

--- insertion sort
def ins (x : Nat) : List Nat → List Nat | [] => [x] | y :: ys => if x ≤ y then x :: y :: ys else y :: ins x ys
def srt (a : List Nat) := a.foldr ins []
theorem t : srt [3,1,2] = [1,2,3] := by decide

--- theorem by decide list
def primes := (List.range 20).filter (fun n => n ≥ 2 ∧ ∀ m ∈ List.range n, m ≥ 2 → n % m ≠ 0)
theorem t : primes = [2,3,5,7,11,13,17,19] := by decide

--- simp arith def
def sq (n : Nat) := n * n
@[simp] theorem sq_zero : sq 0 = 0 := rfl
theorem t : sq 0 + 1 = 1 := by simp

--- private ns inst
namespace M
private structure S where
  x : List Nat
  deriving Repr
instance : Inhabited S := ⟨⟨[1].map id⟩⟩
end M
theorem t : 1 + 1 = 2 := rfl

--- irreducible
@[irreducible] def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [2] := by unfold f; rfl

--- attribute
def f (a : List Nat) := a.map (· + 1)
attribute [simp] f
theorem t : f [1] = [2] := by simp

--- set_option
set_option autoImplicit true
def f (a : List α) := a.reverse
theorem t (a : List α) : f (f a) = a := by simp [f]

--- universe
universe u
def f {α : Type u} (a : List α) := a.reverse.map id
theorem t {α : Type u} (a : List α) : f a = a.reverse := by simp [f]

--- grind def
@[grind] def f (a : List Nat) := a ++ a
theorem t (a : List Nat) : (f a).length = a.length + a.length := by grind

--- string interp
def f (n : Nat) : String := s!"{n} and {n+1}"
theorem t : f 1 = f 1 := rfl

--- while
def c (n : Nat) : Nat := Id.run do
  let mut k := n
  while k > 1 do k := k / 2
  return k
theorem t : 1 + 1 = 2 := rfl

--- stateM
def tick : StateM Nat Unit := modify (· + 1)
theorem t : (tick.run 1).2 = 2 := rfl

--- decreasing arr
def sm (a : Array Nat) (i : Nat := 0) : Nat := if h : i < a.size then a[i] + sm a (i+1) else 0
termination_by a.size - i
theorem t : 1 + 1 = 2 := rfl

--- set def
def S (α : Type) := α → Prop
instance : Membership α (S α) := ⟨fun s a => s a⟩
def S.union (a b : S α) : S α := fun x => x ∈ a ∨ x ∈ b
instance : Union (S α) := ⟨S.union⟩
theorem t (a b : S α) (x : α) (h : x ∈ a) : x ∈ a ∪ b := Or.inl h

--- partial_fixpoint
def find (p : Nat → Bool) (n : Nat) : Option Nat := if p n then some n else find p (n+1)
partial_fixpoint
theorem t (p n) : find p n = if p n then some n else find p (n+1) := by rw [find]

--- partial inhabited
partial def collatz (n : Nat) : List Nat := if n ≤ 1 then [n] else n :: collatz (if n % 2 = 0 then n / 2 else 3 * n + 1)
theorem t : 1 + 1 = 2 := rfl

--- termination structural
def f : Nat → List Nat | 0 => [] | n+1 => (f n).map (· + 1)
termination_by structural n => n
theorem t : f 0 = [] := rfl

--- match_pattern
@[match_pattern] def one : Nat := 1
def g : Nat → List Nat | one => [1].reverse | _ => []
theorem t : g 1 = [1] := rfl

--- nonrec
nonrec def List.length' (a : List Nat) : Nat := a.length + [0].length

theorem t : 1 + 1 = 2 := rfl

--- scoped inst
namespace A
scoped instance : Add (List Nat) := ⟨(· ++ ·)⟩
end A
open A
theorem t : ([1] + [2] : List Nat) = [1,2] := rfl

--- local inst
local instance : Mul (List Nat) := ⟨fun a b => a.flatMap (fun x => b.map (x * ·))⟩
theorem t : ([2] * [3] : List Nat) = [6] := by decide

--- instance by
instance : Inhabited (List Nat → List Nat) := by exact ⟨List.reverse⟩
theorem t : 1 + 1 = 2 := rfl

--- def by
def f (a : List Nat) : List Nat := by exact a.map (· + 1)
theorem t : f [1] = [2] := rfl

--- macro_inline
@[macro_inline] def oor (a b : Bool) : Bool := match a with | true => true | false => b
theorem t : oor true false = true := rfl

--- always_inline
@[always_inline, inline] def f (a : List Nat) := a.map (· + 1)
theorem t : 1 + 1 = 2 := rfl

--- noinline
@[noinline] def f (a : List Nat) := a.map (· + 1)
@[never_extract] def g (a : List Nat) := a.map (· + 1)
theorem t : 1 + 1 = 2 := rfl

--- class abbrev
class abbrev AddMul (α : Type) := Add α, Mul α
def f {α} [AddMul α] (a b : α) := [a + b, a * b].map id
theorem t : 1 + 1 = 2 := rfl

--- computed field
inductive E | c (n : Nat) | a (x y : E)
with
  @[computed_field] sz : E → Nat
    | .c _ => 1
    | .a x y => x.sz + y.sz
theorem t : (E.c 1).sz = 1 := rfl

--- declare_syntax_cat
declare_syntax_cat foo
syntax "a" : foo
syntax "[foo|" foo "]" : term
macro_rules | `([foo| a]) => `(1)
theorem t : [foo| a] = 1 := rfl

--- macro cond
macro_rules | `(tactic| rfl) => `(tactic| eq_refl)
theorem t : 1 + 1 = 2 := by rfl

--- macro optional
syntax "foo" ("!")? term:max : term
macro_rules | `(foo $x) => `($x + 1) | `(foo ! $x) => `($x + 2)
theorem t : foo ! 1 = 3 := rfl

--- macro seq
syntax "seq" tacticSeq : tactic
macro_rules | `(tactic| seq $t) => `(tactic| ($t))
theorem t : 1 + 1 = 2 := by seq rfl

--- notation3 binder
notation "∃₂ " x ", " p => ∃ x : Nat, p

theorem t : 1 + 1 = 2 := rfl

--- set_option compiler
set_option compiler.extract_closed false
def f (a : List Nat) := a.map (· + 1)

theorem t : 1 + 1 = 2 := rfl

--- inductive deriving ns
namespace X
inductive C | a | b deriving Repr, DecidableEq
def all : List C := [.a, .b].reverse
theorem t : all.length = 2 := by decide
end X

--- deriving Ord use
inductive C | a | b deriving Ord
instance : LT C := ltOfOrd
instance : LE C := leOfOrd
theorem t : C.a < C.b := by decide

--- typed hole ok
def compose {α β γ} (g : β → γ) (f : α → β) : α → γ := g ∘ f
theorem t : compose (· + 1) (· * 2) 3 = 7 := rfl

--- functor
inductive Tr (α : Type) | leaf | node (l : Tr α) (v : α) (r : Tr α)
def Tr.map (f : α → β) : Tr α → Tr β | leaf => leaf | node l v r => node (l.map f) (f v) (r.map f)
instance : Functor Tr := ⟨Tr.map, fun x => Tr.map (fun _ => x)⟩
def Tr.toList : Tr α → List α | leaf => [] | node l v r => l.toList ++ [v] ++ r.toList
theorem t : (Tr.map (· + 1) (Tr.node .leaf 1 .leaf)).toList = [2] := by decide

--- stream
structure Stream' (α : Type) where
  at' : Nat → α
def take (s : Stream' α) (n : Nat) : List α := (List.range n).map s.at'

theorem t : 1 + 1 = 2 := rfl

--- tc outparam
class Coll (c : Type) (e : outParam Type) where
  empty : c
  ins : e → c → c
  toL : c → List e
instance : Coll (List Nat) Nat := ⟨[], List.cons, id⟩
theorem t : Coll.toL (Coll.ins 1 (Coll.empty : List Nat)) = [1] := rfl

--- decide inst big
instance decAll (p : Nat → Prop) [DecidablePred p] : (n : Nat) → Decidable (∀ k, k < n → p k)
  | 0 => isTrue (fun k h => absurd h (Nat.not_lt_zero k))
  | n+1 => match decAll p n, (inferInstance : Decidable (p n)) with
    | isTrue h, isTrue hn => isTrue (fun k hk => by
        rcases Nat.lt_or_eq_of_le (Nat.le_of_lt_succ hk) with h' | h'
        · exact h k h'
        · exact h' ▸ hn)
    | isFalse h, _ => isFalse (fun g => h (fun k hk => g k (Nat.lt_succ_of_lt hk)))
    | _, isFalse h => isFalse (fun g => h (g n (Nat.lt_succ_self n)))
theorem t : ∀ k, k < 5 → k * 2 = k + k := by decide

--- lemma aux matcher
def f : List Nat → List Nat → Nat
  | [], _ => 0 | x :: xs, y :: ys => x * y + f xs ys | _, [] => 1
theorem t : f [] [] = 0 := by simp [f]

--- noncomputable twice
noncomputable section
noncomputable def f (a : List Nat) := a.map (· + 1)
end

theorem t : 1 + 1 = 2 := rfl

--- private mutual
namespace Z
mutual
private inductive A | nil | cons (b : B)
private inductive B | mk (a : A)
end
mutual
private def A.n : A → Nat | .nil => 0 | .cons b => b.n + 1
private def B.n : B → Nat | .mk a => a.n + [1].length
end
theorem t : (A.cons (.mk .nil)).n = 2 := by decide
end Z

--- coinductive
coinductive Inf (r : Nat → Nat → Prop) : Nat → Prop | step (a b) : r a b → Inf r b → Inf r a

theorem t : 1 + 1 = 2 := rfl

--- inherit docs
/-- doc -/
@[inherit_doc List.map] def f (a : List Nat) := a.map (· + 1)

theorem t : 1 + 1 = 2 := rfl

--- deprecated
@[deprecated "x" (since := "2024-01-01")] def f (a : List Nat) := a.map (· + 1)

theorem t : 1 + 1 = 2 := rfl

--- user attr simp set
@[simp] def f (a : List Nat) := a ++ []
@[simp] theorem f_id (a : List Nat) : f a = a := by simp [f]
theorem t (a : List Nat) : f (f a) = a := by simp

--- conv/def thunk
def th : Thunk Nat := Thunk.mk (fun _ => [1].length)
def tk : Task Nat := Task.spawn (fun _ => [1].length)

theorem t : 1 + 1 = 2 := rfl

--- ref
def r : BaseIO Nat := do let r ← IO.mkRef 0; r.modify (· + 1); r.get

theorem t : 1 + 1 = 2 := rfl

--- string ops
def w (s : String) := (s.splitOn " ").map String.length
def rv (s : String) : String := String.ofList s.toList.reverse

theorem t : 1 + 1 = 2 := rfl

--- hashing
def h (s : String) : UInt64 := hash s ^^^ mixHash (hash 1) (hash 2)

theorem t : 1 + 1 = 2 := rfl

--- array sort
def f (a : Array Nat) := (a.qsort (· < ·)).foldl (· + ·) 0
def g (a : Array Nat) := Id.run do
  let mut b := a
  for h : i in [0:a.size] do b := b.push (a[i]'(Membership.get_elem_helper h rfl))
  return b

theorem t : 1 + 1 = 2 := rfl

--- try catch
def f : ExceptT String (StateM Nat) Nat := do
  try
    if (← get) > 3 then throw "a"
    return 1
  catch _ => return 2
  finally set 1

theorem t : 1 + 1 = 2 := rfl

--- sum in do notation
def sumTo (n : Nat) : Nat := Id.run do
  let mut s := 0
  for i in [0:n] do s := s + i
  return s
theorem t : sumTo 4 = sumTo 4 := rfl
