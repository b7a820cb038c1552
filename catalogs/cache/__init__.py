"""Compiled copies on disk, of whatever package: where they lie, how they are written; bytes come in."""
