"""A figure names its KPI, and the gate of a KPI is its own header."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

import planner.finops
from planner.errors import InputError
from planner.finops.kpis import load_kpis
from planner.finops.kpis.registry import gate_of, worked_out
from planner.finops.quality import EVERY_FIGURE, checks_of_figures
from planner.finops.read import open_bill
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Figure
from planner.finops.review.parts import flagged, per_unit

TABLE = Path(planner.finops.__file__).parent / "data" / "figures.csv"
HEADER = (
    "BillingAccountId,BillingCurrency,BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,"
    "ChargeCategory,BilledCost,EffectiveCost,ListCost,ContractedCost,ServiceProviderName,ServiceName,SkuId,"
    "PricingQuantity,PricingUnit,SkuPriceDetails"
)


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def gpu_figures(folder: Path, without_quantity: int) -> dict[str, Figure]:
    """A month of ten hours of one GPU at $4 each, some of which lack their quantity."""
    lines = [HEADER]
    for hour in range(10):
        quantity = "" if hour < without_quantity else "1"
        lines.append(
            f"a1,USD,2026-10-01,2026-11-01,2026-10-{hour + 1:02}T00:00:00Z,2026-10-{hour + 1:02}T01:00:00Z,Usage,"
            f'4,4,4,4,AWS,EC2,p4,{quantity},Hours,"{{""GpuCount"": ""1""}}"'
        )
    path = folder / f"{without_quantity}.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with open_bill([path]) as bill:
        review = review_bill(bill, forecast=False)
    return {one.key: one for section in review.sections for one in section.figures}


def test_every_figure_names_a_kpi_and_leaves_out_only_what_that_asks_with_a_reason() -> None:
    names = {kpi.name for kpi in load_kpis()} | set(worked_out())
    for row in rows():
        assert row["kpi"] in names, row["figure"]
        assert set(row["without"].split()) <= set(gate_of(row["kpi"])), row["figure"]
        assert row["why"] or not (row["without"] or row["adds"]), row["figure"]
    assert len({row["figure"] for row in rows()}) == len(rows())


def test_the_gate_of_a_figure_is_its_kpis_header() -> None:
    (header,) = (kpi.gate for kpi in load_kpis() if kpi.name == "gpu_hours")
    assert checks_of_figures()["gpu_hour_money"] == EVERY_FIGURE | set(header)
    assert "quantity_priced" in header
    assert set(gate_of("bridge")) == {*gate_of("price_volume"), "complete", "complete_providers", "reported"}
    with pytest.raises(InputError, match="no KPI"):
        gate_of("nothing")


def test_a_gpu_hour_costs_the_same_where_quantities_lack_and_says_so(tmp_path: Path) -> None:
    whole = gpu_figures(tmp_path, 0)["gpu_hour_money"]
    assert (whole.value, whole.status) == (pytest.approx(4.0), "ok")
    some = gpu_figures(tmp_path, 3)["gpu_hour_money"]
    assert (some.value, some.status) == (pytest.approx(4.0), "flagged")
    assert "a priced quantity is known for 70.0 % of use cost" in some.reason
    most = gpu_figures(tmp_path, 6)
    assert (most["gpu_hour_money"].value, most["gpu_hour_money"].status) == (None, "withheld")
    assert most["gpu_cost_money"].value == pytest.approx(40.0)


def test_a_figure_without_a_row_is_never_shown(tmp_path: Path) -> None:
    from datetime import date

    from planner.finops.quality import Gate

    with pytest.raises(KeyError, match="unheard_of_money"):
        Gate(date(2026, 10, 1), ()).status("unheard_of_money")


def test_a_caution_leaves_what_people_read_of_a_figure() -> None:
    """Words, note and trend were lost: bounds of a rough forecast were shown to the unit."""
    figure = Figure("a_money", "A", 108_816.3, "money", words="109,000 EUR", note="so far", trend=(1.0, None))
    assert flagged(figure, "rough") == replace(figure, status="flagged", reason="rough")


@pytest.mark.parametrize(
    ("unit", "said"),
    [("Hours", "per hour"), ("1 Hour", "per hour"), ("1M Tokens", "per 1M Tokens"), ("GB", "per GB"),
     ("ECPU", "per ECPU"), ("10 Hours", "per 10 Hours"), ("", "per unit")],
)  # fmt: skip
def test_prices_are_per_unit_in_words(unit: str, said: str) -> None:
    assert per_unit(unit) == said
