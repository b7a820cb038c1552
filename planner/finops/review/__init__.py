"""The monthly review of a bill."""
