"""A bill of many SKUs is summed by the engine: the answers are those of a loop over its rows."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from planner.finops.engine import duckdb
from planner.finops.kpis import query_kpi
from planner.finops.read import open_bill
from planner.finops.review.parts import text
from planner.finops.review.sections.things import CHEAPER_RATIO
from planner.finops.things import ask, many
from planner.finops.things.ask import ask_things, keep_names, keep_things
from planner.finops.things.together import ask_steady
from tests.planner.finops.small_bill import charge, review_of, rows_of, write_bill

OCTOBER, NOVEMBER, DAYS = date(2026, 10, 1), date(2026, 11, 1), 31
MONTHS = {"start": OCTOBER, "end": NOVEMBER, "before_start": date(2026, 9, 1), "before_end": OCTOBER}
Use = tuple[str, str, str, str]  # service, SKU, region, pricing category


@pytest.fixture(scope="module")
def uses() -> dict[Use, np.ndarray]:
    """Costs per day, (31,), NaN on days without a charge; each charge is of 10 units."""
    rng = np.random.default_rng(5)
    made = {}
    for number in range(40):
        for region in ("east", "west", "")[: 1 + number % 3]:
            for option in ("Standard", "Dynamic")[: 1 + number % 2]:
                cost = rng.uniform(1, 9, DAYS).round(2)
                cost[rng.choice(DAYS, rng.integers(0, 20), replace=False)] = np.nan
                cost[rng.choice(DAYS, number % 6, replace=False)] *= -1  # corrections
                made[f"service {number % 4}", f"sku {number}", region, option] = cost
    return made


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, uses: dict[Use, np.ndarray]) -> Path:
    rows = [
        charge(OCTOBER + timedelta(int(day)), cost[day], ServiceName=service, SkuId=sku, RegionId=region,
               PricingCategory=option)
        for (service, sku, region, option), cost in uses.items() for day in np.flatnonzero(~np.isnan(cost))
    ]  # fmt: skip
    return write_bill(tmp_path_factory.mktemp("many") / "bill.csv", rows)


def test_steady_use_is_the_low_quantile_of_each_sku(path: Path, uses: dict[Use, np.ndarray]) -> None:
    expected: dict[tuple[str, str, str], float] = defaultdict(float)
    for (service, sku, region, option), cost in uses.items():
        if option == "Standard" and np.count_nonzero(~np.isnan(cost)) >= 14:
            expected[service, sku, region] += float(np.quantile(np.nan_to_num(cost), 0.1)) * DAYS
    with open_bill([path]) as bill:
        frame = query_kpi(bill.engine, "uncovered_use", {"start": OCTOBER, "end": NOVEMBER})
        services = ask_steady(bill.engine, {"start": OCTOBER, "end": NOVEMBER})
    keys = frame[["service", "sku_id", "region_id"]].fillna("").itertuples(index=False, name=None)
    assert dict(zip(keys, frame["steady_cost"], strict=True)) == pytest.approx(expected, abs=1e-9)
    assert dict(zip(services["service"], services["steady_cost"], strict=True)) == pytest.approx(
        frame.groupby("service")["steady_cost"].sum().to_dict()
    )


KEY = ["provider", "service", "sku_id", "region_id", "pricing_category", "pricing_unit", "charge_kind"]


def things_of(path: Path) -> tuple[pd.DataFrame, int]:
    """The table of things of a bill without names, in order, and the number of files it lies in."""
    with open_bill([path]) as bill:
        keep_things(bill.engine, MONTHS)
        frame = bill.engine.query("SELECT * FROM x_things").drop(columns=["product", "instance_type"])
        files = len(list(bill.temporary.glob("x_sums-*.parquet"))) if bill.temporary else 0
    return frame.sort_values(KEY, ignore_index=True).sort_index(axis=1), files


@pytest.mark.parametrize(("groups", "files"), [(10**6, 1), (15, 5)])
def test_many_things_summed_by_place_and_part_by_part_are_those_of_few(
    groups: int, files: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, none = things_of(path)
    monkeypatch.setattr(ask, "FEW_THINGS", 0)
    monkeypatch.setattr(many, "GROUPS", groups)
    found, parts = things_of(path)
    assert none == 0
    assert parts >= files
    pd.testing.assert_frame_equal(found, few, check_exact=False, rtol=1e-12)


def test_a_large_bill_has_more_memory_and_fewer_parts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is a reading of the bill: of 50 million rows one cost 10 CPU s."""
    monkeypatch.setattr(ask, "FEW_THINGS", 0)
    parts = {}
    for rows, limit in ((duckdb.LARGE_ROWS - 1, "333.7 MiB"), (duckdb.LARGE_ROWS, "572.2 MiB")):
        with open_bill([path]) as bill:
            engine, temporary = bill.engine, bill.temporary
            assert isinstance(engine, duckdb.DuckDbEngine) and temporary is not None
            monkeypatch.setattr(many, "GROUPS", -(-many.count_things(engine) // 2))
            engine.expect(rows)
            assert engine.rows("SELECT current_setting('memory_limit')") == [(limit,)]
            keep_things(engine, MONTHS)
            parts[rows] = len(list(temporary.glob("x_sums-*.parquet")))
    assert list(parts.values()) == [2, 1]


def test_places_of_the_same_number_are_not_added_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, _ = things_of(path)
    monkeypatch.setattr(ask, "FEW_THINGS", 0)
    monkeypatch.setattr(many, "_HASH", "1 + 0 * HASH")
    found, parts = things_of(path)
    assert parts == 0
    pd.testing.assert_frame_equal(found, few, check_exact=False, rtol=1e-12)


def cheaper(uses: dict[Use, np.ndarray]) -> dict[tuple[str, str], float]:
    """Saving by kind and SKU, one use at a time."""
    price = {key: np.nansum(cost) / (10 * np.count_nonzero(~np.isnan(cost))) for key, cost in uses.items()}
    saves: dict[tuple[str, str], float] = defaultdict(float)
    for (service, sku, region, option), cost in uses.items():
        here, units = price[service, sku, region, option], 10 * np.count_nonzero(~np.isnan(cost))
        if option != "Standard" or not region or here <= 0:
            continue
        best = min(p for (_, s, r, o), p in price.items() if (s, o) == (sku, option) and r and p > 0)
        if best < here * (1 - CHEAPER_RATIO):
            saves["move_region", sku] += units * (here - best)
        if 0 < (spot := price.get((service, sku, region, "Dynamic"), math.inf)) < here:
            saves["switch_option", sku] += units * (here - spot)
    return saves


def test_cheaper_uses_are_those_of_a_loop(path: Path, uses: dict[Use, np.ndarray]) -> None:
    with open_bill([path]) as bill:
        keep_things(bill.engine, MONTHS)
        keep_names(
            bill.engine, {**MONTHS, "left_out": "", "top": 10, "least": 0.0, "least_ratio": CHEAPER_RATIO}
        )
        found = ask_things(bill.engine, "cheaper_named")
    expected = cheaper(uses)
    assert len({kind for kind, _ in expected}) == 2
    assert found.groupby(["kind", "sku_id"])["saves"].sum().to_dict() == pytest.approx(expected)


def test_small_moves_are_one_line_of_their_service(tmp_path: Path) -> None:
    """What 300 SKUs save is too little for a line each; the line of their service holds all of it."""
    rows = [charge(OCTOBER, 100_000, SkuId="large", RegionId="east", days=31)]
    for number in range(300):
        rows += [charge(OCTOBER, cost, SkuId=f"sku {number}", RegionId=region, days=31)
                 for region, cost in (("east", 3 + number / 300), ("west", 2))]  # fmt: skip
    rows += [
        charge(OCTOBER, cost, SkuId="dear", RegionId=region, days=31)
        for region, cost in (("east", 900), ("west", 300))
    ]
    made = {
        row["what"]: row
        for row in rows_of(
            review_of(write_bill(tmp_path / "b.csv", rows), only=("actions",)), "actions", "actions"
        )
    }
    assert made["Move dear to west"]["saves"] == pytest.approx(600)
    line = made["300 smaller moves to a cheaper region (EC2 of AWS)"]
    assert line["saves"] == pytest.approx(300 + 299 / 2)
    assert line["why"] == "the largest: Move sku 299 to west"


@pytest.mark.parametrize("few", [0, 10**6])
def test_names_looked_up_for_what_is_shown_are_those_of_the_whole_bill(
    few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thing's name needs all of its charges; whether SKUs share it needs the names of others, by whatever text."""
    monkeypatch.setattr(ask, "FEW_THINGS", few)
    texts = [
        {"SkuMeter": "Core hours", "ChargeDescription": "in the east"},
        {"SkuMeter": "Core hours", "ChargeDescription": "in the west"},
        {"SkuMeter": "", "ChargeDescription": "Core hours"},
        {"SkuMeter": "", "ChargeDescription": "m5 hour", "SkuPriceDetails": '{"InstanceType":"m5.large"}'},
        {"SkuMeter": "", "ChargeDescription": "m5 in use", "SkuPriceDetails": '{"InstanceType":"m5.large"}'},
        {"SkuMeter": "m5.large", "ChargeDescription": "", "SkuPriceDetails": '{"InstanceType":"m5.large"}'},
        {"SkuMeter": "", "ChargeDescription": ""},
    ]
    skus = ["", *(f"sku {number}" for number in range(1, 11))]
    rows = [
        charge(OCTOBER + timedelta(day), 1 + 7 * (number % 11) + day, SkuId=skus[number % 11],
               RegionId=("east", "", "west")[number % 3], **({"SkuPriceDetails": ""} | texts[number * day % 7]))
        for number in range(66) for day in range(3)
    ]  # fmt: skip
    rows.append(
        charge(OCTOBER, -4000, SkuId=skus[4], RegionId="east", PricingQuantity=0, **texts[4])
    )  # a refund
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        keep_things(bill.engine, MONTHS)
        keep_names(
            bill.engine, {**MONTHS, "left_out": "", "top": 7, "least": 0.0, "least_ratio": CHEAPER_RATIO}
        )
        found = ask_things(bill.engine, "movers_named")
        whole = query_kpi(bill.engine, "price_volume", MONTHS)
    key = ["provider", "service", "sku_id", "region_id", "pricing_category", "pricing_unit", "charge_kind"]
    filled = whole.assign(
        product=whole["product"].fillna("(none)"), machine=whole["instance_type"].fillna("")
    )
    alike = filled.groupby(["provider", "service", "product", "machine"])["sku_id"].nunique()
    names = {
        tuple(map(str, row[:7])): row[7:]
        for row in filled[[*key, "product", "machine"]].itertuples(index=False)
    }
    assert len(found) == 7
    assert found["skus_of_name"].max() > 2
    for row in found.itertuples():
        product, machine = names[tuple(str(getattr(row, name)) for name in key)]
        assert (text(row.product) or "(none)", text(row.instance_type)) == (product, machine)
        if product != "(none)":
            assert row.skus_of_name == alike[row.provider, row.service, product, machine]
