"""Families of the solver benchmark, one module each; see `base`."""
