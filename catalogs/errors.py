"""Errors of the catalog; the command line makes each a message and exit code 4 (2 for bad user input).

Also what is said of a library that an extra of the package brings and that is not installed (docs/adr/0012-extras.md).
"""

from __future__ import annotations


class CatalogError(Exception):
    """A catalog or table is missing, unreadable, stale or refused; the message names place and remedy."""


class CatalogInputError(CatalogError):
    """A user's own file or flag (static offers, overlays, filters) is wrong; lists every fault."""


class CatalogTrustError(CatalogInputError):
    """A catalog that must be signed by a pinned key is refused; the classes below say why."""


class UnsignedCatalogError(CatalogTrustError):
    """There is no statement of a signer beside the catalog."""


class ForeignCatalogError(CatalogTrustError):
    """The statement is signed by another key than the pinned one."""


class TamperedCatalogError(CatalogTrustError):
    """The signature is no signature of the statement, or the catalog is not the one that was signed."""


class ExpiredCatalogError(CatalogTrustError):
    """The statement no longer holds, or does not hold yet."""


class ReplayedCatalogError(CatalogTrustError):
    """The statement is older than one that this machine has seen."""


PACKAGE = "ml-training-planner"
EXTRA_OF = {
    "boto3": "aws",
    "botocore": "aws",
    "cryptography": "sign",
    "google": "gcp",
    "azure": "azure",
    "duckdb": "review",
    "sqlglot": "review",
    "xlsxwriter": "workbook",
    "distributed": "dask",
    "ray": "ray",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "gpuhunt": "gpuhunt",
    "pyspark": "spark",
    "statsforecast": "forecast",
}
"""Extra by importable top-level package."""


def install_command(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install '{PACKAGE}[{extra}]'"


def missing_extra(error: ImportError) -> str | None:
    """What to say of a library that an extra brings and that is not installed; None for any other failed import.

    Args:
        error: what the import raised.
    """
    package = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(package)
    if extra is None:
        return None
    return f"{error.name} is not installed; install it: {install_command(extra)}"
