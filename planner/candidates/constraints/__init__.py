"""Limits and facts that remove candidates, one file each: schema path, mask, relaxation, fleet row and words."""
