"""Mixed-integer formulations, one constraint family per file."""
