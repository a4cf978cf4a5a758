"""Measures of predicted verdicts against Lean's, over flat arrays. Pure; they need numpy."""
