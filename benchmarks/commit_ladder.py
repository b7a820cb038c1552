"""What commitments cost that are bought in steps, each asked for anew, in the second year of doing so.

python -m benchmarks.commit_ladder --years 60 --seed 9001

On generated years (`benchmarks.commit_years`, with two years to come) `planner commit --from-focus` is asked once a
year, twice, or every quarter, from the thirteen months of the bill before and with what is owned. Of the first
proposals a part is bought, so that in the end as much runs out at each question as at any other: with a question a
quarter a fourth of the first, a third of the second, half of the third, and then all that is proposed. The second year
is scored: what is due and used in it, whenever it was bought, against no commitment at all, and against the best
commitments on its first day with perfect foresight. So steps begin and end in it alike, and none is half paid.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from datetime import timedelta

import numpy as np

from benchmarks.commit_hindsight import MOST_LOSS, START, best_of, built, foresight, paid
from benchmarks.commit_years import COMING_DAYS, KNOWN_DAYS, Year, make_year
from catalogs.tables.table import Floats
from planner.commitments.from_bill import RISK, scenario_size
from planner.commitments.walk import draw_year
from planner.inputs.commit_schema import Owned

Held = list[tuple[int, dict[str, float]]]  # day of purchase, what was bought
TERM = COMING_DAYS
WAYS = ((1, False), (2, False), (4, False), (4, True))  # questions a year, whether they know what ends when


def ladder(year: Year, seed: int, steps: int, *, told: bool) -> Held:
    """Return what is bought in two years with so many questions a year."""
    held: Held = []
    first = TERM if steps == 1 else 0  # what was bought a year before has run out
    for number in range(2 * steps):
        day = number * TERM // steps
        if day < first:
            continue
        share = 1 / max(steps - number, 1)
        proposal = asked(year, day, held, seed, told=told)
        held.append((day, {name: _part(name, units * share) for name, units in proposal.items()}))
    return held


def _part(name: str, units: float) -> float:
    """A part of a purchase, of machines in whole ones."""
    return units if name == "plan" else float(int(units + 0.5))


def asked(year: Year, day: int, held: Held, seed: int, *, told: bool) -> dict[str, float]:
    """Return what is proposed on a day."""
    known = np.vstack([year.known, year.coming])[day : day + KNOWN_DAYS]
    count, rows = scenario_size(RISK, 24)
    futures = draw_year(known, 24, count=count, rows=rows, seed=seed)
    owned = tuple(
        _owned(name, units, (TERM if told else 2 * TERM) + bought)
        for bought, items in held
        for name, units in items.items()
        if units > 0 and bought + TERM > day
    )
    return best_of(built(year, futures, RISK, START + timedelta(days=day), owned), RISK)


def _owned(name: str, units: float, until: int) -> Owned:
    expires = START + timedelta(days=until - 1)
    if name == "plan":
        return Owned(purchase_option="savings_plan_1y", provider="x", usd_per_hour=units, expires=expires)
    return Owned(purchase_option="reserved_1y", pool=f"p{name}", instances=units, expires=expires)


def score(year: Year, seed: int) -> tuple[Floats, float, float]:
    """Return the second year's cost with each number of questions, with foresight, and with none, in USD."""
    second = replace(year, coming=year.coming[TERM : 2 * TERM])
    nothing = paid(second, {})
    if nothing == 0.0:
        return np.zeros(len(WAYS)), 0.0, 0.0
    costs = []
    for steps, told in WAYS:
        held = ladder(year, seed, steps, told=told)
        cost = 0.0
        for day in range(TERM):
            today: dict[str, float] = {}
            for bought, items in held:
                if bought <= TERM + day < bought + TERM:
                    today = {name: today.get(name, 0.0) + items.get(name, 0.0) for name in {**today, **items}}
            cost += paid(replace(second, coming=second.coming[day : day + 1]), today)
        costs.append(cost)
    return np.array(costs), foresight(second), nothing


def main() -> None:
    """Score years and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--years", type=int, default=60)
    parser.add_argument("--seed", type=int, default=9001)
    options = parser.parse_args()
    begun = time.process_time()
    years = (make_year(options.seed, number, 2 * TERM) for number in range(options.years))
    scored = [one for one in (score(year, options.seed) for year in years) if one[2] > 0]
    costs, best, nothing = (np.array([one[part] for one in scored]) for part in range(3))
    print("| questions a year | median regret | within 2 % of none | saved | worst |")
    for (steps, told), cost in zip(WAYS, costs.T, strict=True):
        held = (cost / nothing - 1 <= MOST_LOSS).mean()
        print(
            f"| {steps}{' (ends known)' * told} | {np.median(cost / best - 1):.1%} | {held:.1%} "
            f"| {1 - cost.sum() / nothing.sum():.1%} | {(cost / nothing - 1).max():+.0%} |"
        )
    print(f"with foresight saved {1 - best.sum() / nothing.sum():.1%}; ", end="")
    print(f"{len(scored)} years with use, seed {options.seed}, {time.process_time() - begun:.0f} CPU s")


if __name__ == "__main__":
    main()
