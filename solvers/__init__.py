"""Linear algebra only: mixed-integer problems, backends and solutions (no clouds, no money)."""
