"""What developers run on a checkout: building the bundled data from collected lists. Not in the wheel."""
