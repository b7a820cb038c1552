"""Places are grouped only where no tariff can tell them apart; moves are priced by the tariff of the pair."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tariffs import DATA_DIRECTORY, Tariffs, TierCurve, load_tariffs
from planner.asked.assumptions import load_assumptions
from planner.pipelines.moves import build_moves, curve_usd, group_places

PLACES = ("aws/us-east-1", "aws/us-west-2", "aws/sa-east-1", "gcp/us-central1", "gcp/europe-west4", "azure/eastus",
          "onprem/cellar", "nowhere/here")  # fmt: skip


@given(st.integers(0, 10_000))
def test_members_of_a_group_are_alike_for_all_others(seed: int) -> None:
    draw = np.random.default_rng(seed)
    kind = draw.integers(0, 3, 7)
    table = draw.integers(0, 3, (3, 3))
    pair = table[np.ix_(kind, kind)]
    group = group_places(pair)
    for a in range(7):
        for b in range(7):
            if a != b:
                members = np.flatnonzero(group == group[a])
                others = np.flatnonzero(group == group[b])
                values = {int(pair[x, y]) for x in members for y in others if x != y}
                assert len(values) == 1
    # places of one kind with one tariff inside always end up together
    assert group.max() + 1 <= len(set(kind.tolist()))


def test_costs_by_group_are_the_tariffs_of_each_pair() -> None:
    tariffs = load_tariffs()
    moves = build_moves(PLACES, tariffs, load_assumptions({}))
    usd = moves.usd([500.0])[0]
    for a, source in enumerate(PLACES):
        for b, target in enumerate(PLACES):
            if a == b:
                continue
            curve = tariffs.transfer_curve(*source.split("/"), *target.split("/"))
            _, known = moves.tariff(a, b)
            assert known == (curve is not None)
            expected = curve_usd(curve or tariffs.dearest_internet_curve(), 500.0)
            assert usd[moves.group[a], moves.group[b]] == float(expected)
    hours = moves.hours([900.0])[0]
    east, west, gcp = (moves.group[k] for k in (0, 1, 3))
    assert hours[east, gcp] > hours[east, west] > 0


def test_free_tiers_of_the_account_are_not_counted_per_transfer() -> None:
    curve = load_tariffs().transfer_curve("aws", "us-east-1", "gcp", "us-central1")
    assert curve is not None and curve.usd_per_gb[0] == 0
    assert curve_usd(curve, 10.0) == Decimal(10) * curve.usd_per_gb[1]


def test_tariffs_that_make_each_curve_anew_give_the_same_moves() -> None:
    """No curve is taken for one that was dropped before it."""

    class Anew(Tariffs):
        def transfer_curve(self, *places: str | None) -> TierCurve | None:
            curve = super().transfer_curve(*places)
            return curve and replace(curve)

    kept, anew = (
        build_moves(PLACES, each, load_assumptions({})) for each in (load_tariffs(), Anew(DATA_DIRECTORY))
    )
    assert (anew.group == kept.group).all()
    assert (anew.usd([500.0])[0] == kept.usd([500.0])[0]).all()
