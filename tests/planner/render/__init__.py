"""What render answers, and what may come in: to be written."""
