"""The workload: what must be trained, read from YAML, checked, completed. Imports pydantic and yaml only."""
