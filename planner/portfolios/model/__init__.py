"""The MILP of a portfolio, a function per constraint family. Arrays of candidates and limits come in."""
