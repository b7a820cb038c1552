"""Launch forecasts on days they were not fitted to: P(meet) of spot alone, and the policy's own cost.

`python -m benchmarks.spot_forecast --traces DIR [--every N] [--only-meet | --only-policy KIND [--seen]] [--pools]`

The fixed jobs of DIR/jobs/jobs.json; for each, hazards are fitted without its file. Files whose pool occurs nowhere
else are halved: a job in one half is forecast from the other half and the other files. `--pools` leaves out all records
of the instance type instead; like a user's, the model then compares sizes of a family by their accelerators. A
forecast's bias is taken apart into on-demand in place of spot, and more hours in all. The jobs of a zone group follow
each other by length, deadline and restart: an N that always meets the same ones is refused.
`--only-policy` makes no forecasts but compares what the policy costs with Uniform Progress and the offline optimum, by
zone group.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fit_spot import traces_of_file
from benchmarks.spot_zones import alone_in
from catalogs.tables.table import Bools, Floats
from planner.records import record
from planner.spot.futures import sample_futures
from planner.spot.hazards import HazardModel, fit_hazards, load_hazards
from planner.spot.hazards_cells import HazardCell, cell_of, plain_type
from planner.spot.launch import N_FUTURES, forecast_launch
from planner.spot.meet import calibration
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.replay_batch import BatchReplay, replay_futures
from planner.spot.trace import ZoneTrace
from planner.spot.traces.run_length import read_run_length

_DAY = 240
_ALONE = ("h100x16", "r5_preempt", "v100x16", "v100x4")


@record(frozen=True, eq=False)
class Scored:
    """One job: what was said and what happened.

    Attributes:
        spot_price: over on-demand at launch, mean of its zones.
        said, was: hours on on-demand and on spot per hour of work, and starts.
    """

    kind: str
    file: str
    p_meet: float
    met: bool
    mean: float
    middle: float
    low: float
    high: float
    realised: float
    late: bool
    group: str = ""
    spot_price: float = 0.0
    said: tuple[float, float, float] = (0.0, 0.0, 0.0)
    was: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Days:
    """Traces by file and gang, and models that leave a job's days out, or all records of its instance type."""

    def __init__(self, directory: Path, *, pools: bool = False) -> None:
        self.directory, self.pools = directory, pools
        self._traces: dict[tuple[str, int | None], dict[str, ZoneTrace]] = {}
        self._models: dict[tuple[str, int], HazardModel] = {}
        self._cells: dict[str, list[HazardCell]] = {
            path.name: [cell_of(trace) for trace in traces_of_file(path)]
            for path in sorted(directory.glob("*.json"))
        }

    def traces(self, job: Mapping[str, Any]) -> list[ZoneTrace]:
        """The traces of a job's zones, in its order."""
        key = (job["file"], job["threshold"])
        if key not in self._traces:
            found = read_run_length(self.directory / job["file"], gang=job["threshold"])
            self._traces[key] = {trace.zone: trace for trace in found}
        return [self._traces[key][name] for name in job["zones"]]

    def model(self, job: Mapping[str, Any]) -> HazardModel:
        """Hazards fitted without what is left out."""
        if self.pools:
            left = plain_type(self.traces(job)[0].instance_type)
            if (left, 2) not in self._models:
                rest = [c for found in self._cells.values() for c in found if c.instance_type != left]
                self._models[left, 2] = model_of(rest)
            return self._models[left, 2]
        name, half = job["file"], 2
        if name.startswith(_ALONE):
            n = len(self.traces(job)[0].up)
            middle = job["start_tick"] + round(job["deadline_h"] * 5)
            half = 0 if middle > n / 2 else 1
        if (name, half) not in self._models:
            cells = [cell for other, found in self._cells.items() if other != name for cell in found]
            if half < 2:
                cells += [cell_of(half_of(t, half)) for t in traces_of_file(self.directory / name)]
            self._models[name, half] = model_of(cells)
        return self._models[name, half]


def model_of(cells: Sequence[HazardCell]) -> HazardModel:
    """The bundled model with other records: same scales, same accelerators of the recorded types."""
    return fit_hazards(()).with_cells(cells)


def every_nth(jobs: Sequence[Mapping[str, Any]], every: int) -> list[Mapping[str, Any]]:
    """Every Nth job.

    Raises:
        ValueError: these are jobs of some lengths, deadlines and restarts only, though there are enough for all.
    """
    found = list(jobs[::every])
    for kind in sorted({job["kind"] for job in jobs}):
        here = [_shape(job) for job in found if job["kind"] == kind]
        all_of = {_shape(job) for job in jobs if job["kind"] == kind}
        if len(here) >= 2 * len(all_of) and set(here) != all_of:
            raise ValueError(
                f"--every {every} picks jobs with {len(set(here))} of the {len(all_of)} lengths, deadlines and "
                f"restarts of kind {kind}: take a number that shares no factor with {len(all_of)}, such as 7"
            )
    return found


def _shape(job: Mapping[str, Any]) -> tuple[float, float, float]:
    return job["work_h"], job["deadline_h"], job["restart_h"]


def main() -> None:
    """Score and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--every", type=int, default=7)
    parser.add_argument("--only-meet", action="store_true", help="P(meet) of spot alone, one-zone jobs")
    parser.add_argument(
        "--only-policy", choices=("single", "multi"), help="cost of the policy on jobs of a kind"
    )
    parser.add_argument(
        "--seen", action="store_true", help="with the bundled hazards, which have seen these days"
    )
    parser.add_argument("--pools", action="store_true", help="leave out all records of the instance type")
    given = parser.parse_args()
    days = Days(given.traces, pools=given.pools)
    jobs = json.loads((given.traces / "jobs" / "jobs.json").read_text(encoding="utf-8"))
    kinds = (
        (given.only_policy,) if given.only_policy else ("single",) if given.only_meet else ("single", "multi")
    )
    try:
        jobs = every_nth([job for job in jobs if job["kind"] in kinds], given.every)
    except ValueError as error:
        parser.error(str(error))
    if given.only_policy:
        _say_policy(jobs, days, given.seen)
        return
    found = [_score(job, days, full=not given.only_meet) for job in jobs]
    single = [one for one in found if one.kind == "single"]
    said, met = (
        np.asarray([one.p_meet for one in single]),
        np.asarray([one.met for one in single], dtype=float),
    )
    print(
        f"P(meet) n={len(single)} Brier {np.mean((said - met) ** 2):.3f} ECE {_ece(said, met):.3f} ", end=""
    )
    print(f"bias {np.mean(said - met):+.3f} (climatology {met.mean() * (1 - met.mean()):.3f})")
    if not given.only_meet:
        for kind in ("single", "multi"):
            _say_cost(kind, [one for one in found if one.kind == kind])


def _spot_job(job: Mapping[str, Any], traces: Sequence[ZoneTrace]) -> SpotJob:
    """A job of the list with what is known at its launch."""
    at = int(job["start_tick"])
    zones = tuple(
        SpotZone(t.zone, region, t.instance_type, float(t.spot_usd_per_hour[at]), t.provider, t.gang)
        for t, region in zip(traces, job["regions"], strict=True)
    )
    seen = {t.zone: t.up[max(at - _DAY, 0) : at] for t in traces}
    return SpotJob(
        job["work_h"], job["deadline_h"], job["restart_h"], job["od_price"], zones, job["egress_usd"], history=seen
    )  # fmt: skip


def p_meet_spot_only(
    job: SpotJob,
    model: HazardModel,
    deadlines_hours: Sequence[float],
    *,
    futures: int = N_FUTURES,
    seed: int = 0,
) -> Floats:
    """Chance that spot alone in the job's cheapest zone meets each of several deadlines, shape `(n_deadlines,)`.

    One draw answers for all of them, so a later deadline never has the smaller chance.
    """
    zone = min(job.zones, key=lambda one: one.usd_per_hour)
    ticks = round(max(deadlines_hours) / job.tick_hours + 1e-6)
    one = alone_in(job, zone)
    up = sample_futures(one, {zone.name: model.table_for(zone)}, futures, ticks, seed)[:, 0]
    done = np.cumsum(progress_hours(up, job.tick_hours, job.restart_hours), axis=1)
    last = np.minimum(np.floor(np.asarray(deadlines_hours) / job.tick_hours + 1e-6).astype(int), ticks)
    need = job.work_hours - 1e-9
    met = [float((done[:, at - 1] >= need).mean()) if at > 0 else 0.0 for at in last]
    return calibration("replay").apply(met)


def progress_hours(up: Bools, tick_hours: float, restart_hours: float) -> Floats:
    """Work done per tick by a job that runs whenever its only zone is up, shape of `up`, hours.

    Every spell starts with `restart_hours` without progress.
    """
    place = np.arange(up.shape[1])
    begin = np.maximum.accumulate(np.where(up, 0, place + 1), axis=1)
    end_hours = (place + 1 - begin) * tick_hours
    return np.asarray(np.where(up, np.clip(end_hours - restart_hours, 0.0, tick_hours), 0.0))


def _replayed(
    job: Mapping[str, Any], one: SpotJob, traces: Sequence[ZoneTrace], model: HazardModel
) -> BatchReplay:
    """What the policy makes of the days that came."""
    ticks = slice(job["start_tick"], job["start_tick"] + round(one.deadline_hours / one.tick_hours))
    up = np.stack([t.up[ticks] for t in traces])[None]
    prices = np.stack([t.spot_usd_per_hour[ticks] for t in traces])
    return replay_futures(
        one, "survival", {zone.name: model.table_for(zone) for zone in one.zones}, up, prices
    )


def _score(job: Mapping[str, Any], days: Days, *, full: bool) -> Scored:
    traces, model = days.traces(job), days.model(job)
    one = _spot_job(job, traces)
    if not full:
        chance = p_meet_spot_only(one, model, [one.deadline_hours], seed=job["id"])
        return Scored(
            job["kind"], job["file"], float(chance[0]), job["spot_only_meets"], 0.0, 0.0, 0.0, 0.0, 1.0, False
        )
    made = forecast_launch(one, model, seed=job["id"])
    real = _replayed(job, one, traces, model)
    return Scored(
        job["kind"],
        job["file"],
        made.p_meet_spot_only_ratio,
        bool(job["spot_only_meets"]),
        made.cost_ratio,
        made.cost_ratio_p50,
        made.cost_ratio_p10,
        made.cost_ratio_p90,
        float(real.cost_usd[0]) / (one.work_hours * one.on_demand_usd_per_hour),
        not bool(real.finished[0]),
        f"{job['file']} {job['group']} {job['threshold']}",
        float(np.mean([zone.usd_per_hour for zone in one.zones])) / one.on_demand_usd_per_hour,
        (made.on_demand_hours / one.work_hours, made.spot_hours / one.work_hours, made.starts),
        (
            float(real.on_demand_hours[0]) / one.work_hours, float(real.spot_hours[0]) / one.work_hours,
            float(real.starts[0]),
        ),
    )  # fmt: skip


def _say_policy(jobs: Sequence[Mapping[str, Any]], days: Days, seen: bool) -> None:
    """Cost, gap closed with its 90 % interval over zone groups, and each group against Uniform Progress."""
    found: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
    late = 0
    for job in jobs:
        traces = days.traces(job)
        one = _spot_job(job, traces)
        real = _replayed(job, one, traces, load_hazards() if seen else days.model(job))
        late += not bool(real.finished[0])
        row = (
            float(real.cost_usd[0]) / (one.work_hours * one.on_demand_usd_per_hour),
            job["ref"]["up"],
            job["ref"]["opt"],
            float(real.on_demand_hours[0]),
            float(real.starts[0]),
        )
        found.setdefault((job["file"], job["group"], str(job["threshold"] or "")), []).append(row)
    groups = {key: np.asarray(rows) for key, rows in found.items()}
    for key, rows in sorted(groups.items()):
        cost, pace, least, on_demand, starts = rows.mean(axis=0)
        print(
            f"{' '.join(key):50s} n={len(rows):3d} cost {cost:.3f} against Uniform Progress "
            f"{100 * (cost / pace - 1):+5.1f} % above the optimum {100 * (cost / least - 1):5.1f} % "
            f"on-demand {on_demand:4.1f} h starts {starts:4.1f}"
        )
    every = list(groups.values())
    rng = np.random.default_rng(0)
    draws = [
        np.concatenate([every[i] for i in rng.integers(len(every), size=len(every))]) for _ in range(2000)
    ]
    low, high = np.quantile([_closed(rows) for rows in draws], (0.05, 0.95))
    rows = np.concatenate(every)
    cost, pace, least = rows.mean(axis=0)[:3]
    print(
        f"n={len(rows)} cost {cost:.4f} Uniform Progress {pace:.4f} optimum {least:.4f}: above the optimum "
        f"{100 * (cost / least - 1):.1f} %, gap closed {100 * _closed(rows):.0f} % "
        f"[{100 * low:.0f}, {100 * high:.0f}], "
        f"worst group {100 * max(r[:, 0].mean() / r[:, 1].mean() - 1 for r in every):+.1f} %, late {late}"
    )


def _closed(rows: np.ndarray) -> float:
    cost, pace, least = rows.mean(axis=0)[:3]
    return float((pace - cost) / (pace - least))


def _say_cost(kind: str, found: Sequence[Scored]) -> None:
    real = np.asarray([one.realised for one in found])
    middle, mean = np.asarray([one.middle for one in found]), np.asarray([one.mean for one in found])
    inside = [one.low - 1e-9 <= one.realised <= one.high + 1e-9 for one in found]
    print(
        f"cost {kind:6s} n={len(found)} realised {real.mean():.3f} late {sum(one.late for one in found)} | median "
        f"|error| of the middle {100 * np.median(np.abs(middle / real - 1)):.1f} %, of the mean "
        f"{100 * np.median(np.abs(mean / real - 1)):.1f} % | bias {100 * (middle.mean() / real.mean() - 1):+.1f} % and "
        f"{100 * (mean.mean() / real.mean() - 1):+.1f} % | P10-P90 covers {100 * np.mean(inside):.0f} %"
    )
    by_group: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        by_group.setdefault(one.group, []).append((one.mean, one.realised))
    groups, rng = [np.asarray(rows) for rows in by_group.values()], np.random.default_rng(0)
    draws = [
        np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))]).mean(axis=0)
        for _ in range(2000)
    ]
    low, high = np.quantile([100 * (said / was - 1) for said, was in draws], (0.05, 0.95))
    more = np.asarray([one.was for one in found]) - np.asarray([one.said for one in found])
    price = np.asarray([one.spot_price for one in found])
    instead, hours = more[:, 0] * (1.0 - price), (more[:, 0] + more[:, 1]) * price
    starts = (np.mean([one.said[2] for one in found]), np.mean([one.was[2] for one in found]))
    print(
        f"  bias of the mean [{low:+.1f}, {high:+.1f}] % over {len(groups)} groups; realised less forecast "
        f"{(real - mean).mean():+.4f} of on-demand: on-demand in place of spot {instead.mean():+.4f}, more hours "
        f"{hours.mean():+.4f}, rest {(real - mean - instead - hours).mean():+.4f}; starts said {starts[0]:.1f}, "
        f"were {starts[1]:.1f}"
    )


def _ece(said: np.ndarray, met: np.ndarray) -> float:
    """Expected calibration error over ten equal bins."""
    bins = np.clip((said * 10).astype(int), 0, 9)
    return float(
        sum((bins == b).mean() * abs(said[bins == b].mean() - met[bins == b].mean()) for b in np.unique(bins))
    )


def half_of(trace: ZoneTrace, which: int) -> ZoneTrace:
    """The first (0) or second half of a record."""
    n = len(trace.up)
    part = slice(0, n // 2) if which == 0 else slice(n // 2, n)
    fields = {name: getattr(trace, name) for name in trace.__dataclass_fields__}
    return ZoneTrace(**{**fields, "up": trace.up[part], "spot_usd_per_hour": trace.spot_usd_per_hour[part]})


if __name__ == "__main__":
    main()
