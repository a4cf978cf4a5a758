"""Feedback traces: programs with Lean's goal states and errors inserted as comments. Pure functions only.

learning-lean-feedback, Section 4.2 and Appendices B, C and D.
"""
