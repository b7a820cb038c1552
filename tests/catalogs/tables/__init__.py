"""What tables answers, and what may come in: to be written."""
