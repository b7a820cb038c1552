"""Fit the bundled spot hazards from run-length traces and print what was measured.

`python -m benchmarks.fit_spot --traces DIR [--out planner/data/spot/hazards.csv]`
"""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.spot.hazards import HazardModel, fit_hazards
from planner.spot.trace import ZoneTrace
from planner.spot.traces.run_length import read_run_length

# Gangs a file is cut at: every doubling up to what its probes asked for.
_GANGS = {1: (1,), 4: (1, 2, 4), 16: (1, 2, 4, 8, 16)}


def traces_of_file(path: Path) -> list[ZoneTrace]:
    """A file at every gang it can answer for."""
    requested = read_run_length(path)[0].gang
    return [trace for gang in _GANGS[requested] for trace in read_run_length(path, gang=gang)]


def main() -> None:
    """Fit, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("planner/data/spot/hazards.csv"))
    given = parser.parse_args()
    model: HazardModel = fit_hazards(
        [t for path in sorted(given.traces.glob("*.json")) for t in traces_of_file(path)]
    )
    model.save(given.out)
    print(f"{len(model.cells)} cells, {sum(c.hours for c in model.cells):.0f} zone-hours -> {given.out}")


if __name__ == "__main__":
    main()
