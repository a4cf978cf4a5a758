"""Other programs' protocols: one sample a call joined into batches, and raw answers of Lean."""
