"""Serving fleets: which machines answer requests of several size classes."""
