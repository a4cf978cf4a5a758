"""Answers on their way out: compressed as the client likes, in pieces, and counted while they wait."""
