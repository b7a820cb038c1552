"""What a run draws and emits: kWh and kgCO2e of machines in use, with an interval (docs/carbon.md has the formula)."""
