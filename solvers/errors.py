"""Errors of the solver layer; every message says what to change."""

from __future__ import annotations


class ModelError(ValueError):
    """The model cannot be handed to a solver safely (bad numbers, bad shapes, a too wide spread)."""


class BackendError(RuntimeError):
    """The backend asked for is unknown or not installed."""
