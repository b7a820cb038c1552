"""Libraries that an extra of the package brings, and what to say where one is not installed.

The main job, `planner optimize`, needs none of them (docs/adr/0012-extras.md).
"""

from __future__ import annotations

PACKAGE = "ml-training-planner"
EXTRA_OF = {
    "boto3": "aws",
    "botocore": "aws",
    "google": "gcp",
    "azure": "azure",
    "duckdb": "review",
    "sqlglot": "review",
    "xlsxwriter": "workbook",
    "distributed": "dask",
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
