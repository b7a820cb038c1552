"""One thin module per command; `planner.cli` imports them lazily."""
