"""Errors of the catalog. The command line turns each into a message and exit code 4 (2 for bad user input)."""

from __future__ import annotations


class CatalogError(Exception):
    """A catalog or table is missing, unreadable, stale or refused; the message names the place and the remedy."""


class CatalogInputError(CatalogError):
    """A user's own file or flag (static offers, overlays, filters) is wrong; lists every fault."""
