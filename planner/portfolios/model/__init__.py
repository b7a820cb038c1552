"""The MILP of a portfolio, one constraint family a file. Arrays of candidates and limits come in."""
