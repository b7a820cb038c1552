"""Refresh: fetch from several providers, check every row, store per provider, and report what became of it."""
