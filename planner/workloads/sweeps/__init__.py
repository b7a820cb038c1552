"""Plans of many workloads, on many days, under many scenarios: cells, who computes them, and the table of results."""
