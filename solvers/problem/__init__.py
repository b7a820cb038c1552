"""Problem and solution: a mixed-integer program as a value, its exact reductions, options, solutions, text."""
