"""What runs on a commitment pay after its end: continuous in the end, never less for an earlier one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import exp
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.asked.job import resolve_job
from planner.market.costs import CostModel, Money
from planner.market.ends import Spread, hours_after
from planner.market.offers import gather_offers
from tests.draws import draws
from tests.planner.spine_catalogs import A10, A10G, Offer, bundled_tariffs, loaded, make_catalog, work

START = datetime(2026, 11, 20, tzinfo=UTC)
NAMES = ("provider", "region", "instance_type")


def priced(offer: Offer, end: datetime | None, nodes: int, run: dict[str, float]) -> tuple[Money, Money]:
    """What a run on a commitment costs, and what the same run on demand does."""
    kind = offer.machine
    owned: dict[str, Any] = dict(zip(NAMES, (kind.provider, offer.region, kind.instance_type), strict=True))
    owned |= {"purchase_option": "reserved_1y", "nodes": 64}
    owned |= {} if end is None else {"expires": end.isoformat()}
    workload = loaded(work(commitments=[owned])).workload
    tariffs = bundled_tariffs()
    offers = gather_offers(make_catalog([offer]), workload, tariffs, "", START.date())
    costs = CostModel(offers, resolve_job(workload, START.date()), tariffs, None)
    spread = Spread(START, np.asarray([run["fixed"]]), np.asarray([run["sd"]]))
    paid = np.asarray([run["fixed"] + run["work"]])
    rows = (offers.offers.n_rows - 1, 0)
    mine, other = (
        costs.evaluate(
            np.asarray([row]), np.asarray([nodes]), paid, paid + run["waiting"], spread=spread, expected=True
        )
        for row in rows
    )
    return mine, other


@given(
    st.floats(0.5, 400.0), st.floats(0.0, 2.0), st.floats(0.0, 30.0), st.floats(0.0, 0.8), st.integers(1, 64),
    st.lists(st.floats(-0.2, 1.5), min_size=2, max_size=2),
    st.sampled_from([Offer(A10G, "us-east-1", "1.1"),
                     Offer(A10, "ap-southeast-1", "21.5", currency="CNY", flags="system_disk_separate")]),
)  # fmt: skip
@draws(12)
def test_an_earlier_end_never_costs_less_and_its_extremes_are_on_demand_and_nothing(
    hours: float, fixed: float, waiting: float, sd: float, nodes: int, ends: list[float], offer: Offer
) -> None:
    run = {"work": hours, "fixed": fixed, "waiting": waiting, "sd": sd}

    def cost(at: float) -> float:
        """With the end at `at` hours from the start."""
        return float(priced(offer, START + timedelta(hours=at), nodes, run)[0].cost_usd[0])

    lasting, on_demand = (money.cost_usd[0] for money in priced(offer, None, nodes, run))
    close = 1e-6 * (1.0 + on_demand)
    assert cost(-1.0) == pytest.approx(on_demand, abs=close)
    assert cost(waiting) == pytest.approx(on_demand, abs=close)
    last = waiting + fixed + hours * exp(9.0 * sd) + 1.0
    assert cost(last) == pytest.approx(lasting, abs=close)
    whole = waiting + fixed + hours
    earlier, later = sorted(share * whole for share in ends)
    for jump in (waiting, waiting + fixed, whole):
        assert cost(jump) == pytest.approx(cost(jump + 1e-6), abs=1e-5 * (1.0 + on_demand))
    assert cost(earlier) >= cost(later) - close >= lasting - 2 * close
    # one hour less is one hour of all instances more, at most
    assert cost(later) - cost(later + 1.0) <= (on_demand - lasting) / (fixed + hours) * 1.0 + close


@given(st.floats(1.0, 100.0), st.floats(0.0, 5.0), st.floats(0.05, 0.8), st.floats(0.1, 3.0))
@draws(40)
def test_the_mean_is_that_of_drawn_runs(hours: float, fixed: float, sd: float, share: float) -> None:
    left = fixed + share * hours
    z = np.asarray([NormalDist().inv_cdf((at + 0.5) / 20_000) for at in range(20_000)])
    drawn = float(np.maximum(fixed + hours * np.exp(sd * z) - left, 0.0).mean())
    found = hours_after(*(np.asarray([value]) for value in (left, hours, fixed, sd)))[0]
    assert found == pytest.approx(min(drawn, fixed + hours), rel=2e-3, abs=2e-3 * hours)


def test_a_run_whose_hours_are_known_pays_what_is_beyond_the_end() -> None:
    found = hours_after(np.asarray([4.0, 11.0, np.inf]), np.full(3, 9.0), np.full(3, 1.0), np.zeros(3))
    assert found.tolist() == pytest.approx([6.0, 0.0, 0.0])
