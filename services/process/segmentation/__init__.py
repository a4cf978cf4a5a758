"""Assigning steps to the stages of a workflow, one decision at a time (lean4agenticrl, Section 2.3.1, Figure 4).

Pure: the turns, the cursor with its legal moves, the question and what an answer means. Who asks is not part of it.
"""
