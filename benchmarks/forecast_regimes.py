"""Daily bills of many kinds, made from a seed: what a forecast meets besides the bills that are public.

python -m benchmarks.forecast_regimes --out DIR [--seed 1] [--per-regime 6]

writes one CSV file (date, scope, cost) per series and regime, for `python -m benchmarks.forecast --data DIR`. The
generator knows nothing of the forecaster: levels, lengths, noise, days and sizes of changes are drawn anew for every
series. Every regime lies on a base with a weekly season, noise with memory and whole cents.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from catalogs.tables.table import Floats
from planner.records import record

Days = NDArray[np.datetime64]
Random = np.random.Generator
WEEK = 7
SHORTEST, LONGEST = 200, 480  # days of a series
LATE_SHARE = (0.12, 0.90, 0.978, 0.985, 0.99, 0.993, 0.995, 0.997)  # reported by age; Azure, see docs


@record(frozen=True, eq=False)
class Bill:
    """One generated series.

    Attributes:
        regime: its kind.
        days: (n,) datetime64[D]; a day may be absent.
        cost: (n,) final cost per day.
    """

    regime: str
    days: Days
    cost: Floats


def bills(seed: int, per_regime: int) -> list[Bill]:
    """`per_regime` series of each regime; the same for the same seed, whichever regimes there are besides."""
    found = []
    for name, make in REGIMES.items():
        for number in range(per_regime):
            rng = np.random.default_rng([seed, number, zlib.crc32(name.encode())])
            n = int(rng.integers(SHORTEST, LONGEST + 1))
            days = np.datetime64("2023-01-01") + int(rng.integers(0, 700)) + np.arange(n)
            cost = np.round(10 ** rng.uniform(1, 4) * make(rng, days), 2)
            kept = rng.random(n) >= 0.02 if name == "absent_days" else np.ones(n, bool)
            found.append(Bill(name, days[kept], cost[kept]))
    return found


def reported(cost: Floats, rng: Random) -> Floats:
    """What a report on the evening of the last day says of final costs (n,): young days are not complete."""
    share = np.ones(len(cost))
    young = min(len(LATE_SHARE), len(cost))
    share[::-1][:young] = np.clip(np.array(LATE_SHARE[:young]) * rng.normal(1, 0.02, young), 0, 1)
    return np.asarray(cost * share)


def _noise(rng: Random, n: int, least: float = 0.01, most: float = 0.08) -> Floats:
    """Factors around 1 with a memory of some days."""
    size, memory = rng.uniform(least, most), rng.uniform(0.0, 0.8)
    shock = rng.normal(0, size * np.sqrt(1 - memory**2), n)
    out = np.empty(n)
    now = rng.normal(0, size)
    for day in range(n):
        now = memory * now + shock[day]
        out[day] = now
    return np.exp(out)


def _week(rng: Random, days: Days, most: float = 0.3) -> Floats:
    """Weekend factors: lower by up to `most`."""
    lower = rng.uniform(0, most)
    weekend = (days.astype(int) + 3) % WEEK >= 5
    return np.where(weekend, 1 - lower, 1.0) / (1 - lower * 2 / WEEK)


def _base(rng: Random, days: Days) -> Floats:
    return _week(rng, days) * _noise(rng, len(days))


def _shifts(rng: Random, n: int, gap: tuple[int, int], factors: Callable[[], float]) -> Floats:
    """A level that is multiplied at random days, 0.1 to 8 of the first one."""
    level, day = np.ones(n), int(rng.integers(*gap))
    while day < n:
        level[day:] = np.clip(level[day:] * factors(), 0.1, 8.0)
        day += int(rng.integers(*gap))
    return level


def steady(rng: Random, days: Days) -> Floats:
    """Nothing happens."""
    return _base(rng, days)


def shifts_up(rng: Random, days: Days) -> Floats:
    """New services: the level rises by 10 to 120 % every two to six months."""
    return _base(rng, days) * _shifts(rng, len(days), (50, 180), lambda: rng.uniform(1.1, 2.2))


def shifts_down(rng: Random, days: Days) -> Floats:
    """Clean-ups and commitments: the level falls by 10 to 50 %."""
    return _base(rng, days) * _shifts(rng, len(days), (50, 180), lambda: rng.uniform(0.5, 0.9))


def shifts_both(rng: Random, days: Days) -> Floats:
    """Up and down, every one to four months."""
    return _base(rng, days) * _shifts(
        rng, len(days), (25, 120), lambda: float(np.exp(rng.choice([-1, 1]) * rng.uniform(0.1, 0.8)))
    )


def moves(rng: Random, days: Days) -> Floats:
    """A service moves elsewhere over two to five weeks: the bill ramps up or down."""
    n = len(days)
    at = np.arange(n)
    level = np.ones(n)
    for _ in range(int(rng.integers(1, 4))):
        start, length = rng.integers(30, n), rng.integers(14, 36)
        level *= 1 + (rng.uniform(0.4, 2.5) - 1) * np.clip((at - start) / length, 0, 1)
    return _base(rng, days) * level


def nodes(rng: Random, days: Days) -> Floats:
    """Whole nodes that are added and removed by the day as load needs."""
    n = len(days)
    load = rng.uniform(3, 30) * np.exp(np.cumsum(rng.normal(0, rng.uniform(0.01, 0.04), n)))
    return np.ceil(load * _week(rng, days, 0.6)) * _noise(rng, n, 0.0, 0.02)


def storage(rng: Random, days: Days) -> Floats:
    """What is stored grows by the day, cleaned up now and then."""
    n = len(days)
    grown = 1 + np.cumsum(np.maximum(rng.normal(rng.uniform(0.0005, 0.006), 0.002, n), 0))
    for _ in range(int(rng.integers(0, 3))):
        day = int(rng.integers(30, n))
        grown[day:] -= rng.uniform(0.1, 0.4) * grown[day]
    return np.maximum(grown, 0.05) * _noise(rng, n, 0.001, 0.01)


def growth(rng: Random, days: Days) -> Floats:
    """Traffic that grows or shrinks by up to 12 % a month, at a rate that changes twice."""
    n = len(days)
    cuts = np.sort(rng.integers(0, n, 2))
    rate = np.choose(np.searchsorted(cuts, np.arange(n), side="right"), rng.uniform(-0.06, 0.12, 3))
    return _base(rng, days) * np.exp(np.cumsum(rate / 30))


def random_walk(rng: Random, days: Days) -> Floats:
    """The level wanders."""
    n = len(days)
    return _base(rng, days) * np.exp(np.cumsum(rng.normal(0, rng.uniform(0.005, 0.03), n)))


def allowance(rng: Random, days: Days) -> Floats:
    """Free each month until an allowance is used up."""
    use = rng.uniform(0.8, 1.2) * _week(rng, days) * _noise(rng, len(days))
    free = rng.uniform(2, 15)
    month = days.astype("datetime64[M]")
    out = np.empty(len(use))
    for one in np.unique(month):
        inside = month == one
        used = np.cumsum(use[inside])
        out[inside] = np.diff(np.maximum(used - free, 0), prepend=0.0)
    return out


def credits_end(rng: Random, days: Days) -> Floats:
    """A credit pays most of the bill until it has run out."""
    n = len(days)
    end, share = int(rng.integers(60, n)), rng.uniform(0.2, 0.7)
    return _base(rng, days) * np.where(np.arange(n) < end, 1 - share, 1.0)


def restated(rng: Random, days: Days) -> Floats:
    """Single days are corrected: doubled, refunded, or left at a part of their cost."""
    cost = _base(rng, days)
    wrong = rng.random(len(days)) < rng.uniform(0.005, 0.03)
    cost[wrong] *= rng.choice([-1.0, 0.1, 0.5, 2.0, 3.0], int(wrong.sum()))
    return cost


def workdays(rng: Random, days: Days) -> Floats:
    """Machines that run on workdays, with some days off."""
    weekend = (days.astype(int) + 3) % WEEK >= 5
    off = weekend | (rng.random(len(days)) < 0.02)
    level = _shifts(rng, len(days), (80, 250), lambda: rng.uniform(0.7, 1.5))
    return np.where(off, rng.uniform(0.02, 0.4), 1.0) * level * _noise(rng, len(days))


def month_fees(rng: Random, days: Days) -> Floats:
    """A fee on the first or the last day of each month beside use: support, licences, purchases."""
    month = days.astype("datetime64[M]")
    first = days == month.astype("datetime64[D]")
    last = days == (month + 1).astype("datetime64[D]") - 1
    return _base(rng, days) + (first if rng.random() < 0.5 else last) * rng.uniform(2, 15)


def bursts(rng: Random, days: Days) -> Floats:
    """Training runs start and stop on top of a base: some days to some weeks, with pauses."""
    n = len(days)
    on, off = rng.uniform(4, 40), rng.uniform(4, 40)
    cost, day = _base(rng, days) * rng.uniform(0.3, 1.0), 0
    while day < n:
        day += 1 + int(rng.exponential(off))
        length = 1 + int(rng.exponential(on))
        cost[day : day + length] += rng.choice([1, 2, 4]) * rng.uniform(0.3, 1.0)
        day += length
    return cost


def spikes(rng: Random, days: Days) -> Floats:
    """One dear day now and then."""
    spike = rng.random(len(days)) < rng.uniform(0.01, 0.03)
    return _base(rng, days) * np.where(spike, rng.uniform(2, 12, len(days)), 1.0)


def commitment(rng: Random, days: Days) -> Floats:
    """A commitment is bought, lowers the rate and ends."""
    n = len(days)
    start = int(rng.integers(30, n - 30))
    end = start + int(rng.integers(60, 250))
    at = np.arange(n)
    return _base(rng, days) * np.where((at >= start) & (at < end), rng.uniform(0.45, 0.8), 1.0)


def month_length(rng: Random, days: Days) -> Floats:
    """A price by the month, spread over its days, beside some use."""
    month = days.astype("datetime64[M]")
    length = ((month + 1).astype("datetime64[D]") - month.astype("datetime64[D]")).astype(int)
    level = _shifts(rng, len(days), (80, 250), lambda: rng.uniform(0.7, 1.5))
    return level * 30.0 / length * _noise(rng, len(days), 0.0, 0.01)


def absent_days(rng: Random, days: Days) -> Floats:
    """Nothing happens, but one day in fifty has no report."""
    return _base(rng, days)


def mixed(rng: Random, days: Days) -> Floats:
    """The sum of three of the others, as the total of a bill."""
    chosen = rng.choice([name for name in REGIMES if name not in ("mixed", "absent_days")], 3, replace=False)
    return np.asarray(sum(rng.uniform(0.2, 1.0) * REGIMES[name](rng, days) for name in chosen))


REGIMES: dict[str, Callable[[Random, Days], Floats]] = {
    make.__name__: make
    for make in (steady, shifts_up, shifts_down, shifts_both, moves, nodes, storage, growth, random_walk, allowance,
                 credits_end, restated, workdays, month_fees, bursts, spikes, commitment, month_length, absent_days,
                 mixed)
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder, made if it is not there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-regime", type=int, default=6, help="series of each regime")
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    made = bills(args.seed, args.per_regime)
    for number, bill in enumerate(made):
        rows = [f"{day},{bill.regime},{cost:.2f}" for day, cost in zip(bill.days, bill.cost, strict=True)]
        name = f"{bill.regime}-{args.seed}-{number % args.per_regime}.csv"
        (args.out / name).write_text("\n".join(["date,scope,cost", *rows]) + "\n", encoding="utf-8")
    print(f"{len(made)} series of {len(REGIMES)} regimes in {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
