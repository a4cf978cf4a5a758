"""How well the evaluator predicts Lean: windows of paired verdicts, the audit sample, the guard."""
