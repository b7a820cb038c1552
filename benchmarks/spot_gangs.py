"""Share of time up of gangs counted in instances or accelerators: `python -m benchmarks.spot_gangs --traces DIR`.

Recorded gangs of 8 and 16 instances of one accelerator are asked for as one and two instances of eight, a size that was
never recorded. Hazards are fitted to the other files and to the first half of the file that is scored; the error is
the mean distance from the share of time up in its second half.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from benchmarks.fit_spot import traces_of_file
from benchmarks.spot_forecast import half_of
from planner.spot.hazards import fit_hazards
from planner.spot.hazards_cells import family_of
from planner.spot.policy.job import SpotZone

EACH = 8
FAMILIES = ("p3", "a3")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    given = parser.parse_args()
    files = {path.name: traces_of_file(path) for path in sorted(given.traces.glob("*.json"))}
    errors: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for name, own in files.items():
        others = [trace for other, traces in files.items() if other != name for trace in traces]
        model = fit_hazards([*others, *(half_of(trace, 0) for trace in own)])
        for trace in own:
            family = family_of(trace.instance_type)
            if family not in FAMILIES or trace.gang not in (EACH, 2 * EACH):
                continue
            up = float(half_of(trace, 1).up.mean())
            for counted, each in (("instances", 0), ("accelerators", EACH)):
                size = f"{family}-of-eight"
                zone = SpotZone(
                    trace.zone, trace.region, size, 1.0, trace.provider, trace.gang // EACH, accelerators=each
                )
                said = model.table_for(zone).availability_ratio
                errors[family, trace.gang, counted].append(abs(said - up))
    print("| family | accelerators | gangs counted in | zones | error of the share of time up |")
    print("|---|---:|---|---:|---:|")
    for (family, gang, counted), found in sorted(errors.items()):
        print(f"| {family} | {gang} | {counted} | {len(found)} | {sum(found) / len(found):.2f} |")


if __name__ == "__main__":
    main()
