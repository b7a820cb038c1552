"""Replays of spot policies on recorded or generated availability: many jobs, many starts, with honest intervals."""
