"""What market answers, and what may come in: to be written."""
