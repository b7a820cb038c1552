"""Seeded instance generators shared by tests and benchmarks, one module per family."""
