"""Classifiers as one forward pass of Hugging Face transformers: the one-token model, or a sequence classifier."""
