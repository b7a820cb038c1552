"""Errors of the solver layer; every message says what to change."""

from __future__ import annotations


class ModelError(ValueError):
    """The model cannot be handed to a solver safely (bad numbers, bad shapes, a too wide spread)."""


class SpreadError(ModelError):
    """Numbers of the question lie too far apart for any solver: whoever gave them can change them."""


class BackendError(RuntimeError):
    """The requested backend is unknown or not installed."""
