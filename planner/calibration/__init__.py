"""The user's measurements: read, stored, and fitted to a correction of predicted step times."""
