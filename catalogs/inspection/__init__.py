"""What is known of a catalog: its health, what changed between two, all of one instance type."""
