"""What performance answers, and what may come in: to be written."""
