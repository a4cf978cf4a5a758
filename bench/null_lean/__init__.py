"""A Lean that does nothing, to measure what stands around Lean, ours and others': `folder.lay_out` makes it."""
