"""What spend-based commitments proposed from public daily costs would have cost, against those of perfect foresight.

python -m benchmarks.commit_series --data DIR [--avoid-loss] [--every 7]

DIR holds mybinder_daily_cost_by_category.csv and mybinder_daily_cost_by_project.csv: what mybinder.org paid Google
Cloud a day, 2017-12-13 to 2019-03-31. A savings plan or spend-based committed use is bought in dollars an hour, so
daily cost over 24 is its demand, whatever machines it paid for. From every seventh day on, a plan of one year is
proposed from the days before (at most thirteen months of them), as `planner commit --from-focus` proposes it for a bill
by the day with that plan alone on sale. Then the days after are paid: with the plan, with the best plan in hindsight,
with none, and with the plan that would have been best for the last 30 or 60 days.

The series are shorter than thirteen months and a year, so a purchase has either a short history or a year that is seen
in part; both are shown apart. The discounts are assumed, and count for all of a day's cost.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.commit_hindsight import GAP, LEAST_SHARE, MOST_LOSS, MOST_REGRET
from benchmarks.commit_years import COMING_DAYS, KNOWN_DAYS
from catalogs.tables.table import Floats
from planner.commitments.avoid_loss import avoid_loss
from planner.commitments.build import build_model
from planner.commitments.from_bill import RISK, SELDOM_LOSES, scenario_size
from planner.commitments.prices import pool_prices
from planner.commitments.solve import solve_bill
from planner.commitments.walk import draw_year
from planner.inputs.commit_schema import CommitQuestion, Options, Pool, Risk
from planner.records import record

FILES = (("category", ("compute-engine",)), ("project", ("binder-prod", "binder-staging")))
DISCOUNTS = (0.2, 0.3, 0.4)
LEAST_KNOWN, LEAST_SEEN = 31, 56
LOOK_BACKS = (30, 60)


@record(frozen=True)
class Case:
    """One purchase, at what the days after it came to, USD.

    Attributes:
        known_days, seen_days: before and after the purchase.
        planned, best, nothing: cost with the proposal, with the best plan in hindsight, with none.
        replayed: cost with the plan that was best for the last days, by their number.
    """

    known_days: int
    seen_days: int
    planned: float
    best: float
    nothing: float
    replayed: tuple[float, ...]


def paid(daily: Floats, covered: float, discount: float) -> float:
    """Return the cost of days at a plan that covers so much on-demand cost a day.

    Args:
        daily: on-demand cost of each day, USD, shape `(D,)`.
        covered: on-demand cost a day that the plan covers, USD.
        discount: of the plan; its payments are due on every day, used or not.
    """
    return float(np.maximum(daily - covered, 0.0).sum()) + (1 - discount) * covered * len(daily)


def best_cover(daily: Floats, discount: float) -> float:
    """Return the cover that costs least: a cost of one of the days, or none (the cost is linear between them)."""
    return min((0.0, *np.unique(daily)), key=lambda covered: paid(daily, float(covered), discount))


def proposed(known: Floats, discount: float, risk: Risk, begin: date) -> float:
    """Return the on-demand cost a day that the proposed plan covers; `known` has a column per pool, USD a day."""
    count, rows = scenario_size(risk, 24)
    futures = draw_year(known / 24, 24, count=count, rows=rows, seed=1)
    prices = {"on_demand": 1.0, "savings_plan_1y": 1 - discount}
    pools = tuple(
        Pool.model_validate({"name": f"p{at}", "provider": "x", "region": "r", "prices": prices})
        for at in range(known.shape[1])
    )
    question = CommitQuestion(
        version=1, name="series", start=begin, horizon_years=1, pools=pools, risk=risk,
        options=Options(allow=("savings_plan_1y",)),
    )  # fmt: skip
    built = build_model(question, pool_prices(None, question.pools, "series"), futures, 1)
    if not built.buyable:
        return 0.0
    model, solved = solve_bill(built.model, gap=GAP)
    if risk.loss_price:
        solved, _ = avoid_loss(model, solved, risk)
    return 24 * float(solved.x.sum()) / (1 - discount)


def cases(daily: Floats, first: date, discount: float, risk: Risk, every: int) -> Iterator[Case]:
    """Yield a purchase per `every` days; `daily` has a column per pool."""
    for day in range(LEAST_KNOWN, len(daily) - LEAST_SEEN + 1, every):
        known, seen = daily[max(day - KNOWN_DAYS, 0) : day], daily[day : day + COMING_DAYS].sum(axis=1)
        covered = proposed(known, discount, risk, first + timedelta(days=day))
        past = [best_cover(known[-days:].sum(axis=1), discount) for days in LOOK_BACKS]
        yield Case(
            len(known), len(seen), paid(seen, covered, discount),
            paid(seen, best_cover(seen, discount), discount), float(seen.sum()),
            tuple(paid(seen, one, discount) for one in past),
        )  # fmt: skip


def read_series(folder: Path) -> Iterator[tuple[str, Floats, date]]:
    """Yield name, USD a day with a column per pool, and first day of each series."""
    for key, names in FILES:
        rows = pd.read_csv(folder / f"mybinder_daily_cost_by_{key}.csv")
        table = rows.pivot_table(index="date", columns=key, values="cost_usd", aggfunc="sum")
        days = pd.date_range(str(table.index.min()), str(table.index.max()))
        table = table.set_index(pd.to_datetime(table.index)).reindex(days)[list(names)].fillna(0.0)
        yield " and ".join(names), table.to_numpy(dtype=float), days[0].date()


def _row(name: str, found: list[Case]) -> str:
    cost, best, nothing = (
        np.array([getattr(one, part) for one in found]) for part in ("planned", "best", "nothing")
    )
    replayed = np.array([one.replayed for one in found])
    regret = [np.median(part / best - 1) for part in (cost, *replayed.T, nothing)]
    held = [(part / nothing - 1 <= MOST_LOSS).mean() for part in (cost, *replayed.T)]
    saved = [1 - part.sum() / nothing.sum() for part in (cost, *replayed.T, best)]
    cells = ("; ".join(f"{100 * value:.1f}" for value in part) + " %" for part in (regret, held, saved))
    return f"| {name} | {len(found)} | {' | '.join(cells)} | {(cost / nothing - 1).max():+.0%} |"


def main() -> None:
    """Score purchases and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--every", type=int, default=7, help="days from one purchase to the next")
    parser.add_argument("--avoid-loss", action="store_true")
    asked = parser.parse_args()
    begun, risk = time.process_time(), SELDOM_LOSES if asked.avoid_loss else RISK
    print(
        f"goals: median regret <= {MOST_REGRET:.0%}, within {MOST_LOSS:.0%} of none in >= {LEAST_SHARE:.0%}; "
        "each cell: proposal; best for the last 30; 60 days; then none (regret), foresight (saved)"
    )
    print(
        "| series, discount, days known and seen | n | median regret | within 2 % of none | saved | worst |"
    )
    for name, daily, first in read_series(asked.data):
        for discount in DISCOUNTS:
            found = list(cases(daily, first, discount, risk, asked.every))
            parts = {
                "a whole year seen": [one for one in found if one.seen_days == COMING_DAYS],
                "a part seen": [
                    one for one in found if one.seen_days < COMING_DAYS and one.known_days < KNOWN_DAYS
                ],
                "thirteen months known": [one for one in found if one.known_days == KNOWN_DAYS],
            }
            for part, these in parts.items():
                if these:
                    print(_row(f"{name}, {discount:.0%}, {part}", these), flush=True)
    print(f"{time.process_time() - begun:.0f} CPU s")


if __name__ == "__main__":
    main()
