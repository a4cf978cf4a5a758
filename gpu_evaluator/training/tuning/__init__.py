"""Training of the learned evaluators on torch and transformers (learning-lean-feedback, Section 4 and Appendix B)."""
