"""Where a forecast of a job's cost over several zones is wrong: many launches of each zone group, replayed together.

`python -m benchmarks.spot_bias --traces DIR [--one-zone] [--pools | --seen] [--hours 12] [--futures 10] [--seed 0]`

`spot_forecast` makes one forecast per job, and its jobs are few. Here every zone group of DIR/jobs/jobs.json is
launched every `--hours` of its record, for three kinds of jobs. The launches of a group and a kind of job share one
policy and are replayed in one batch, each on the days that came and on `--futures` drawn ones, all at the mean prices
of the record: what prices did after launch is replayed apart. `--one-zone` launches in each zone alone. `--seen` fits
the hazards to all days, those of the jobs included. Intervals are of launches drawn by instance type, file and four
days.

Most of a forecast's error is that its days were scarcer or richer than the record. So the bias is split: `days` is what
follows from the share of time that zones, and any zone, were up, less what was forecast of it, times the slope of cost
over it among the drawn futures; where the model is right its mean is 0 whatever the slope. `rest` is the bias for days
as forecast. The interval of the rest is the smaller one.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.spot_forecast import Days
from catalogs.tables.table import Bools, Floats
from planner.spot.futures import Launch, draw_launch, run_on
from planner.spot.hazards import HazardModel, load_hazards, load_weather
from planner.spot.hazards_cells import plain_type, spell_age_ticks
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.policy.registry import make_policy
from planner.spot.replay_batch import Runs
from planner.spot.trace import ZoneTrace

_DAY = 240  # ticks of 0.1 h
_BLOCK = 4 * _DAY
KINDS = ((48.0, 60.0, 0.2), (48.0, 96.0, 0.2), (12.0, 18.0, 0.2))
"""Hours of work, hours to the deadline and hours of a restart."""
PARTS = ("on_demand", "spot", "starts", "waiting")


class Launched(NamedTuple):
    """One launch of one kind of job: cost over on-demand and parts in hours per hour of work, forecast and real.

    `draws` are the costs of its futures; `shares` are `shares_up` of what came and then of each future.
    """

    group: str
    cluster: tuple[str, str, int]
    zones: int
    gang: int
    kind: tuple[float, float, float]
    price: float
    said: Floats
    was: Floats
    cost_was_paid: float
    draws: Floats
    shares: Floats


def groups_of(jobs: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """One job of each group of one zone (`single`) or of several (`multi`)."""
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for job in jobs:
        if job["kind"] == kind:
            found.setdefault((job["file"], job["group"], job["threshold"]), job)
    return list(found.values())


def launches(
    job: Mapping[str, Any],
    traces: Sequence[ZoneTrace],
    model_at: Callable[[int], HazardModel],
    every_ticks: int,
    futures: int,
) -> list[Launched]:
    """Launch a group every so many ticks, while the day before and the shortest deadline lie in the record.

    Args:
        job: a job of the group.
        traces: of its zones.
        model_at: hazards to forecast a launch at a tick with.
        every_ticks: between two launches.
        futures: drawn per launch.
    """
    n_ticks = min(len(trace.up) for trace in traces)
    up = np.stack([trace.up[:n_ticks] for trace in traces])
    usd = np.stack([trace.spot_usd_per_hour[:n_ticks] for trace in traces])
    usd = np.where(np.isnan(usd), np.nanmean(usd, axis=1)[:, None], usd)
    shortest = min(round(kind[1] * 10) for kind in KINDS)
    by_model: dict[int, tuple[HazardModel, list[int]]] = {}
    for at in range(_DAY, n_ticks - shortest, every_ticks):
        model = model_at(at)
        by_model.setdefault(id(model), (model, []))[1].append(at)
    found = []
    for model, starts in by_model.values():
        found += _launched(job, traces, (up, usd), model, starts, futures)
    return found


def _launched(
    job: Mapping[str, Any],
    traces: Sequence[ZoneTrace],
    days: tuple[Bools, Floats],
    model: HazardModel,
    starts: Sequence[int],
    futures: int,
) -> list[Launched]:
    up, usd = days
    zones = tuple(
        SpotZone(t.zone, region, t.instance_type, float(price), t.provider, t.gang)
        for t, region, price in zip(traces, job["regions"], usd.mean(axis=1), strict=True)
    )
    tables = {zone.name: model.table_for(zone) for zone in zones}
    rng, sky = np.random.default_rng(job["id"]), load_weather()
    longest = max(round(kind[1] * 10) for kind in KINDS)
    drawn = [
        draw_launch(
            rng,
            SpotJob(
                1.0, 1.0, 0.0, job["od_price"], zones,
                history={z.name: up[place, at - _DAY : at] for place, z in enumerate(zones)},
            ),
            tables, futures, sky,
        )
        for at in starts
    ]  # fmt: skip
    future = run_on(rng, _joined(drawn), sky, longest, 0.1)
    age = np.stack([np.minimum(spell_age_ticks(row), _DAY) for row in up])
    found = []
    for kind in KINDS:
        one = SpotJob(*kind, job["od_price"], zones, job["egress_usd"])
        ticks = round(kind[1] * 10)
        fits = [number for number, at in enumerate(starts) if at + ticks <= up.shape[1]]
        if not fits:
            continue
        came = np.asarray([starts[number] for number in fits])
        rows = (np.asarray(fits)[:, None] * futures + np.arange(futures)).ravel()
        real = up[:, came[:, None] + np.arange(ticks)].transpose(1, 0, 2)
        prices = usd[:, came[:, None] + np.arange(ticks)].transpose(1, 0, 2)
        mean_usd = np.broadcast_to(usd.mean(axis=1)[:, None], prices.shape)
        before = np.repeat(came, futures)
        paths = np.concatenate([real, real, future[rows, :, :ticks]])
        paid = np.concatenate([mean_usd, prices, np.repeat(mean_usd[:1], len(rows), axis=0)])
        at_launch = np.concatenate([came, came, before]) - 1
        out = _replay(one, tables, paths, paid, up[:, at_launch].T, age[:, at_launch].T)
        n = len(fits)
        said = out[2 * n :].reshape(n, futures, -1)
        shares = shares_up(real), shares_up(future[rows, :, :ticks]).reshape(n, futures, -1)
        for number, at in enumerate(came):
            cluster = (plain_type(zones[0].instance_type), job["file"], int(at + ticks // 2) // _BLOCK)
            label = f"{job['file']} {job['group']} {job['threshold'] or ''}"
            found.append(
                Launched(
                    label, cluster, len(zones), zones[0].gang, kind,
                    float(usd.mean() / job["od_price"]), said[number].mean(axis=0), out[number],
                    float(out[n + number, 0]), said[number, :, 0],
                    np.concatenate([shares[0][number : number + 1], shares[1][number]]),
                )
            )  # fmt: skip
    return found


def shares_up(up: Bools) -> Floats:
    """Share of time that zones, and that any zone, were up; `up` of shape `(n, n_zones, ticks)`, answer `(n, 2)`."""
    return np.stack([up.mean(axis=(1, 2)), up.any(axis=1).mean(axis=1)], axis=1)


def by_days(found: Sequence[Launched]) -> Floats:
    """Forecast less real cost that follows from how much capacity the days of each launch had, shape `(n,)`."""
    error = np.zeros(len(found))
    alike: dict[tuple[str, Any], list[int]] = {}
    for number, one in enumerate(found):
        alike.setdefault((one.group, one.kind), []).append(number)
    for at in alike.values():
        shares = np.stack([found[number].shares for number in at])
        cost = np.stack([found[number].draws for number in at])
        centre = shares[:, 1:].mean(axis=1, keepdims=True)
        x = (shares[:, 1:] - centre).reshape(-1, 2)
        y = (cost - cost.mean(axis=1, keepdims=True)).ravel()
        slope = np.linalg.lstsq(x, y, rcond=1e-6)[0]
        error[at] = (centre[:, 0] - shares[:, 0]) @ slope
    return error


def _joined(drawn: Sequence[Launch]) -> Launch:
    return Launch(
        up=np.concatenate([one.up for one in drawn]),
        age=np.concatenate([one.age for one in drawn]),
        level=np.concatenate([one.level for one in drawn], axis=1),
        hazard=drawn[0].hazard,
        region=drawn[0].region,
        local=np.concatenate([one.local for one in drawn]),
        common=np.concatenate([one.common for one in drawn]),
    )


def _replay(
    job: SpotJob,
    tables: Mapping[str, Any],
    up: Bools,
    usd: Floats,
    state: Bools,
    held: np.ndarray,
) -> Floats:
    """Cost over on-demand, and `PARTS` per hour of work (starts: number), shape `(n, 5)`."""
    policy = make_policy("survival", job, tables)
    runs = Runs(job, policy.view, len(up))
    for tick in range(up.shape[2]):
        now = up[:, :, tick]
        held = np.where(now == state, held + 1, 1)
        state = now
        runs.step(tick, policy, now, held, usd[:, :, tick])
        if not runs.active.any():
            break
    result = runs.result()
    if not result.finished.all():
        raise AssertionError("the guard let a run miss its deadline")
    waiting = result.finish_hours - result.spot_hours - result.on_demand_hours
    cost = result.cost_usd / (job.work_hours * job.on_demand_usd_per_hour)
    hours = np.stack([result.on_demand_hours, result.spot_hours, waiting], axis=1) / job.work_hours
    return np.column_stack([cost, hours[:, 0], hours[:, 1], result.starts, hours[:, 2]])


def say(name: str, found: Sequence[Launched]) -> None:
    """Print bias, its interval, its parts, coverage and CRPS of some launches; groups and kinds weigh the same."""
    if not found:
        print(f"{name:44s} no launches")
        return
    weight = _weights(found)
    said, was = np.stack([one.said for one in found]), np.stack([one.was for one in found])
    days, error = by_days(found), said[:, 0] - was[:, 0]
    split, clusters = _with_intervals(found, weight, np.column_stack([error, days, error - days]), was[:, 0])
    price = np.asarray([one.price for one in found])
    more = was - said
    instead = weight @ (more[:, 1] * (1 - price))
    hours = weight @ ((more[:, 1] + more[:, 2]) * price)
    mean_said, mean_was = weight @ said, weight @ was
    paid = weight @ np.asarray([one.cost_was_paid for one in found])
    draws = np.stack([one.draws for one in found])
    inside, crps = _of_draws(draws, was[:, 0])
    middle = float(np.median(np.abs(np.median(draws, axis=1) / was[:, 0] - 1.0)))
    parts = (f"{part} {a:.2f}/{b:.2f}" for part, a, b in zip(PARTS, mean_said[1:], mean_was[1:], strict=True))
    print(
        f"{name:44s} n={len(found):5d} in {clusters:3d} clusters: {split}; real {mean_was[0]:.3f}, at prices as they "
        f"came {100 * (paid / mean_was[0] - 1):+.1f} %; real less forecast: on-demand for spot {instead:+.4f}, hours "
        f"{hours:+.4f}, rest {-(weight @ error) - instead - hours:+.4f}; forecast/real {', '.join(parts)}; covers "
        f"{100 * (weight @ inside):.0f} %, CRPS {weight @ crps:.4f}, median |error| of the middle {100 * middle:.1f} %"
    )


def _weights(found: Sequence[Launched]) -> Floats:
    """Weights with which each group and kind of job counts the same; their sum is 1."""
    size = Counter((one.group, one.kind) for one in found)
    weight = np.asarray([1.0 / size[one.group, one.kind] for one in found])
    return np.asarray(weight / weight.sum())


def _with_intervals(
    found: Sequence[Launched], weight: Floats, errors: Floats, was: Floats
) -> tuple[str, int]:
    """Bias, its part by days and its rest, each with its 90 % interval over clusters; and how many there are."""
    clusters: dict[tuple[str, str, int], list[int]] = {}
    for number, one in enumerate(found):
        clusters.setdefault(one.cluster, []).append(number)
    each = weight[:, None] * np.column_stack([errors, was])
    sums = np.stack([each[at].sum(axis=0) for at in clusters.values()])
    drawn = np.random.default_rng(0).integers(len(sums), size=(2000, len(sums)))
    some = sums[drawn].sum(axis=1)
    low, high = np.quantile(100 * some[:, :-1] / some[:, -1:], (0.05, 0.95), axis=0)
    mean = 100 * each[:, :-1].sum(axis=0) / each[:, -1].sum()
    parts = zip(("bias", "days", "rest"), mean, low, high, strict=True)
    return ", ".join(f"{part} {m:+5.1f} % [{a:+.1f}, {b:+.1f}]" for part, m, a, b in parts), len(clusters)


def _of_draws(draws: Floats, was: Floats) -> tuple[Bools, Floats]:
    """Whether P10-P90 of each launch's draws holds what came, and its continuous ranked probability score."""
    m, ordered = draws.shape[1], np.sort(draws, axis=1)
    apart = ordered @ (2 * np.arange(1, m + 1) - m - 1) / (m * (m - 1))
    below, equal = (ordered < was[:, None]).mean(axis=1), (ordered == was[:, None]).mean(axis=1)
    rank = below + 0.5 * equal
    return (rank >= 0.1) & (rank <= 0.9), np.abs(draws - was[:, None]).mean(axis=1) - apart


def main() -> None:
    """Launch, replay and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=12.0, help="between two launches of a group")
    parser.add_argument("--futures", type=int, default=10, help="drawn per launch")
    parser.add_argument("--seed", type=int, default=0, help="of the futures: what another draw alone changes")
    parser.add_argument("--out", type=Path, help="draws and what came, to compare two runs launch by launch")
    parser.add_argument("--one-zone", action="store_true", help="each zone alone")
    left = parser.add_mutually_exclusive_group()
    left.add_argument("--pools", action="store_true", help="leave out all records of the instance type")
    left.add_argument("--seen", action="store_true", help="leave nothing out")
    given = parser.parse_args()
    days = Days(given.traces, pools=given.pools)
    jobs = json.loads((given.traces / "jobs" / "jobs.json").read_text(encoding="utf-8"))
    found: list[Launched] = []
    for job in groups_of(jobs, "single" if given.one_zone else "multi"):

        def model_at(at: int, job: Mapping[str, Any] = job) -> HazardModel:
            # a file that is halved: not the half in which the launch's second day begins
            return load_hazards() if given.seen else days.model({**job, "start_tick": at, "deadline_h": 48.0})

        drawn_as = {**job, "id": job["id"] + given.seed}
        found += launches(drawn_as, days.traces(job), model_at, round(given.hours * 10), given.futures)
    for kind in KINDS:
        say(f"{kind[0]:g} h in {kind[1]:g} h", [one for one in found if one.kind == kind])
    for name, several in (("2 zones", (2, 2)), ("3 to 4 zones", (3, 4)), ("8 to 13 zones", (8, 13))):
        say(name, [one for one in found if several[0] <= one.zones <= several[1]])
    for gang in sorted({one.gang for one in found}):
        say(f"gang of {gang}", [one for one in found if one.gang == gang])
    for key in sorted({one.cluster[:2] for one in found}):
        say(" ".join(key), [one for one in found if one.cluster[:2] == key])
    say("all", found)
    if given.out:
        np.savez(
            given.out,
            draws=np.stack([one.draws for one in found]),
            was=np.stack([one.was for one in found]),
            cluster=np.asarray([str(one.cluster) for one in found]),
            group=np.asarray([str((one.group, one.kind)) for one in found]),
        )


if __name__ == "__main__":
    main()
