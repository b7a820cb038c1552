"""Whose cost is it by your own rules: virtual tags, shared costs split, and a statement for each team."""
