"""How well an evaluator predicts Lean, on labelled programs (learning-lean-feedback, Section 5, Appendices D and G)."""
