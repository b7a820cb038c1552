"""Synthetic portfolios, shaped on real catalogs: training jobs of many sizes over the accelerators of three clouds.

Prices of a type follow its region's level, spot is cheaper and reworks a little; hours follow from 6 FLOP per parameter
and token at an efficiency that falls with the node count; data leaves its region at a price per TB. Account quotas are
in vCPU per (provider, region, family, purchase option, time window), Pareto-distributed and scaled so that the
cheapest choice of every job together does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.portfolios.shared_limits import MICRO, QUOTA, PortfolioInput

NODES = np.array([1, 2, 4, 8, 16, 32])
REGIONS = (30, 20, 28)  # per provider
EGRESS_USD_PER_TB = (20.0, 90.0)  # inside a provider, between providers
# provider, family, accelerators, GB each, dense TFLOP/s each, vCPU, fast network, USD/h, scarcity
TYPES = np.array(
    [
        *[(0, 0, 1, 16, 65, v, 0, p, 0.1) for v, p in ((4, 0.53), (8, 0.75), (16, 1.2), (32, 2.18), (64, 4.35))],
        (0, 0, 4, 16, 65, 48, 1, 3.91, 0.1),
        (0, 0, 8, 16, 65, 96, 1, 7.82, 0.2),
        *[(0, 0, 1, 24, 70, v, 0, p, 0.2) for v, p in ((4, 1.01), (8, 1.21), (16, 1.62), (32, 2.45), (64, 4.1))],
        *[(0, 0, 4, 24, 70, v, 1, p, 0.3) for v, p in ((48, 5.67), (96, 8.14))],
        (0, 0, 8, 24, 70, 192, 1, 16.29, 0.3),
        *[(0, 0, 1, 24, 121, v, 0, p, 0.3) for v, p in ((4, 0.8), (8, 0.98), (16, 1.32), (32, 2.01))],
        *[(0, 0, 4, 24, 121, v, 1, p, 0.4) for v, p in ((48, 4.6), (96, 6.68))],
        (0, 0, 8, 24, 121, 192, 1, 13.35, 0.4),
        *[(0, 0, 1, 48, 362, v, 0, p, 0.5) for v, p in ((4, 1.86), (8, 2.24), (16, 3.0), (32, 4.53))],
        *[(0, 0, 4, 48, 362, v, 1, p, 0.5) for v, p in ((48, 10.49), (96, 15.07))],
        (0, 0, 8, 48, 362, 192, 1, 30.13, 0.5),
        (0, 1, 1, 16, 125, 8, 0, 3.06, 0.5),
        (0, 1, 4, 16, 125, 32, 0, 12.24, 0.5),
        (0, 1, 8, 16, 125, 64, 0, 24.48, 0.5),
        (0, 1, 8, 32, 125, 96, 1, 31.21, 0.5),
        (0, 1, 8, 40, 312, 96, 1, 21.96, 0.7),
        (0, 1, 8, 80, 312, 96, 1, 27.45, 0.8),
        (0, 1, 1, 80, 989, 16, 0, 6.88, 0.7),
        (0, 1, 8, 80, 989, 192, 1, 55.04, 0.7),
        (0, 1, 8, 141, 989, 192, 1, 63.3, 0.75),
        (0, 1, 8, 179, 2250, 192, 1, 113.93, 0.85),
        (0, 2, 16, 32, 95, 128, 1, 21.5, 0.6),
        *[(1, 0, n, 40, 312, 12 * n, 0, 3.67 * n, 0.5) for n in (1, 2, 4, 8)],
        *[(1, 1, n, 80, 312, 12 * n, 0, 5.07 * n, 0.6) for n in (1, 2, 4, 8)],
        *[(1, 2, n, 80, 989, 26 * n, int(n == 8), 11.06 * n, 0.6) for n in (1, 2, 4, 8)],
        (1, 3, 8, 141, 989, 224, 1, 84.81, 0.8),
        *[(1, 4, 1, 24, 121, v, 0, p, 0.2) for v, p in ((4, 0.71), (8, 0.85), (12, 1.0), (16, 1.15), (32, 1.73))],
        *[(1, 4, n, 24, 121, 12 * n, 0, 1.0 * n, 0.3) for n in (2, 4, 8)],
        *[(1, 5, n, 16, 65, 4 * n, 0, 0.54 * n, 0.2) for n in (1, 4)],
        (1, 5, 8, 16, 125, 64, 0, 22.88, 0.6),
        *[(2, 0, 8, gb, 312, 96, 1, p, 0.7) for gb, p in ((40, 27.2), (80, 32.77))],
        *[(2, 1, 8, gb, 989, 96, 1, p, 0.8) for gb, p in ((80, 98.32), (141, 110.24))],
        *[(2, 2, n, 80, 312, 24 * n, 0, 3.67 * n, 0.5) for n in (1, 2, 4)],
        *[(2, 3, n, 94, 835, 40 * n, 0, 6.98 * n, 0.6) for n in (1, 2)],
        *[(2, 4, 1, 16, 65, v, 0, p, 0.2) for v, p in ((4, 0.53), (8, 0.75), (16, 1.2))],
        *[(2, 5, n, 16, 125, 6 * n, 0, 3.06 * n, 0.5) for n in (1, 2, 4)],
        *[(2, 6, n, 24, 125, 36 * n, 0, 3.2 * n, 0.3) for n in (1, 2)],
        (2, 7, 8, 192, 1307, 96, 1, 67.4, 0.8),
    ]
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Offers:
    """What is sold: one row per (type, region, spot); the zone is the cheapest one."""

    kind: Ints
    region: Ints
    provider: Ints
    spot: Bools
    usd_per_hour: Floats
    rework: Floats
    group: Ints
    n_groups: int


@dataclass(frozen=True, eq=False)
class Instance:
    """A portfolio with the hours of each candidate and what an hour of each job is worth."""

    question: PortfolioInput
    hours: Floats
    usd_per_hour_late: Floats


def build_offers(random: np.random.Generator) -> Offers:
    """Offers of all types in the regions that have them, on demand and spot."""
    providers = np.repeat(np.arange(3), REGIONS)
    level = np.where(random.random(len(providers)) < 0.15, 1.0, random.uniform(1.0, 1.5, len(providers)))
    stock = random.uniform(0.3, 1.0, len(providers))
    home = np.cumsum((0, *REGIONS[:2]))
    level[home], stock[home] = 1.0, 1.0
    own, family, scarce = TYPES[:, 0].astype(int), TYPES[:, 1].astype(int), TYPES[:, 8]
    chance = stock[None, :] * (1.08 - 0.75 * scarce[:, None])
    sold = (own[:, None] == providers[None, :]) & (random.random(chance.shape) < chance)
    sold[:, home] |= own[:, None] == providers[home][None, :]
    kind, region = np.nonzero(sold)
    price = TYPES[kind, 7] * level[region] * (1 + 0.04 * random.standard_normal(len(kind)).clip(-2, 2))
    cut = np.clip(random.beta(6, 3.6, len(kind)) - 0.25 * scarce[kind] * random.random(len(kind)), 0.08, 0.9)
    also = random.random(len(kind)) < 1 - 0.35 * scarce[kind]
    kind, region, spot = (
        np.r_[kind, kind[also]], np.r_[region, region[also]], np.r_[np.zeros(len(kind)), np.ones(also.sum())] > 0
    )  # fmt: skip
    price = np.r_[price, (price * (1 - cut))[also]]
    rate = random.choice([0.025, 0.075, 0.125, 0.175, 0.25], len(kind), p=[0.35, 0.25, 0.15, 0.1, 0.15])
    code = (region * 16 + family[kind]) * 2 + spot
    groups, group = np.unique(code, return_inverse=True)
    rework = np.where(spot, 1 + 0.35 * rate, 1.0)
    return Offers(kind, region, providers[region], spot, price, rework, group, len(groups))


def generate(
    seed: int,
    n_jobs: int = 100,
    per_job: int = 200,
    *,
    tight: float = 0.55,
    windows: int = 1,
    feasible: bool = True,
) -> Instance:
    """A portfolio.

    Args:
        seed: of all randomness.
        n_jobs: number of jobs.
        per_job: most candidates of a job.
        tight: quotas over what everyone's first choice would need.
        windows: time windows; each job falls into one.
        feasible: whether a home region takes every job's fallback, so that a plan certainly exists.
    """
    random = np.random.default_rng([seed, n_jobs, per_job, windows])
    offers = build_offers(random)
    hot = random.choice(sum(REGIONS), 6, replace=False)
    parts = [_job(random, offers, hot, per_job) for _ in range(n_jobs)]
    window = random.integers(0, windows, n_jobs)
    job = np.repeat(np.arange(n_jobs), [len(part[0]) for part in parts])
    cost, hours, group, units = (np.concatenate([part[at] for part in parts]) for at in range(4))
    row = group.astype(np.int64) * windows + window[job]
    quota = _quotas(random, job, row, units, offers.n_groups * windows, n_jobs, windows, tight)
    if feasible:
        taken = np.zeros(len(quota), dtype=np.int64)
        last = np.flatnonzero(np.r_[np.diff(job) != 0, True])  # the fallback closes each job's list
        np.add.at(taken, row[last], units[last])
        quota = np.maximum(quota, taken)
    question = PortfolioInput(
        n_jobs, job, cost, cost.copy(), np.arange(len(job)), row, units, quota,
        np.full(len(quota), QUOTA, dtype=np.int64),
    )  # fmt: skip
    return Instance(question, hours, 10 ** random.uniform(-1, 1, n_jobs))


def _job(
    random: np.random.Generator, offers: Offers, hot: Ints, per_job: int
) -> tuple[Ints, Floats, Ints, Ints]:
    """Cost, hours, quota group and vCPU of the candidates of one job, cheapest first, its fallback last."""
    parameters = 10 ** random.uniform(8.3, 10.6)
    tokens = parameters * 10 ** random.uniform(-0.3, 1.0)
    deadline = float(random.choice([24, 48, 96, 168, 336]))
    source = int(random.choice(hot)) if random.random() < 0.85 else int(random.integers(sum(REGIONS)))
    terabytes = 10 ** random.uniform(-1.5, 1.3)
    kind = TYPES
    slope = np.where(kind[:, 6] > 0, 0.012, 0.07)[:, None]
    speed = kind[:, 2:3] * kind[:, 4:5] * 1e12 * NODES * 0.4 / (1 + slope * np.log2(NODES))
    needs = 16 * parameters * (0.25 if parameters > 5e9 else 1.0)
    memory = kind[:, 2:3] * NODES * (kind[:, 3:4] * 0.92 - 5) * 2.0**30
    base = np.where(memory >= needs, 6 * parameters * tokens / speed / 3600, np.inf)
    hours = base[offers.kind] * offers.rework[:, None]
    at_home = np.isin(offers.region, np.cumsum((0, *REGIONS[:2]))) & ~offers.spot
    if not (hours[at_home] <= deadline).any():
        deadline = 1.5 * float(hours[at_home].min())
    fits = (hours <= deadline) & (hours > 0.05)
    fits[at_home] |= hours[at_home] <= deadline
    provider = int(np.repeat(np.arange(3), REGIONS)[source])
    moved = np.where(offers.provider == provider, *EGRESS_USD_PER_TB) * terabytes
    usd = (
        offers.usd_per_hour[:, None] * NODES * hours + np.where(offers.region == source, 0.0, moved)[:, None]
    )
    offer, size = np.nonzero(fits)
    cost = np.rint(usd[offer, size] * MICRO).astype(np.int64)
    units = (kind[offers.kind[offer], 5] * NODES[size]).astype(np.int64)
    group = offers.group[offer]
    order = np.lexsort((units, cost, group))
    kept = order[_staircase(group[order], units[order])]
    kept = kept[np.argsort(cost[kept], kind="stable")]
    spare = kept[at_home[offer[kept]]][0]
    chosen = kept[:per_job]
    chosen = np.r_[chosen[chosen != spare][: per_job - 1], spare]
    return cost[chosen], hours[offer[chosen], size[chosen]], group[chosen], units[chosen]


def _staircase(group: Ints, units: Ints) -> Bools:
    """Of each group in order of cost, those that need fewer units than all cheaper ones."""
    top = int(units.max()) + 1
    level = units - group.astype(np.int64) * top  # later groups lie lower, so one running minimum serves all
    before = np.r_[np.iinfo(np.int64).max, np.minimum.accumulate(level)[:-1]]
    return np.asarray(level < before, dtype=np.bool_)


def _quotas(
    random: np.random.Generator,
    job: Ints,
    row: Ints,
    units: Ints,
    n_rows: int,
    n_jobs: int,
    windows: int,
    tight: float,
) -> Ints:
    first = np.flatnonzero(np.r_[True, np.diff(job) != 0])
    wanted = np.zeros(n_rows)
    np.add.at(wanted, row[first], units[first])
    usual = (
        np.rint(96 * (1 + random.pareto(1.0, n_rows))).clip(0, 2000) * max(1.0, n_jobs / 100 / windows) ** 0.8
    )
    quota: Floats = np.maximum(wanted * tight * random.uniform(0.5, 1.2, n_rows), usual)
    return np.rint(quota).astype(np.int64)
