"""What pipelines answers, and what may come in: to be written."""
