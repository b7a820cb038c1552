"""How far purchases could get on the years of `benchmarks.commit_years` that know the law by which these are generated.

python -m benchmarks.commit_bounds --years 150 --seed 1001

Each year's pools stand at the purchase, alive, with their level, growth, weekly profile and noise known; many futures
of each follow by the generator's law. A purchase is a share of every pool's best reservation by that law, chosen on
these very futures with a price on the probability to lose more than 2 % against buying nothing: with one share for all
pools, then with a share for each. `for the goals alone` has, beside that price, the probability of a regret above 5 %
in place of the cost: it gives up savings to look well in both figures. Whoever has thirteen months of a bill knows
less. Savings plans are left out.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.commit_hindsight import MOST_LOSS, MOST_REGRET
from benchmarks.commit_years import (
    BURSTS_A_YEAR,
    CANCELLED_A_YEAR,
    COMING_DAYS,
    KNOWN_DAYS,
    SHIFTS_A_YEAR,
)
from catalogs.tables.table import Floats
from planner.records import record

FUTURES = 150
SHARES = np.asarray([0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1])
PRICES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
WAYS = {
    "one share": (False, False),
    "a share for each pool": (True, False),
    "for the goals alone": (True, True),
}
_OF_COST = 0.1  # weight of the cost beside the two probabilities: what decides where they are alike
_EARLIEST = 60  # day of the first cancellation, as in the generator


@record(frozen=True, eq=False)
class Law:
    """Futures of one year and what shares of the best reservations cost in them.

    Attributes:
        pools: USD by pool, share and future, shape `(P, len(SHARES), FUTURES)`.
        nothing: USD without a purchase, shape `(FUTURES,)`; best: with perfect foresight.
    """

    pools: Floats
    nothing: Floats
    best: Floats


def ends_within_the_year() -> float:
    """Probability that a pool which is alive at the purchase ends in the year to come, by the generator."""
    days = KNOWN_DAYS + COMING_DAYS
    ever = 1.0 - (1.0 - CANCELLED_A_YEAR) ** (days / 365)
    per_day = ever / (days - _EARLIEST)
    return per_day * COMING_DAYS / (1.0 - per_day * (KNOWN_DAYS - _EARLIEST))


def law_of(draw: np.random.Generator) -> Law:
    """Draw one year's pools and their futures."""
    count = int(draw.integers(3, 7))
    on_demand = np.exp(draw.uniform(np.log(0.5), np.log(40.0), count))
    reserved = on_demand * draw.uniform(0.58, 0.72, count)
    ended, pools, nothing, best = ends_within_the_year(), [], np.zeros(FUTURES), np.zeros(FUTURES)
    for pool in range(count):
        use = _futures(draw, ended)
        unused = int(
            COMING_DAYS * reserved[pool] / on_demand[pool]
        )  # days without use at which a unit breaks even
        wanted = -np.sort(-use.ravel())[FUTURES * unused]
        units = np.round(wanted * SHARES)[:, None]
        above = np.maximum(use[None] - units[:, :, None], 0.0).sum(axis=2)
        pools.append(above * on_demand[pool] + units * reserved[pool] * COMING_DAYS)
        seen = -np.sort(-use, axis=1)[:, unused]
        best += np.maximum(use - seen[:, None], 0.0).sum(axis=1) * on_demand[pool]
        best += seen * reserved[pool] * COMING_DAYS
        nothing += use.sum(axis=1) * on_demand[pool]
    return Law(np.stack(pools), nothing, np.minimum(best, nothing))


def _futures(draw: np.random.Generator, ended: float) -> Floats:
    """Machines of a pool by day, shape `(FUTURES, 365)`."""
    days = np.arange(COMING_DAYS)
    level = np.log(draw.uniform(4.0, 60.0)) + draw.normal(
        0.0, 0.35 * np.sqrt(SHIFTS_A_YEAR * KNOWN_DAYS / 365)
    )
    growth, weekend = draw.choice([0.7, 1.0, 1.0, 1.15, 1.5]), draw.choice([1.0, 1.0, 0.85, 0.6])
    noise = draw.choice([0.03, 0.08, 0.15])
    out = np.tile(level + np.log(growth) * days / 365, (FUTURES, 1))
    for future in out:
        for _ in range(int(draw.poisson(SHIFTS_A_YEAR))):
            future[int(draw.integers(COMING_DAYS)) :] += draw.normal(0.0, 0.35)
        for _ in range(int(draw.poisson(BURSTS_A_YEAR))):
            first = int(draw.integers(COMING_DAYS))
            future[first : first + int(draw.integers(3, 30))] += np.log(draw.uniform(1.2, 2.0))
        if draw.random() < ended:
            future[int(draw.integers(COMING_DAYS)) :] = -np.inf
    shape = np.where(days % 7 >= 5, weekend, 1.0)
    return np.asarray(np.round(np.exp(out + draw.normal(0.0, noise, out.shape)) * shape))


def chosen(law: Law, price: float, *, apart: bool, for_goals: bool = False) -> Floats:
    """Cost in every future of the purchase of least expected cost and priced chance to lose, shape `(FUTURES,)`.

    Args:
        law: the year.
        price: of the probability to lose, in shares of the expected cost of buying nothing.
        apart: a share for each pool instead of one for all.
        for_goals: the chance of a regret above 5 % instead of the expected cost.
    """
    most, mean = law.nothing * (1.0 + MOST_LOSS), law.nothing.mean()
    regretted = law.best * (1.0 + MOST_REGRET)

    def weigh(cost: Floats) -> Floats:
        value = cost.mean(axis=-1) / mean
        if for_goals:
            value = _OF_COST * value + (cost > regretted + 1e-9).mean(axis=-1)
        return np.asarray(value + price * (cost > most + 1e-9).mean(axis=-1))

    together = law.pools.sum(axis=0)
    at = np.full(len(law.pools), int(np.argmin(weigh(together))))
    cost = together[at[0]]
    moved = apart
    while moved:
        moved = False
        for pool, own in enumerate(law.pools):
            trial = cost - own[at[pool]] + own
            value = weigh(trial)
            if value.min() < float(weigh(cost)) - 1e-9:
                at[pool], moved = int(np.argmin(value)), True
                cost = trial[at[pool]]
    return np.asarray(cost)


def main() -> None:
    """Print the front of median regret and years within 2 % of buying nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1001)
    asked = parser.parse_args()
    draw = np.random.default_rng(asked.seed)
    laws = [law_of(draw) for _ in range(asked.years)]
    used = np.concatenate([law.nothing for law in laws]) > 0
    best, nothing = (
        np.concatenate([getattr(law, name) for law in laws])[used] for name in ("best", "nothing")
    )
    print(
        f"{len(laws)} years x {FUTURES} futures, seed {asked.seed}; a pool ends with {ends_within_the_year():.1%}"
    )
    for name, (apart, for_goals) in WAYS.items():
        for price in PRICES:
            of_years = [chosen(law, price, apart=apart, for_goals=for_goals) for law in laws]
            cost = np.concatenate(of_years)[used]
            regret, loss = cost / best - 1.0, cost / nothing - 1.0
            held, saved = float((loss <= MOST_LOSS).mean()), 1.0 - cost.sum() / nothing.sum()
            print(
                f"{name}, price {price:4.1f}: median regret {np.median(regret):5.1%} (goal {MOST_REGRET:.0%}), "
                f"within {MOST_LOSS:.0%} of buying nothing {held:.1%}, saved {saved:.1%}"
            )


if __name__ == "__main__":
    main()
