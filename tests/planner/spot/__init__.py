"""What spot answers, and what may come in: to be written."""
