"""Where the SQL of the KPIs runs: DuckDB by default, another engine through sqlglot."""
