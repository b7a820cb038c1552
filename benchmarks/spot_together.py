"""How zones are up and down together, in records and in futures, by the hours between the two looks.

`python -m benchmarks.spot_together --traces DIR [--weather REGION_SD COMMON_SD HOURS]`

The figure is the correlation of up (1) and down (0) per tick of 0.1 h between two zones of an instance type, the second
seen some hours after the first: products of both, less their means over windows of four days, summed over all windows
and pairs of a record and divided by the sum of the root of both variances. Levels of days, which futures hold for a
job, so have no part in it. Each record (file, type, gang) counts the same. Futures are drawn with hazards of the same
days, so that only what moves zones together differs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.fit_spot import traces_of_file
from catalogs.tables.table import Bools, Floats
from planner.spot.futures import sample_futures
from planner.spot.hazards import Weather, fit_hazards, load_weather
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.trace import ZoneTrace

LAGS_HOURS = (0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 12.0)
_WINDOW = 960  # ticks of 0.1 h
_DRAWS = 4


class Together(NamedTuple):
    """Zones of one type and gang that were seen at the same time.

    Attributes:
        traces: of the zones.
        up: shape `(n_zones, ticks)`.
    """

    traces: Sequence[ZoneTrace]
    up: Bools


def records_of(path: Path) -> list[Together]:
    """Records of a file at one instance and at half of what was asked for, types with two zones or more."""
    found = [trace for trace in traces_of_file(path) if 0.02 < trace.up.mean() < 0.98]
    most = max((trace.gang for trace in found), default=1)
    by_type: dict[tuple[str, int], list[ZoneTrace]] = {}
    for trace in found:
        if trace.gang in (1, max(most // 2, 1)):
            by_type.setdefault((trace.instance_type, trace.gang), []).append(trace)
    out = []
    for traces in by_type.values():
        ticks = min(len(trace.up) for trace in traces)
        if len(traces) > 1 and ticks >= _WINDOW:
            out.append(Together(traces, np.stack([trace.up[:ticks] for trace in traces])))
    return out


def lag_correlation(up: Bools, pairs: Sequence[tuple[int, int]]) -> Floats:
    """Correlation of pairs of zones at each lag, within windows of four days.

    Args:
        up: shape `(n, n_zones, ticks)`: one record, or several futures.
        pairs: numbers of the zone seen first and of the one seen later.
    """
    n, n_zones, ticks = up.shape
    windows = ticks // _WINDOW
    x = up[:, :, : windows * _WINDOW].astype(float).reshape(n, n_zones, windows, _WINDOW)
    x = x - x.mean(axis=3, keepdims=True)
    size = np.sqrt((x * x).sum(axis=(2, 3)))
    first, later = (np.asarray(side) for side in zip(*pairs, strict=True))
    whole = (size[:, first] * size[:, later]).sum()
    out = []
    for hours in LAGS_HOURS:
        lag = round(hours * 10)
        out.append((x[:, first, :, : _WINDOW - lag] * x[:, later, :, lag:]).sum() / whole)
    return np.asarray(out)


def drawn(found: Together, sky: Weather) -> Bools:
    """Futures of the zones of a record, as long as it; shape `(n, n_zones, ticks)`."""
    zones = tuple(SpotZone(t.zone, t.region, t.instance_type, 1.0, t.provider, t.gang) for t in found.traces)
    model = fit_hazards(found.traces)
    tables = {zone.name: model.table_for(zone) for zone in zones}
    job = SpotJob(1.0, 1.0, 0.0, 1.0, zones)
    return sample_futures(job, tables, _DRAWS, found.up.shape[1], 1, weather=sky)


def _kind(traces: Sequence[ZoneTrace], i: int, j: int) -> str:
    if i == j:
        return "same zone"
    return "same region" if traces[i].region == traces[j].region else "other region"


def _say(name: str, records: Sequence[Together], ups: Sequence[Bools]) -> None:
    for kind in ("same region", "other region", "same zone"):
        rows = []
        for record, up in zip(records, ups, strict=True):
            n = range(len(record.traces))
            if pairs := [(i, j) for i in n for j in n if kind == _kind(record.traces, i, j)]:
                rows.append(lag_correlation(up, pairs))
        mean = " ".join(f"{value:5.2f}" for value in np.mean(rows, axis=0))
        print(f"{name:28s} {kind:12s} {len(rows):3d} records: {mean}")


def main() -> None:
    """Print correlations of records and of futures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--weather", type=float, nargs=3, help="in place of the bundled one")
    given = parser.parse_args()
    records = [one for path in sorted(given.traces.glob("*.json")) for one in records_of(path)]
    sky = Weather(*given.weather) if given.weather else load_weather()
    print(f"hours between: {' '.join(f'{hours:g}' for hours in LAGS_HOURS)}")
    _say("records", records, [record.up[None] for record in records])
    _say(f"futures, weather {tuple(sky)}", records, [drawn(record, sky) for record in records])


if __name__ == "__main__":
    main()
