"""Benchmarks: `python -m benchmarks.NAME` prints figures; nothing here gates by time."""
