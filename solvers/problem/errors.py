"""Errors of the solver layer; every message says what to change."""

from __future__ import annotations


class ModelError(ValueError):
    """The model cannot be handed to a solver safely (bad numbers, bad shapes, a too wide spread)."""


class SpreadError(ModelError):
    """Coefficients of the model differ by too many orders of magnitude for any solver; the caller can change units."""


class BackendError(RuntimeError):
    """The requested backend is unknown or not installed."""
