"""The workload file: schema, YAML loading with positions, presets."""
