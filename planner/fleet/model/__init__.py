"""The MILP of a fleet, one constraint family a file. Arrays of offers and limits come in."""
