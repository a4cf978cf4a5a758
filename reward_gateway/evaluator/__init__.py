"""The learned evaluator as the gateway sees it: over HTTP, one of several, and never trusted to be there."""
