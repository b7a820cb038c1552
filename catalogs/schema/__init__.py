"""The data dictionary (columns.csv): names, types, units and bounds of every catalog table."""
