"""Schedules: which pools run a job in which hours."""
