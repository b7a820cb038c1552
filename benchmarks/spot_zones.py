"""Choice of zones before launch: realised cost of what is picked over that of the best single zone in hindsight.

`python -m benchmarks.spot_zones --traces DIR [--groups v100_2mo,h100] [--starts N]`

Per group of zones and start: the survival policy is replayed in every zone alone and in all together, on the recorded
days; picks are made from what was known at launch. For an honest figure fit on other days (`--hazards FILE` of
`benchmarks.fit_spot`); with the bundled hazards the level of these days is known, their course is not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from planner.spot.hazards import HazardModel, load_hazards
from planner.spot.launch import forecast_launch
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.replay_batch import replay_futures
from planner.spot.trace import ZoneTrace
from planner.spot.traces.registry import read_traces

_WORK, _STRETCHES, _RESTART, _DAY = 48.0, (1.25, 1.5, 2.0), 0.2, 240


def jobs(traces: Sequence[ZoneTrace], starts: int) -> Iterator[tuple[SpotJob, int]]:
    """Jobs over a group, starts spread evenly behind the first day."""
    listed = min(t.on_demand_usd_per_hour or np.inf for t in traces)
    for stretch in _STRETCHES:
        last = min(len(t.up) for t in traces) - round(stretch * _WORK * 10) - 1
        if last <= _DAY:
            continue
        for at in np.linspace(_DAY, last, starts).astype(int).tolist():
            zones = tuple(
                SpotZone(
                    t.zone, t.region, t.instance_type, float(t.spot_usd_per_hour[at]), t.provider, t.gang
                )
                for t in traces
            )
            seen = {t.zone: t.up[at - _DAY : at] for t in traces}
            yield SpotJob(_WORK, stretch * _WORK, _RESTART, listed, zones, egress_usd=1.0, history=seen), at


def realised(job: SpotJob, traces: Sequence[ZoneTrace], at: int, model: HazardModel) -> float:
    """Cost of the survival policy on the recorded days over the work on on-demand."""
    ticks = round(job.deadline_hours / job.tick_hours)
    up = np.stack([t.up[at : at + ticks] for t in traces])[None]
    prices = np.stack([t.spot_usd_per_hour[at : at + ticks] for t in traces])
    tables = {zone.name: model.table_for(zone) for zone in job.zones}
    done = replay_futures(job, "survival", tables, up, prices)
    return float(done.cost_usd[0]) / (job.work_hours * job.on_demand_usd_per_hour)


def alone_in(job: SpotJob, zone: SpotZone) -> SpotJob:
    """The job with one zone only."""
    fields = {name: getattr(job, name) for name in job.__dataclass_fields__}
    history = {name: seen for name, seen in job.history.items() if name == zone.name}
    return SpotJob(**{**fields, "zones": (zone,), "history": history})


def cheapest_forecast(job: SpotJob, model: HazardModel, policy: str = "survival") -> SpotZone:
    """The zone in which the policy alone is expected to cost least; that needs an order, so few futures."""

    def cost_and_name(zone: SpotZone) -> tuple[float, str]:
        return forecast_launch(alone_in(job, zone), model, policy, futures=100).cost_ratio, zone.name

    return min(job.zones, key=cost_and_name)


def main() -> None:
    """Print mean realised cost per group and over all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--groups", default="v100_2mo,h100")
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--gangs", default="1,8,16", help="gangs of files that counted several instances")
    parser.add_argument("--hazards", type=Path)
    given = parser.parse_args()
    model = load_hazards() if given.hazards is None else HazardModel.load(given.hazards)
    total = []
    for path in sorted(given.traces.glob("*.json")):
        if not any(name in path.name for name in given.groups.split(",")):
            continue
        largest = read_traces(path)[0].gang
        for gang in [int(g) for g in given.gangs.split(",")] if largest == 16 else [largest]:
            traces = read_traces(path, gang=gang)
            rows = [_one(job, at, traces, model) for job, at in jobs(traces, given.starts)]
            total += rows
            _say(f"{path.stem} x{gang}", rows)
    _say("all", total)


def _one(job: SpotJob, at: int, traces: Sequence[ZoneTrace], model: HazardModel) -> list[float]:
    """Realised cost: best zone, cheapest price, pick by forecast, all zones."""
    alone = {
        zone.name: realised(alone_in(job, zone), [t], at, model)
        for zone, t in zip(job.zones, traces, strict=True)
    }
    cheapest = min(zone.usd_per_hour for zone in job.zones)
    by_price = np.mean([alone[zone.name] for zone in job.zones if zone.usd_per_hour <= cheapest * 1.001])
    picked = cheapest_forecast(job, model).name
    return [min(alone.values()), float(by_price), alone[picked], realised(job, traces, at, model)]


def _say(name: str, rows: Sequence[Sequence[float]]) -> None:
    if rows:
        best, price, pick, several = np.mean(np.asarray(rows), axis=0)
        print(
            f"{name:28s} n={len(rows):3d} best zone {best:.3f} | by price {price / best:.2f}x  "
            f"picked {pick / best:.2f}x  all zones {several / best:.2f}x",
            flush=True,
        )


if __name__ == "__main__":
    main()
