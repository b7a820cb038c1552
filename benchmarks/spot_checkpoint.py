"""Checkpoint intervals on recorded spells: loss against the best interval, and error of the predicted useful share.

`python -m benchmarks.spot_checkpoint --traces DIR`

Every up spell is paid whole; after the restart, work counts as far as it was written: no warning is used. Cells are
zones with at least ten whole up spells x restart x checkpoint time. M of Young's rule and of the exponential form is
the zone's mean up spell; `table M` takes the mean up spell of the
zone's shrunk hazards instead, as a plan does before the zone was watched for long.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Floats
from planner.spot.hazards import fit_hazards
from planner.spot.policy.job import SpotZone
from planner.spot.renewal import young_interval_hours
from planner.spot.trace import ZoneTrace
from planner.spot.traces.registry import read_traces

RESTARTS_HOURS = (0.1, 0.2)
WRITES_MINUTES = (1.0, 3.0, 10.0)
_GRID = np.geomspace(1.0 / 60.0, 24.0, 240)


def up_spells(trace: ZoneTrace) -> Floats:
    """Lengths in hours of the up spells whose beginning and end were seen."""
    edges = np.flatnonzero(trace.up[1:] != trace.up[:-1]) + 1
    begins_up = trace.up[edges[:-1]] if len(edges) > 1 else np.zeros(0, dtype=bool)
    return np.asarray(np.diff(edges)[begins_up] * trace.tick_hours, dtype=np.float64)


def spread(spells: Floats, probe_hours: float) -> Floats:
    """Spells with the lengths they may have had: both ends lie anywhere between two probes (triangular, 15 steps).

    Without it every length is a whole number of probes, and the best interval is the one that fits that lattice.
    """
    share = (np.arange(15) + 0.5) / 15.0
    offset = np.where(share < 0.5, np.sqrt(2.0 * share) - 1.0, 1.0 - np.sqrt(2.0 * (1.0 - share)))
    return np.asarray(np.maximum(spells[:, None] + probe_hours * offset[None, :], 0.0).ravel())


def kept_ratio(spells: Floats, interval: npt.ArrayLike, write: float, restart: float) -> Floats:
    """Share of the paid hours that was written, per interval."""
    tau = np.atleast_1d(np.asarray(interval, dtype=np.float64))[:, None]
    whole = np.floor(np.maximum(spells[None, :] - restart, 0.0) / (tau + write) + 1e-9)
    return np.asarray((whole * tau).sum(axis=1) / spells.sum())


def main() -> None:
    """Print medians per checkpoint time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    traces = read_traces(parser.parse_args().traces)
    model = fit_hazards(traces)
    rows = []
    for trace in traces:
        spells = up_spells(trace)
        if len(spells) < 10:
            continue
        mean = float(spells.mean())
        spells = spread(spells, trace.probe_hours)
        zone = SpotZone(trace.zone, trace.region, trace.instance_type, 0.0, trace.provider, trace.gang)
        table = model.table_for(zone)
        for restart in RESTARTS_HOURS:
            rows += [
                (minutes, *_cell(spells, mean, table.mean_up_hours, restart, minutes / 60.0))
                for minutes in WRITES_MINUTES
            ]
    print(
        "checkpoint  cells  best h   loss % of: Young   table M   fixed 1 h   error points of: exponential  table M"
    )
    for of in (*WRITES_MINUTES, None):
        found = np.asarray([row[1:] for row in rows if of in (None, row[0])])
        median, high = np.median(found, axis=0), np.quantile(found, 0.9, axis=0)
        name = "all" if of is None else f"{of:g} min"
        print(
            f"{name:>10}{len(found):7d}{median[0]:8.2f}{median[1]:15.2f}{median[2]:12.2f}{median[3]:11.2f}"
            f"{median[4]:25.2f}{median[5]:12.2f}   (p90 loss: {high[1]:.1f} {high[2]:.1f} {high[3]:.1f})"
        )


def useful_ratio(
    interval_hours: npt.ArrayLike,
    write_hours: npt.ArrayLike,
    restart_hours: npt.ArrayLike,
    mtbf_hours: npt.ArrayLike,
) -> Floats:
    """Share of paid up-time that is useful work: e^(-d/M) (tau/M) / (e^((tau + delta)/M) - 1).

    J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22, 2006,
    eq. for exponential interruptions with restarts that may themselves be interrupted. Within 1.4 points of
    real spot traces.

    Args:
        interval_hours: tau, finite.
        write_hours: delta.
        restart_hours: d.
        mtbf_hours: M; inf where there are no interruptions.

    Returns:
        Ratio in 0..1, broadcast shape.
    """
    arrays = (np.asarray(a, float) for a in (interval_hours, write_hours, restart_hours, mtbf_hours))
    tau, delta, restart, mtbf = np.broadcast_arrays(*arrays)
    calm = np.isinf(mtbf)
    mean = np.where(calm, 1.0, mtbf)
    grown = np.expm1(np.minimum((tau + delta) / mean, 700.0))
    exact = np.exp(-restart / mean) * (tau / mean) / grown
    return np.asarray(np.where(calm, tau / (tau + delta), exact), dtype=np.float64)


def _cell(spells: Floats, mean: float, table_mean: float, restart: float, write: float) -> tuple[float, ...]:
    """Best interval; loss in % of both Youngs and 1 h; error in points of both predictions at the first one's."""
    kept = kept_ratio(spells, _GRID, write, restart)
    best = float(kept.max())
    young = float(young_interval_hours(write, mean))
    fitted = float(young_interval_hours(write, table_mean))
    at = kept_ratio(spells, [young, fitted, 1.0], write, restart)
    loss = 100.0 * (1.0 - at / max(best, 1e-9))
    said = float(useful_ratio(young, write, restart, mean))
    by_table = float(useful_ratio(young, write, restart, table_mean))
    errors = 100.0 * np.abs(np.asarray([said, by_table]) - at[0])
    return float(_GRID[int(kept.argmax())]), *(float(v) for v in loss), float(errors[0]), float(errors[1])


if __name__ == "__main__":
    main()
