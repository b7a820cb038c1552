"""Snapshots on disk: read, check, cache, write, keep as history, and the catalog as known on a day."""
