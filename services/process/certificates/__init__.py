"""Statements about a rollout that a Lean kernel can check: segmentation, stage rewards, penalties and rewards.

The Lean library of `lean/` defines the checkers and proves what they mean; a certificate is a theorem
`claim.holds = true := by decide +kernel` over it, and holds when Lean accepts the program that `program` makes of it.
Its claim is packed into one number; the library proves that it holds exactly when the claim that it packs does
(`holds_eq`).
"""
