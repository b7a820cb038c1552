"""What is asked and answered: a mixed-integer program as a value, its exact reductions, options, solutions, text."""
