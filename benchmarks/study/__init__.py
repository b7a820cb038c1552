"""The savings study: what the planner saves on real training runs, against what their owners used."""
