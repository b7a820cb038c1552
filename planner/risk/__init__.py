"""Interruption risk of spot capacity."""
