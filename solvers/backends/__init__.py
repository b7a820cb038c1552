"""Solver backends behind one protocol."""
