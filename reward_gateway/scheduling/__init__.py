"""Which proofs Lean sees first: predicted check times, and policies that order the candidates of a batch."""
