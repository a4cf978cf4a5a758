import Lake
open Lake DSL

package «lean-reward» where
  leanOptions := #[⟨`autoImplicit, false⟩]

@[default_target]
lean_lib LeanReward

@[default_target]
lean_exe «check-workflow» where
  root := `Main
