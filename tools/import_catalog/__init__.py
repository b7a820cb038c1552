"""Builds the bundled catalog from collected price lists and specification tables; never used at run time."""

from tools.import_catalog.build import ImportReport, import_catalog

__all__ = ["ImportReport", "import_catalog"]
