"""Errors of the catalog; the command line makes each a message and exit code 4 (2 for bad user input)."""

from __future__ import annotations


class CatalogError(Exception):
    """A catalog or table is missing, unreadable, stale or refused; the message names place and remedy."""


class CatalogInputError(CatalogError):
    """A user's own file or flag (static offers, overlays, filters) is wrong; lists every fault."""
