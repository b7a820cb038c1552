"""Reviews of bills that lack something: older FOCUS versions, an unfinished month, one month only, other currencies."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import duckdb
import pytest

from planner.finops.plan_vs_actual import load_plans
from planner.finops.read import open_bill
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Section
from planner.finops.review.report import render_review
from planner.inputs.budget_load import load_budgets
from tests.focus_company import Truth, write_version
from tests.focus_company.plans import write_plans
from tests.planner.finops.review.conftest import figures, value
from tests.planner.finops.small_bill import sections_only

OCTOBER = date(2026, 10, 1)


def by_key(sections: tuple[Section, ...], key: str) -> Section:
    return next(s for s in sections if s.key == key)


@pytest.mark.parametrize(("version", "fmt"), [("1.0", "csv.gz"), ("1.2", "csv"), ("1.3", "parquet")])
def test_older_versions_tell_the_same_but_what_they_lack(
    version: str, fmt: str, company: Truth, tmp_path: Path
) -> None:
    written = write_version(company, version, tmp_path, fmt=fmt)
    sections = sections_only("bridge", "commitments", "gpu", "allocation")
    with sections, open_bill([*written.files, *written.datasets]) as bill:
        review = review_bill(bill, month=OCTOBER, forecast=False)
    truth = company.month[OCTOBER]
    assert value(review, "esr_list_ratio") == pytest.approx(truth.esr_list_ratio)
    assert value(review, "commitment_utilisation_ratio") == pytest.approx(truth.utilisation_ratio)
    assert value(review, "allocation_ratio") == pytest.approx(truth.allocation_ratio)
    assert value(review, "bridge_after_money") == pytest.approx(truth.effective)
    found = figures(review)
    # only 1.4 says what a commitment could cover, and only 1.3 on when it ends
    assert found["commitment_coverage_ratio"].status == "flagged"
    assert "do not say what is eligible" in found["commitment_coverage_ratio"].reason
    assert found["commitments_ending_count"].status == ("ok" if version == "1.3" else "flagged")
    if version == "1.0":  # no SkuPriceDetails: nobody knows how many GPUs a machine has
        assert found["gpu_hours"].status == "withheld"
        assert found["gpu_runs_count"].value == 3
    else:
        assert value(review, "gpu_hours") == pytest.approx(truth.gpu_hours)


def test_an_unfinished_month_is_not_compared_as_if_it_were_whole(company: Truth, tmp_path: Path) -> None:
    early = write_version(company, "1.2", tmp_path, as_of=date(2026, 10, 20))
    path = tmp_path / "budgets.yaml"
    path.write_text("version: 1\nkind: budget\nbudgets:\n  - {name: all, amount: 180000}\n")
    with open_bill([*early.files]) as bill:
        review = review_bill(bill, budgets=load_budgets(path))
    assert review.month == "2026-10"
    assert "up to 19 October" in review.verdict and "than September" not in review.verdict
    assert "October 2026 is expected at" in review.verdict
    assert by_key(review.sections, "bridge").status == "withheld"
    assert 0 < value(review, "budget_p_over_ratio") < 1
    # it was "6.8 % over its budget of 190,000 USD expected"
    assert re.search(
        r"without tax, expected to end [\d.]+ % \w+ its budget of 180,000 USD \(\d+ % likely to go over",
        review.verdict,
    )
    tile = next(
        one for one in by_key(review.sections, "overview").figures if one.key == "overview_budget_money"
    )
    # no more digits than the landing is known to
    assert re.fullmatch(r"expected to end [\d,]+0 USD \([\d.]+ %\) \w+; \d+ % likely to go over", tile.note)
    low, high = value(review, "forecast_low_money"), value(review, "forecast_high_money")
    assert low < company.month[OCTOBER].effective < high


def test_a_bill_without_a_currency_says_so_in_words(company: Truth, tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT * REPLACE (NULL::VARCHAR AS BillingCurrency) FROM '{company.files[-1]}') TO '{path}'"
    )
    plans = load_plans(write_plans(tmp_path / "plans", company.runs))
    with open_bill([path]) as bill:
        review = review_bill(bill, month=OCTOBER, forecast=False, plans=plans)
    assert "(no currency stated)" in review.verdict
    shown = {name: render_review(review, name) for name in ("table", "md", "html")}
    for text in shown.values():
        assert isinstance(text, str) and "no currency stated" in text and "XXX" not in text
    assert "Money with no currency stated" in shown["html"]
    assert "--currency USD" in by_key(review.sections, "plan_vs_actual").sentences[0]
    assert json.loads(render_review(review, "json"))["currency"] == "XXX"


def test_one_month_alone(company: Truth) -> None:
    with sections_only("commitments"), open_bill([company.files[-1]]) as bill:
        review = review_bill(bill, month=OCTOBER, forecast=False)
    # September's corrections are on October's invoice, so there is something of September to see
    assert value(review, "esr_list_ratio") == pytest.approx(company.month[OCTOBER].esr_list_ratio, abs=1e-6)


def test_plans_are_not_compared_with_a_bill_in_another_currency(company: Truth, tmp_path: Path) -> None:
    path = tmp_path / "eur.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT * REPLACE ('EUR' AS BillingCurrency) FROM '{company.files[-1]}') TO '{path}' (FORMAT parquet)"
    )
    plans = load_plans(write_plans(tmp_path / "plans", company.runs))
    with sections_only("overview", "plan_vs_actual"), open_bill([path]) as bill:
        review = review_bill(bill, month=OCTOBER, forecast=False, plans=plans)
    assert review.currency == "EUR" and "EUR" in review.verdict
    assert "the bill is in EUR" in by_key(review.sections, "plan_vs_actual").sentences[0]


def test_a_truncated_bill_has_no_savings_rate(company: Truth, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    duckdb.connect().execute(
        "COPY (SELECT * REPLACE (CASE WHEN CommitmentDiscountId IS NULL THEN FLOOR(EffectiveCost) "
        f"ELSE EffectiveCost END AS EffectiveCost) FROM '{company.files[-1]}' "
        f"WHERE ServiceCategory <> 'Compute') TO '{path}' (FORMAT parquet)"
    )
    with sections_only("commitments"), open_bill([path]) as bill:
        review = review_bill(bill, month=OCTOBER, forecast=False)
    rate = figures(review)["esr_list_ratio"]
    assert (rate.status, rate.value) == ("withheld", None)
    assert "EffectiveCost of 0" in rate.reason
    assert "No savings rate can be given" in by_key(review.sections, "commitments").sentences[0]


def test_clouds_in_files_of_their_own_and_rows_in_any_order_change_nothing(
    company: Truth, tmp_path: Path
) -> None:
    whole = ", ".join(f"'{path}'" for path in company.files)
    con = duckdb.connect()
    names = con.execute(f"SELECT DISTINCT InvoiceIssuerName FROM read_parquet([{whole}])").fetchall()
    for number, (name,) in enumerate(names):
        con.execute(
            f"COPY (SELECT * FROM read_parquet([{whole}]) WHERE InvoiceIssuerName = ? ORDER BY hash(ResourceId)) "
            f"TO '{tmp_path}/part-{number}.parquet' (FORMAT parquet)",
            [name],
        )
    with open_bill([tmp_path]) as parts, open_bill(company.files) as together:
        apart = review_bill(parts, month=OCTOBER, forecast=False)
        one = review_bill(together, month=OCTOBER, forecast=False)
    assert apart.verdict == one.verdict
    skipped = {"rows_read_count"}
    for key, figure in figures(one).items():
        other = figures(apart)[key]
        assert other.status == figure.status, key
        if isinstance(figure.value, float) and key not in skipped:
            assert other.value == pytest.approx(figure.value, abs=1e-6), key


_HEADER = (
    "BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,BilledCost,EffectiveCost,"
    "ListCost,ContractedCost,BillingCurrency,ProviderName,ServiceName,SkuId,RegionId,PricingQuantity,PricingUnit,"
    "CommitmentDiscountId,CommitmentDiscountStatus,Tags"
)


def charge(
    category: str = "Usage", cost: str = "1", *, day: str = "2026-10-05", quantity: str = "1", commitment: str = ",",
    tags: str = "", names: str = "P,S,K,r",
) -> str:  # fmt: skip
    """One row."""
    times = f"2026-10-01T00:00:00Z,2026-11-01T00:00:00Z,{day}T00:00:00Z,{day}T01:00:00Z"
    return f"{times},{category},{cost},{cost},{cost},{cost},USD,{names},{quantity},Hours,{commitment},{tags}"


@pytest.mark.parametrize(
    "rows",
    [
        [charge("Tax")],
        [charge("Credit", "-5", quantity="")],
        [charge(cost="")],
        [charge(cost="0", quantity="0")],
        [charge(cost="-3", quantity="-1")],
        [charge(names=",,,")],
        [charge(commitment="c,Unused")],
        [charge("Purchase", "9", commitment="c,")],
        [charge(tags="not json"), charge(tags='"[1,2]"')],
        [charge(cost="-4", day="2026-09-03"), charge()],
        [charge(cost="1e15")],
    ],
    ids=["tax", "credit", "no cost", "zero", "negative", "no names", "unused", "purchase", "odd tags",
         "negative before", "huge"],
)  # fmt: skip
def test_odd_bills_have_a_review_too(rows: list[str], tmp_path: Path) -> None:
    from planner.finops.review.report import render_review

    path = tmp_path / "bill.csv"
    path.write_text("\n".join([_HEADER, *rows]) + "\n")
    with open_bill([path]) as bill:
        review = review_bill(bill)
    assert review.sections[0].key == "overview" and review.month == "2026-10"
    assert "nan" not in str(render_review(review, "md")).lower().replace("finance", "")


def test_use_that_moved_is_said_to_have_moved(tmp_path: Path) -> None:
    header = f"{_HEADER},PricingCategory"
    rows = [
        charge(cost="100", quantity="50", day="2026-09-05", names="P,S,K,east") + ",Standard",
        charge(cost="90", quantity="48", names="P,S,K,west") + ",Standard",
        charge(cost="7", quantity="1", day="2026-09-05", names="P,S,other,east") + ",Standard",
        charge(cost="9", quantity="2", names="P,S,other,east") + ",Standard",
    ]
    path = tmp_path / "bill.csv"
    day, month = "2026-09-05T00:00:00Z,2026-09-05T01:00:00Z", "2026-09-01T00:00:00Z,2026-10-01T00:00:00Z"
    later = day.replace("-09-", "-10-"), "2026-10-01T00:00:00Z,2026-11-01T00:00:00Z"
    rows = [row.replace(day, month).replace(*later) for row in rows]
    path.write_text("\n".join([header, *rows]) + "\n")
    with sections_only("movers"), open_bill([path]) as bill:
        review = review_bill(bill, month=OCTOBER, forecast=False)
    (table,) = by_key(review.sections, "movers").tables
    reasons = {(row[0], row[3]): str(row[-2]) for row in table.rows}
    assert reasons["K", "west"] == "new: 48 Hours; moved from east"
    assert reasons["K", "east"] == "gone: 50 Hours before; moved to west"
    assert "moved" not in reasons["other", "east"]
