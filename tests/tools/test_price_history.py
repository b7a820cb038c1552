"""Decision days of price histories, and the scores and constants made of them."""

from __future__ import annotations

import gzip
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prices import HORIZONS, by_phase, score
from planner.market.expected_price import spot_constants
from tools import fit_prices
from tools.price_history import decisions, read_histories

HEADER = "provider,instance_type,region,zone,accelerator,accelerator_count,kind,usd_per_hour,observed_at,source,commit"
FIRST = date(2024, 1, 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten weeks of five zones: the cheapest one rises to the others, nobody else moves."""
    lines = [HEADER, f"aws,g.x,r1,,A,1,on_demand,10,{FIRST},s,c"]
    for week in range(10):
        day = FIRST + timedelta(days=7 * week)
        for zone, usd in enumerate((1.0 + 0.1 * week, 2.0, 2.1, 2.2, 2.3)):
            lines.append(f"aws,g.x,r1,z{zone},A,1,spot_quoted,{usd},{day},s,c")
    with gzip.open(tmp_path / "prices_aws.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    return tmp_path


def test_later_prices_are_of_the_same_place_and_day(folder: Path) -> None:
    made = decisions(read_histories(folder), None, "aws", (7, 30), first=FIRST, step_days=7)
    assert len(made) == 10
    first = made[0]
    np.testing.assert_allclose(first.later[0], [1.1, 2.0, 2.1, 2.2, 2.3])
    np.testing.assert_allclose(first.later[1], [1.4, 2.0, 2.1, 2.2, 2.3])
    np.testing.assert_allclose(first.later_days[1], 28)
    assert np.isnan(made[-1].later).all()


def test_context_gives_levels_and_no_later_price(folder: Path) -> None:
    rows = read_histories(folder)
    mine = rows[rows["zone"].isin(["z0", "z1"])]
    made = decisions(mine, rows, "aws", (7,), first=FIRST, step_days=7)
    assert len(made[0].places) == 5
    assert np.isfinite(made[0].later[0]).tolist() == [True, True, False, False, False]


def test_scores_see_the_surprise_of_the_cheapest_quote(folder: Path) -> None:
    made = decisions(read_histories(folder), None, "aws", HORIZONS, first=FIRST)
    chosen = score(made).chosen
    month = chosen[chosen["horizon"] == 30]
    quote = by_phase(month[month["model"] == "quote"], "surprise")[2]
    expected = by_phase(month[month["model"] == "expected"], "surprise")[2]
    assert quote > expected > 0


def test_a_folder_without_histories_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no prices_\*.csv.gz in"):
        read_histories(tmp_path)


def test_a_fit_makes_the_chosen_minimum_honest(folder: Path) -> None:
    source = fit_prices.Source(FIRST, 7, (7, 14, 30), "", 0.7)
    made = decisions(read_histories(folder), None, "aws", source.horizons, first=FIRST, step_days=7)
    given = fit_prices.samples(made, source, None)
    start = spot_constants()["aws"]
    before = fit_prices.outcome(given, start, source.horizons)
    after = fit_prices.outcome(given, fit_prices.fit(given, start, source), source.horizons)
    assert np.nansum(after.bias**2) < np.nansum(before.bias**2)
