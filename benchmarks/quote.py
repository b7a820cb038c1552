"""Whether the quoted bound holds: `python -m benchmarks.quote --traces DIR --prices DIR [--n 10000] [--seed 1]`.

Jobs are sets of recorded zones x hours of work x deadlines. Each is quoted as `planner optimize --quote` does: hazards
fitted without the file that is replayed, spread of the speed as whole runs are predicted with. Then it is replayed many
times: on recorded days from random launches (spot with a fall-back; on-demand at the published rate of failures), with
a speed off by what a published run was off by (with its family left out, in units of its interval), and at the price
that a place chosen on a day of the histories had later. Costs are fractions of the work on on-demand, spot costs 0.3.

First the tail of the errors of whole runs is told: of the runs that ratio and spread come from, and of others.
`--degrees 3` also judges, on the same replays, bounds with a tail of Student's t beyond P90.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from math import exp, hypot, log
from pathlib import Path
from statistics import NormalDist

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t

from benchmarks.rows import read_csv
from benchmarks.spot_launch import PRICE, RESTART, TICK, estimate
from benchmarks.spot_launch_days import DEADLINES, WORK, groups
from benchmarks.whole_runs import ELAPSED, OTHERS, RUNS, Run, predict_runs, usual_ratio, usual_spread
from catalogs.tables.table import Bools, Floats
from planner.asked.assumptions import load_assumptions
from planner.candidates.plan_parts.quote import tail_quantile
from planner.candidates.ways.outcomes import Task, possible_outcomes
from planner.market.expected_price import price_terms
from planner.normal import Z80
from planner.spot.distribution import SpotPool
from planner.spot.hazards import HazardModel
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.pools import figures_of
from planner.spot.replay_batch import replay_futures
from planner.spot.trace import ZoneTrace
from planner.spot.zones import unite
from tools.price_history import decisions, read_histories

CASES, SPEEDS, HORIZONS = 40, 25, (7, 30)
DEGREES = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 30.0, 100.0)
_FIRST = {"aws": date(2023, 11, 16), "gcp": date(2023, 7, 1)}
_CORRELATION = (0.43, 0.14)  # planner/data/assumptions.csv


@dataclass(frozen=True)
class Speeds:
    """Errors of whole runs: log sd of the interval each was given, and how far it was off in that unit."""

    sigma: Floats
    z: Floats
    weight: Floats

    @classmethod
    def of(cls, runs: list[Run], fitted: list[Run] | None = None) -> Speeds:
        """Each run with ratio and spread of `fitted`, or else of the other families; a family weighs one."""
        sizes, sigma, z = Counter(run.family for run in runs), [], []
        for run in runs:
            others = fitted or [other for other in runs if other.family != run.family]
            ratio = usual_ratio(others)
            gap = log(run.ratio / ratio)
            sigma.append(hypot(run.widths[int(gap > 0)], usual_spread(others, ratio)) / Z80)
            z.append(gap / sigma[-1])
        weight = np.asarray([1.0 / sizes[run.family] for run in runs])
        return cls(np.asarray(sigma), np.asarray(z), weight / weight.sum())

    def drawn(self, draw: np.random.Generator) -> Floats:
        """As many errors as a job is replayed with, one from each equal part of their distribution."""
        places = (np.arange(SPEEDS) + draw.random()) / SPEEDS
        order = np.argsort(self.z)
        at = np.searchsorted(np.cumsum(self.weight[order]), places)
        return self.z[order][np.minimum(at, len(order) - 1)]

    def likely_degrees(self, kept: Bools) -> float:
        """Degrees of freedom of Student's t through the 80 % width that make the errors `kept` most likely."""
        scale = [student_t.ppf(0.9, one) / Z80 for one in DEGREES]
        made = [
            float(self.weight[kept] @ (student_t.logpdf(self.z[kept] * own, one) + log(own)))
            for one, own in zip(DEGREES, scale, strict=True)
        ]
        return DEGREES[int(np.argmax(made))]

    def shape(self, families: int) -> str:
        """Moments in units of the spread, and how much less likely a tail of 3 degrees is than a normal one."""
        inside = self.weight[np.abs(self.z) <= Z80].sum()
        off = self.z - self.weight @ self.z
        kurtosis = (self.weight @ off**4) / (self.weight @ off**2) ** 2
        own = student_t.ppf(0.9, 3.0) / Z80
        less = self.weight @ (norm.logpdf(self.z) - student_t.logpdf(self.z * own, 3.0) - log(own))
        return (
            f"{len(self.z)} runs of {families} families, in units of the spread: root mean square "
            f"{np.sqrt(self.weight @ self.z**2):.2f}, {inside:.0%} within the 80 % interval, kurtosis {kurtosis:.1f}, "
            f"longest {self.z.max():.1f}, a tail of 3 degrees less likely by {exp(families * less):.1f} times"
        )

    def left_out(self, families: Sequence[str], level: float) -> str:
        """Likely degrees of freedom of all and with each family left out, and how many left out keep a level."""
        named = np.asarray(families)
        found, held = [], 0.0
        for name in sorted(set(families)):
            own = named == name
            found.append(self.likely_degrees(~own))
            most = student_t.ppf(level, found[-1]) / student_t.ppf(0.9, found[-1]) * Z80
            held += float(self.weight[own & (self.z <= most)].sum())
        normal = float(self.weight[self.z <= NormalDist().inv_cdf(level)].sum())
        return (
            f"{self.shape(len(set(families)))}; most likely {self.likely_degrees(self.z == self.z):g} degrees of "
            f"freedom, {min(found):g} to {max(found):g} with one family left out; {held:.1%} of the families left out "
            f"are within {level:.1%} so, {normal:.1%} within that of a normal tail"
        )

    def as_assumed(self) -> Speeds:
        """The same spreads with errors at the middles of equal parts of the normal distribution."""
        places = (np.arange(len(self.z)) + 0.5) / len(self.z)
        normal = np.asarray([NormalDist().inv_cdf(place) for place in places])
        return Speeds(self.sigma, normal, np.full(len(self.z), 1.0 / len(self.z)))


def tail_z(level: float, degrees: float) -> float:
    """Standard deviations of the log speed at a level beyond P90 by Student's t through the normal P90."""
    return float(student_t.ppf(level, degrees) / student_t.ppf(0.9, degrees)) * Z80


def price_draws(folder: Path, level: float) -> tuple[Floats, Floats]:
    """Quantile and the later price over the mean expected, of the cheapest place of each type and day."""
    high, later = [], []
    rows = read_histories(folder)
    for provider, first in _FIRST.items():
        for one in decisions(rows, None, provider, HORIZONS, first=first, step_days=28):
            terms = price_terms(one.quotes)
            for number, _ in enumerate(HORIZONS):
                sound = np.isfinite(terms.level) & one.scored & terms.offered & np.isfinite(one.later[number])
                at = np.flatnonzero(sound)
                if not len(at):
                    continue
                told = terms.expect(at, one.later_days[number, at])
                bound = terms.at_level(at, one.later_days[number, at], np.asarray(level))
                types = one.places["instance_type"].to_numpy()[at]
                for name in np.unique(types):
                    own = np.flatnonzero(types == name)
                    best = own[np.argmin(told.mean[own])]
                    high.append(max(bound[best] / told.mean[best], 1.0))
                    later.append(one.later[number, at[best]] / told.mean[best])
    return np.asarray(high), np.asarray(later)


@dataclass(frozen=True)
class Case:
    """One job on one set of zones."""

    traces: list[ZoneTrace]
    model: HazardModel
    work: float
    ratio: float
    sigma: float

    @property
    def zones(self) -> tuple[SpotZone, ...]:
        """Where spot is asked for."""
        return tuple(
            SpotZone(t.zone, t.region, t.instance_type, PRICE, t.provider, t.gang) for t in self.traces
        )

    def outcomes(self) -> Floats:
        """Cost of the plan's outcomes with spot, at the expected prices."""
        figures = np.asarray([figures_of(self.model.table_for(zone)) for zone in self.zones]).T[:, None, :]
        names: dict[str, int] = {}
        region = np.asarray([[names.setdefault(zone.region, len(names)) for zone in self.zones]])
        pool = unite(SpotPool(*figures), region, _CORRELATION).pool
        task = Task(
            work=self.work, interval=np.inf, write=0.0, restart=RESTART, notice=1e-9, steady=self.work,
            sigma=self.sigma, room=self.work * self.ratio - RESTART, acquire=0.0, has_fallback=True,
        )  # fmt: skip
        found = possible_outcomes(task, pool)
        return np.asarray(PRICE * (RESTART + found.spot) + found.on_demand)

    def replay(self, slower: float, windows: int, draw: np.random.Generator) -> tuple[Floats, Floats]:
        """Hours paid on spot and on-demand, from random launches; work left at the deadline is done on-demand."""
        ticks = round(self.work * self.ratio / TICK)
        length = min(len(t.up) for t in self.traces)
        seen = np.stack([t.up[:length] for t in self.traces])
        starts = draw.integers(0, length - ticks + 1, windows)
        up = np.stack([seen[:, start : start + ticks] for start in starts])
        job = SpotJob(self.work * slower, self.work * self.ratio, RESTART, 1.0, self.zones, tick_hours=TICK)
        tables = {zone.name: self.model.table_for(zone) for zone in self.zones}
        went = replay_futures(job, "greedy", tables, up)
        return went.spot_hours, went.on_demand_hours + went.work_left_hours


def cases(folder: Path, speeds: Speeds, draw: np.random.Generator) -> list[Case]:
    """Random jobs on recorded zones, long enough for the deadline twice over."""
    every = [
        (traces, model, work, ratio)
        for (traces, model), work, ratio in product(groups(folder), WORK, DEADLINES)
        if min(len(t.up) for t in traces) >= 2 * round(work * ratio / TICK)
    ]
    picked = draw.choice(len(every), min(CASES, len(every)), replace=False)
    return [Case(*every[at], float(draw.choice(speeds.sigma, p=speeds.weight))) for at in picked]


def replays_of(
    case: Case, speeds: Speeds, prices: tuple[Floats, Floats], level: float, each: int,
    draw: np.random.Generator, degrees: float | None = None,
) -> Floats:  # fmt: skip
    """Rows of quote and realised cost on spot and on-demand, expected cost of both; shape `(n, 6)`.

    With `degrees` two more columns: both quotes with a tail of Student's t.
    """
    fails = load_assumptions().machine_failures_per_node_hour
    expected = estimate(case.model, case.zones, case.work, case.ratio)[0] * case.work
    outcomes = case.outcomes()
    z, bound = NormalDist().inv_cdf(level), tail_quantile(outcomes, level)
    tails = [z] if degrees is None else [z, tail_z(level, degrees)]
    per_hour, rows = fails * case.traces[0].gang, []
    steady = case.work * (1.0 + per_hour * RESTART)
    spot_part = min(expected, PRICE * (case.work + RESTART))
    for z_speed in speeds.drawn(draw):
        slower = exp(case.sigma * z_speed)
        spot, other = case.replay(slower, each, draw)
        at = draw.integers(0, len(prices[0]), each)
        high, factor = prices[0][at], prices[1][at]
        quoted = [
            expected + np.hypot(max(bound * exp(case.sigma * (own - z)) - expected, 0.0), spot_part * (high - 1.0))
            for own in tails
        ]  # fmt: skip
        sure = [np.full(each, steady * exp(own * case.sigma)) for own in tails]
        failed = draw.poisson(per_hour * case.work * slower, each)
        firm = case.work * slower + failed * RESTART
        rows.append(np.column_stack([
            quoted[0], PRICE * spot * factor + other, sure[0], firm,
            np.full(each, expected), np.full(each, steady), *quoted[1:], *sure[1:],
        ]) / case.work)  # fmt: skip
    return np.concatenate(rows)


def held_with_range(by_case: list[Bools], draw: np.random.Generator) -> str:
    """Share held, with the 95 % interval over jobs drawn with replacement."""
    shares = np.asarray([held.mean() for held in by_case])
    again = shares[draw.integers(0, len(shares), (2000, len(shares)))].mean(axis=1)
    low, high = np.quantile(again, [0.025, 0.975])
    return f"{shares.mean():.1%} ({low:.1%} to {high:.1%})"


def main() -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True, help="folder of recorded spot days")
    parser.add_argument("--prices", type=Path, required=True, help="folder of price histories")
    parser.add_argument("--n", type=int, default=10_000, help="replays in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--normal", action="store_true", help="draw errors of speed as the quote assumes them instead"
    )
    parser.add_argument(
        "--steady-prices",
        action="store_true",
        help="prices come out as expected, and no width is quoted for them",
    )
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--degrees", type=float, help="also judge bounds with this tail of Student's t")
    given = parser.parse_args()
    draw = np.random.default_rng(given.seed)
    runs, _ = predict_runs(read_csv(RUNS))
    elapsed = [run for run in runs if run.kind in ELAPSED]
    others = [run for run in predict_runs(read_csv(OTHERS))[0] if run.kind in ELAPSED]
    speeds = Speeds.of(elapsed)
    print(speeds.left_out([run.family for run in elapsed], given.level))
    print("others:", Speeds.of(others, elapsed).left_out([run.family for run in others], given.level))
    if given.normal:
        speeds = speeds.as_assumed()
    prices = price_draws(given.prices, given.level)
    if given.steady_prices:
        prices = (np.ones_like(prices[0]), np.ones_like(prices[1]))
    jobs = cases(given.traces, speeds, draw)
    each = -(-given.n // (len(jobs) * SPEEDS))
    made = [replays_of(case, speeds, prices, given.level, each, draw, given.degrees) for case in jobs]
    report(made, speeds, prices, given.level, draw)
    if given.degrees is not None:
        print(f"with a tail of {given.degrees:g} degrees:")
        other = [rows[:, [6, 1, 7, 3, 4, 5]] for rows in made]
        report(other, speeds, prices, given.level, draw, tail_z(given.level, given.degrees))


def report(
    made: list[Floats], speeds: Speeds, prices: tuple[Floats, Floats], level: float,
    draw: np.random.Generator, z: float | None = None,
) -> None:  # fmt: skip
    """Print coverage, costs, and how each source alone is covered; `z`: of the speed at the level, if not normal."""
    print(f"{sum(map(len, made)):,} replays of {len(made)} jobs, quoted at {level:.1%}")
    spot, firm = ([rows[:, k + 1] <= rows[:, k] for rows in made] for k in (0, 2))
    chosen = [np.where(rows[:, 4] <= rows[:, 5], a, b) for rows, a, b in zip(made, spot, firm, strict=True)]
    least = [np.where(rows[:, 0] <= rows[:, 2], a, b) for rows, a, b in zip(made, spot, firm, strict=True)]
    for name, held in (
        ("chosen plan", chosen),
        ("plan of least bound", least),
        ("spot with fall-back", spot),
        ("on-demand", firm),
    ):
        print(f"{name}: within the bound {held_with_range(held, draw)}")
    alone = float(speeds.weight[speeds.z <= (z or NormalDist().inv_cdf(level))].sum())
    print(f"speed alone ({len(speeds.z)} runs): {alone:.1%}; prices alone ({len(prices[0]):,} choices): "
          f"{(prices[1] <= prices[0]).mean():.1%}")  # fmt: skip
    whole = np.concatenate(made)
    picked = np.where(whole[:, 4] <= whole[:, 5], whole[:, 1], whole[:, 3])
    by_bound = np.where(whole[:, 0] <= whole[:, 2], whole[:, 1], whole[:, 3])
    best = np.minimum(whole[:, 1], whole[:, 3])
    print(f"mean cost over on-demand hours predicted: chosen {picked.mean():.3f}, least bound {by_bound.mean():.3f} "
          f"({picked.mean() / by_bound.mean() - 1.0:+.1%}), clairvoyant {best.mean():.3f} "
          f"({picked.mean() / best.mean() - 1.0:+.1%}), on-demand {whole[:, 3].mean():.3f}")  # fmt: skip
    print(f"bound over mean cost of the chosen plan: "
          f"{np.where(whole[:, 4] <= whole[:, 5], whole[:, 0], whole[:, 2]).mean() / picked.mean():.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
