"""Pipelines: tasks that feed each other data, placed and timed together."""
