"""Bounds that hold in exact arithmetic, from the duals of any solver; programs come in."""
