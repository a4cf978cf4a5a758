-- Dishonest or wrong programs with helper definitions: none may be valid. Laid out as honest.lean.
--- sorry in def
def f (a : List Nat) : List Nat := sorry
theorem t : f [1] = f [1] := rfl

--- wrong
def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [3] := rfl

--- wrong decide
def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [3] := by decide

--- implemented_by
def bad (_ : Nat) : Nat := 1
@[implemented_by bad] def f (n : Nat) : Nat := [n].length - 1
theorem t : f 0 = 1 := by native_decide

--- native def
def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [2] := by native_decide

--- reduceBool
def f : Bool := true
theorem t : f = true := Lean.ofReduceBool f true rfl

--- extern
@[extern "lean_nat_add"] def f (a b : Nat) : Nat := a * b
theorem t : f 2 3 = 5 := by native_decide

--- axiom via def
axiom x : False
def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [3] := x.elim

--- non-terminating
def f (n : Nat) : Nat := f (n + 1) + 1
theorem t : f 0 = 0 := rfl

--- unsafe
unsafe def f : False := f
theorem t : False := f

--- partial false
partial def f (n : Nat) : 1 = 2 := f n
theorem t : 1 = 2 := f 0

--- type error def
def f (a : List Nat) : Nat := a.map (· + 1)
theorem t : 1 = 1 := rfl

--- opaque csimp
def g (n : Nat) : Nat := n
@[csimp] theorem x : @g = @g := rfl
theorem t : g 1 = 2 := by native_decide

--- fake instance
inductive C | r | g
instance : DecidableEq C := fun _ _ => isTrue sorry
theorem t : C.r = C.g := by decide

--- bad deriving
structure S where
  f : Nat → Nat
  deriving DecidableEq
theorem t : 1 + 1 = 2 := rfl

--- noncomp native
noncomputable def c : Nat := Classical.choice ⟨1⟩
theorem t : c = 1 := by native_decide

--- skipKernel
set_option debug.skipKernelTC true
def f (a : List Nat) := a.map (· + 1)
theorem t : f [1] = [3] := by simp [f]
