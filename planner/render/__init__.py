"""Plans as table, JSON, CSV, YAML and Markdown."""
