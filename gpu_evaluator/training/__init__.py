"""Labelling programs with Lean, and training the models that predict it."""
