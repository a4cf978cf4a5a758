"""beta: whether a stage established its postconditions (lean4agenticrl, Sections 2.3.2 and I.1, Figure 5).

Everything here is pure: what is asked, what an answer says, whether its quotes stand in the record, and how votes are
counted. Who asks the model is not part of it.
"""
