"""What purchases from a bill's history cost against those of perfect foresight, on generated years.

python -m benchmarks.commit_hindsight --years 100 --seed 7 [--avoid-loss] [--days 31]

Each year of `benchmarks.commit_years` is answered as `planner commit --from-focus` answers a bill by the day: the same
scenarios, options and weight of risk. Then the year to come is paid for: with the purchases, with those that would have
been best (gap 0.1 %), and with none. Nothing of the coming year reaches the answer.
With `--days` the bill has only its last days.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from datetime import date

import numpy as np

from benchmarks.commit_years import COMING_DAYS, KNOWN_DAYS, Year, make_year
from planner.commitments.avoid_loss import avoid_loss
from planner.commitments.build import Built, build_model
from planner.commitments.from_bill import RISK, SELDOM_LOSES, YEAR_OPTIONS, scenario_size
from planner.commitments.prices import pool_prices
from planner.commitments.scenarios import Future, Futures
from planner.commitments.solve import solve_bill
from planner.commitments.walk import draw_year
from planner.inputs.commit_schema import CommitQuestion, Options, Owned, Pool, Risk

START = date(2027, 1, 1)
GAP = 1e-3
MOST_REGRET, MOST_LOSS, LEAST_SHARE = 0.05, 0.02, 0.95


def score(year: Year, seed: int, risk: Risk = RISK) -> tuple[float, float, float]:
    """Return the coming year's cost with the purchases, with those of perfect foresight, and with none, in USD."""
    count, rows = scenario_size(risk, 24)
    futures = draw_year(year.known, 24, count=count, rows=rows, seed=seed)
    bought = best_of(built(year, futures, risk), risk)
    return paid(year, bought), foresight(year), paid(year, {})


def foresight(year: Year) -> float:
    """Return the coming year's cost with the purchases that would have been best (gap 0.1 %), in USD."""
    hours = np.arange(COMING_DAYS) * 24
    truth = Future(0, 0, hours, np.full(COMING_DAYS, 24.0), year.coming)
    best = best_of(built(year, Futures(("truth",), np.ones(1), (truth,)), Risk()), Risk())
    return paid(year, best)


def built(
    year: Year, futures: Futures, risk: Risk, start: date = START, owned: tuple[Owned, ...] = ()
) -> Built:
    """Return the model of what may be bought for a year, and what its columns mean."""
    pools = []
    for number, usd in enumerate(year.on_demand_usd):
        prices = {"on_demand": float(usd), "reserved_1y": float(year.reserved_usd[number])}
        prices |= {"savings_plan_1y": float(year.plan_usd[number])} if year.has_plan else {}
        pools.append(
            Pool.model_validate({"name": f"p{number}", "provider": "x", "region": "r", "prices": prices})
        )
    question = CommitQuestion(
        version=1, name="year", start=start, horizon_years=1, pools=tuple(pools), risk=risk, commitments=owned,
        options=Options(allow=YEAR_OPTIONS),
    )  # fmt: skip
    return build_model(question, pool_prices(None, question.pools, "generated"), futures, 1)


def best_of(asked: Built, risk: Risk) -> dict[str, float]:
    """Units by pool that are bought now, and plan dollars per hour under the name of the option."""
    if not asked.buyable:
        return {}
    model, solved = solve_bill(asked.model, gap=GAP)
    if risk.loss_price:
        solved, _ = avoid_loss(model, solved, risk)
    names = (
        "plan" if item.option.startswith("savings_plan") else item.serves[0].removeprefix("p")
        for item in asked.buyable
    )
    bought = zip(names, asked.buyable, solved.x, strict=True)
    return {name: float(units) for name, item, units in bought if item.now}


def paid(year: Year, bought: dict[str, float]) -> float:
    """Return the cost of the coming days; the plan goes where a dollar of it saves most, day by day.

    Args:
        year: the case.
        bought: machines reserved by number of the pool, and `plan` in USD per hour.
    """
    reserved = np.array([bought.get(str(number), 0.0) for number in range(len(year.on_demand_usd))])
    rest = np.maximum(year.coming - reserved, 0.0)
    left = np.full(len(rest), bought.get("plan", 0.0))
    for pool in np.argsort(-year.on_demand_usd / year.plan_usd):
        covered = np.minimum(rest[:, pool], left / year.plan_usd[pool])
        rest[:, pool] -= covered
        left -= covered * year.plan_usd[pool]
    hourly = float(reserved @ year.reserved_usd) + bought.get("plan", 0.0)
    return 24.0 * (float((rest @ year.on_demand_usd).sum()) + hourly * len(rest))


def main() -> None:
    """Score years and print the figures beside their goals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--years", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--avoid-loss", action="store_true")
    parser.add_argument("--days", type=int, default=KNOWN_DAYS, help="that the bill has, the last ones")
    asked = parser.parse_args()
    begun, risk = time.process_time(), SELDOM_LOSES if asked.avoid_loss else RISK
    whole = (make_year(asked.seed, number) for number in range(asked.years))
    years = (replace(year, known=year.known[-asked.days :]) for year in whole)
    costs = np.array([score(year, asked.seed, risk) for year in years])
    used = costs[:, 2] > 0
    cost, best, nothing = costs[used].T
    regret, loss = cost / best - 1, cost / nothing - 1
    held = float((loss <= MOST_LOSS).mean())
    print(
        f"{used.sum()} of {asked.years} years with use, seed {asked.seed}, {time.process_time() - begun:.0f} CPU s"
    )
    print(
        f"regret: median {np.median(regret):.1%} (goal <= {MOST_REGRET:.0%}), mean {regret.mean():.1%}, ",
        end="",
    )
    print(f"p90 {np.quantile(regret, 0.9):.1%}, worst {regret.max():.1%}")
    print(f"regret of buying nothing: median {np.median(nothing / best - 1):.1%}")
    print(
        f"within {MOST_LOSS:.0%} of buying nothing: {held:.1%} of years (goal >= {LEAST_SHARE:.0%}), ", end=""
    )
    print(f"worst {loss.max():+.1%}")
    print(
        f"saved, all years: {1 - cost.sum() / nothing.sum():.1%}; with foresight {1 - best.sum() / nothing.sum():.1%}"
    )


if __name__ == "__main__":
    main()
