"""What carbon answers, and what may come in: to be written."""
