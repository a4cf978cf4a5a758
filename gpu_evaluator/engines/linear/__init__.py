"""A hashed linear model of programs, line by line: the evaluator of machines without a GPU and without models.

It shows how an evaluator behaves. On programs unlike those it was trained on its predictions mean nothing, and it says
so wherever it shows.
"""
