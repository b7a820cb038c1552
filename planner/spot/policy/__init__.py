"""Policies: what to do next with a job that may run on spot or on-demand and has a deadline."""
