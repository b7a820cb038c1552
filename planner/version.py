"""The version of the package; equal to that of pyproject.toml by a test."""

__version__ = "0.2.0"
