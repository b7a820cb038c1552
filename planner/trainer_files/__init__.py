"""What the files that people train with already say, as a workload: read as data, never executed or downloaded."""
