"""Importers of availability traces; nothing is imported before it is used."""
