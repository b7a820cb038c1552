"""Fit the bundled spot hazards from run-length traces and print what was measured.

`python -m benchmarks.fit_spot --traces DIR [--out planner/data/spot/hazards.csv]`
"""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.risk.hazards import HazardModel, fit_hazards
from planner.risk.trace import ZoneTrace
from planner.risk.traces.run_length import read_run_length

# Gangs a file is cut at: every doubling up to what its probes asked for.
_GANGS = {1: (1,), 4: (1, 2, 4), 16: (1, 2, 4, 8, 16)}


def traces_of(directory: Path) -> list[ZoneTrace]:
    """Every file of `directory` at every gang it can answer for."""
    out: list[ZoneTrace] = []
    for path in sorted(directory.glob("*.json")):
        requested = read_run_length(path)[0].gang
        for gang in _GANGS[requested]:
            out += read_run_length(path, gang=gang)
    return out


def main() -> None:
    """Fit, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("planner/data/spot/hazards.csv"))
    given = parser.parse_args()
    model: HazardModel = fit_hazards(traces_of(given.traces))
    model.save(given.out)
    print(f"{len(model.cells)} cells, {sum(c.hours for c in model.cells):.0f} zone-hours -> {given.out}")


if __name__ == "__main__":
    main()
