"""Spot risk: interruptions, lost work, waits, and the chance to meet a deadline."""
