"""Three monthly reviews of the generated company: every figure equals what the generator knows."""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import pytest

from planner.errors import InputError
from planner.finops.read import Bill
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Section, Table
from planner.finops.review.report import render_review, review_answer
from planner.finops.review.sections.registry import SECTIONS
from tests.focus_company import MonthTruth, Truth
from tests.focus_company.plans import STORAGE_USD, effects_of, useful_hours
from tests.planner.finops.review.conftest import Reviews, figures, value

AUGUST, SEPTEMBER, OCTOBER = (date(2026, m, 1) for m in (8, 9, 10))
MONTHS = (AUGUST, SEPTEMBER, OCTOBER)


@pytest.fixture(params=MONTHS, ids=lambda m: f"{m:%Y-%m}")
def month(request: pytest.FixtureRequest) -> date:
    chosen: date = request.param
    return chosen


def section(reviews: Reviews, month: date, key: str, *, full: bool = False) -> Section:
    review = reviews.full(month) if full else reviews.plain(month)
    return next(s for s in review.sections if s.key == key)


ASKED = {
    "carbon",
    "fiscal_year",
    "contracts",
    "ledger",
    "showback",
    "units",
    "usage",
}  # there only for bills with AI units, and for those who give the files


def named(section: Section, key: str) -> Table:
    return next(t for t in section.tables if t.key == key)


def test_the_sections_stand_in_reading_order(reviews: Reviews, month: date) -> None:
    review = reviews.plain(month)
    order = [name for name, _ in SECTIONS]
    keys = [s.key for s in review.sections]
    assert keys == sorted(keys, key=order.index) and set(order) - set(keys) <= ASKED
    assert all(s.sentences or s.reason for s in review.sections)
    assert [s.key for s in review.sections[:2]] == ["overview", "actions"]
    last = review.sections[-1]  # all checks of the company's bill pass: a page folds them
    assert (last.key, last.detail) == ("quality", True)
    assert "Data quality" not in " ".join(review_answer(review).summary)


def test_spend(reviews: Reviews, company: Truth, month: date) -> None:
    assert f"{company.month[month].effective:,.0f} USD" in reviews.plain(month).verdict


def test_savings(reviews: Reviews, company: Truth, month: date) -> None:
    review, truth = reviews.plain(month), company.month[month]
    assert value(review, "esr_list_ratio") == pytest.approx(truth.esr_list_ratio, abs=1e-9)
    assert value(review, "esr_contract_ratio") == pytest.approx(truth.esr_contract_ratio, abs=1e-9)
    total = value(review, "savings_total_money")
    assert total == pytest.approx(truth.list_cost - truth.effective_on_list, abs=0.005)
    parts = value(review, "savings_negotiated_money") + value(review, "savings_commitment_money")
    assert parts == pytest.approx(total, abs=0.01)
    assert value(review, "savings_identity_money") == pytest.approx(0, abs=0.01)
    assert value(review, "price_list_known_ratio") == 1.0


def test_commitments(reviews: Reviews, company: Truth, month: date) -> None:
    review, truth = reviews.plain(month), company.month[month]
    assert value(review, "commitment_utilisation_ratio") == pytest.approx(truth.utilisation_ratio)
    assert value(review, "commitment_waste_money") == pytest.approx(sum(truth.unused.values()))
    assert value(review, "commitment_coverage_ratio") == pytest.approx(truth.coverage_ratio)
    end = month + timedelta(days=monthrange(month.year, month.month)[1])
    soon = [c for c in company.commitments if end <= c.end < end + timedelta(days=90)]
    assert value(review, "commitments_ending_count") == len(soon)
    assert figures(review)["commitments_ending_count"].status == "ok"


def test_gpu(reviews: Reviews, company: Truth, month: date) -> None:
    review, truth = reviews.full(month), company.month[month]
    assert value(review, "gpu_hours") == pytest.approx(truth.gpu_hours)
    assert value(review, "gpu_hour_money") == pytest.approx(truth.gpu_usd / truth.gpu_hours)
    assert value(review, "spot_share_ratio") == pytest.approx(truth.spot_effective / truth.compute_effective)
    assert value(review, "spot_list_savings_ratio") == pytest.approx(
        1 - truth.spot_effective / truth.spot_list
    )
    own = [run for run in company.runs if (run.start.year, run.start.month) == (month.year, month.month)]
    assert value(review, "gpu_runs_count") == len(own)
    if not own:
        assert figures(review)["gpu_goodput_ratio"].status == "withheld"
        return
    assert value(review, "gpu_run_money") == pytest.approx(sum(r.billed_usd for r in own) / len(own))
    useful = sum(useful_hours(r)[2] for r in own)
    lost = sum(useful_hours(r)[3] for r in own)
    assert value(review, "gpu_goodput_ratio") == pytest.approx(useful / truth.gpu_hours)
    assert value(review, "gpu_useful_hour_money") == pytest.approx(truth.gpu_usd / useful)
    assert value(review, "gpu_preemption_overhead_ratio") == pytest.approx(lost / truth.gpu_hours)
    tokens = sum(r.tokens for r in own)
    assert value(review, "gpu_million_tokens_money") == pytest.approx(truth.gpu_usd * 1e6 / tokens)
    (chart,) = (c for c in section(reviews, month, "gpu", full=True).charts if c.kind == "funnel")
    levels = [sum(useful_hours(r)[i] for r in own) for i in range(3)]
    assert chart.series[0][1] == pytest.approx((truth.gpu_hours, *levels))


def test_allocation(reviews: Reviews, company: Truth, month: date) -> None:
    review, truth = reviews.plain(month), company.month[month]
    assert value(review, "allocation_ratio") == pytest.approx(truth.allocation_ratio)
    assert value(review, "allocation_untagged_money") == pytest.approx(truth.taggable - truth.tagged)
    rows = named(section(reviews, month, "allocation"), "allocation").rows
    assert math.fsum(float(row[1] or 0) for row in rows) == pytest.approx(truth.taggable)


def bridge_truth(before: MonthTruth, after: MonthTruth) -> dict[str, float]:
    """The effects from the generator's quantities and prices, by the definition, one thing after the other."""
    out = dict.fromkeys(("price", "volume", "mix", "new", "retired", "other"), 0.0)
    pure: dict[tuple[str, str, str], list[float]] = {}
    mixed = 0.0
    used = [
        {(*key[:3], *key[4:]) for key, (q, _) in month.units.items() if q > 0} for month in (before, after)
    ]
    one_sided = {(*key[:3], *key[4:]) for key in before.units.keys() ^ after.units.keys()}
    for key in before.units.keys() | after.units.keys():
        (q0, e0), (q1, e1) = before.units.get(key, [0.0, 0.0]), after.units.get(key, [0.0, 0.0])
        sku = (*key[:3], *key[4:])
        is_priced_otherwise = sku in one_sided and all(sku in month for month in used)
        if q0 > 0 and q1 > 0:
            p0, p1 = e0 / q0, e1 / q1
            out["price"] += (p1 - p0) * (q0 + q1) / 2
            mixed += (q1 - q0) * (p0 + p1) / 2
        elif is_priced_otherwise:  # used in both months, under another pricing category
            mixed += e1 - e0
        elif q0 == 0:
            out["new"] += e1
        else:
            out["retired"] -= e0
        if is_priced_otherwise or (q0 > 0 and q1 > 0):
            group = pure.setdefault((key[0], key[4], key[5]), [0.0] * 4)
            for i, number in enumerate((q0, e0, q1, e1)):
                group[i] += number
    out["volume"] = sum((q1 - q0) * (e0 / q0 + e1 / q1) / 2 for q0, e0, q1, e1 in pure.values())
    out["mix"] = mixed - out["volume"]
    out["other"] = sum(after.no_unit.values()) - sum(before.no_unit.values())
    return out


@pytest.mark.parametrize("month", [SEPTEMBER, OCTOBER])
def test_the_bridge(reviews: Reviews, company: Truth, month: date) -> None:
    review = reviews.plain(month)
    before, after = company.month[MONTHS[MONTHS.index(month) - 1]], company.month[month]
    for name, amount in bridge_truth(before, after).items():
        assert value(review, f"bridge_{name}_money") == pytest.approx(amount, abs=1e-6), name
    change = value(review, "bridge_change_money")
    assert change == pytest.approx(after.effective - before.effective, abs=1e-6)
    parts = [
        value(review, f"bridge_{n}_money") for n in ("price", "volume", "mix", "new", "retired", "other")
    ]
    assert math.fsum(parts) == pytest.approx(change, abs=1e-9 * after.effective)


def test_movers_say_why(reviews: Reviews) -> None:
    table = named(section(reviews, OCTOBER, "movers"), "movers")
    names = [column.key for column in table.columns]
    rows = {str(row[0]): dict(zip(names, row, strict=True)) for row in table.rows}
    gpu = rows["GPU, aws-gpu-8"]  # by the bill's own words; the id stands beside it for programs
    assert gpu["sku"] == "SKU-aws-gpu" and str(gpu["reason"]).startswith(("more volume", "less volume"))
    assert not [name for name in rows if name.startswith("SKU-")]
    review = section(reviews, OCTOBER, "bridge")
    services = {row[0]: row for row in named(review, "bridge_services").rows}
    assert services["AmazonSQS (AWS)"][5] == services["AmazonSQS (AWS)"][2]  # all of it new
    assert float(services["Dataflow (Google Cloud)"][5] or 0) < 0


def test_the_first_month_has_nothing_to_compare_with(reviews: Reviews) -> None:
    for key in ("bridge", "movers"):
        one = section(reviews, AUGUST, key)
        assert one.status == "ok" and "no month" in one.sentences[0]
    assert "than" not in reviews.plain(AUGUST).verdict


def test_the_spike_is_found_with_its_cause(reviews: Reviews, company: Truth) -> None:
    made = named(section(reviews, OCTOBER, "anomalies"), "anomalies")
    rows = [dict(zip([c.key for c in made.columns], row, strict=True)) for row in made.rows]
    (spike,) = (row for row in rows if row["service"] == company.spike.service)
    assert spike["day"] == company.spike.day.isoformat()
    assert (spike["sku"], spike["region"]) == (company.spike.sku_id, company.spike.region_id)
    assert float(spike["excess"]) == pytest.approx(company.spike.excess_usd, rel=0.05)
    # all else that stands out are training runs, which are named
    assert {row["run"] for row in rows if row is not spike} <= {run.run_id for run in company.runs}


def test_plans_against_the_bill(reviews: Reviews, company: Truth) -> None:
    review = reviews.full(OCTOBER)
    own = [run for run in company.runs if run.start >= OCTOBER]
    assert value(review, "plan_runs_count") == len(own)
    assert value(review, "plan_planned_money") == pytest.approx(sum(r.planned_usd + STORAGE_USD for r in own))
    assert value(review, "plan_effective_money") == pytest.approx(sum(r.billed_usd for r in own))
    for name, part in (
        ("price", "price"),
        ("duration", "work"),
        ("nodes", "nodes"),
        ("interruption", "lost"),
    ):
        truth = sum(effects_of(run)[part] for run in own)
        assert value(review, f"plan_{name}_effect_money") == pytest.approx(truth), name
    measured = named(section(reviews, OCTOBER, "plan_vs_actual", full=True), "measurements").rows
    assert {row[0] for row in measured} == {run.run_id for run in own}


def test_budgets_of_a_closed_month_are_kept_or_not(reviews: Reviews, company: Truth) -> None:
    made = named(section(reviews, OCTOBER, "forecast", full=True), "budgets")
    rows = {row[0]: dict(zip([c.key for c in made.columns], row, strict=True)) for row in made.rows}
    spent = company.month[OCTOBER].effective
    assert rows["all"]["actual"] == pytest.approx(spent)
    assert rows["all"]["variance"] == pytest.approx(spent - 170000)
    assert (rows["all"]["status"], rows["all"]["p_over"]) == ("over", 1.0)
    assert (rows["payments"]["status"], rows["payments"]["p_over"]) == ("ok", 0.0)
    assert "over its budget of 170,000 USD" in reviews.full(OCTOBER).verdict
    review = reviews.full(OCTOBER)
    assert value(review, "budget_variance_money") == pytest.approx(spent - 170000)
    assert value(review, "budget_p_over_ratio") == 1.0


def test_the_forecast_is_of_the_month_after(reviews: Reviews) -> None:
    review = reviews.full(OCTOBER)
    low, middle, high = (value(review, f"forecast_{n}_money") for n in ("low", "landing", "high"))
    assert low < middle < high
    fan = section(reviews, OCTOBER, "forecast", full=True).charts[0]
    assert fan.labels[-1] == "2026-11-30"
    assert "November 2026 is expected at" in review.verdict


def test_actions_have_money_and_a_plan(reviews: Reviews, company: Truth) -> None:
    made = named(section(reviews, OCTOBER, "actions"), "actions")
    rows = {str(row[0]): row for row in made.rows}
    idle = rows["Shrink the capacity reservation cr-0001"]
    assert idle[1] == pytest.approx(4 * 36.0 * 31)
    assert any(name.startswith("Commit more: AmazonEC2") for name in rows)
    assert any(name.startswith("Run GPU, aws-gpu-8 on spot") for name in rows)
    keys = [column.key for column in made.columns]
    commands = [str(row[keys.index("command")]) for row in rows.values()]
    assert all(command.startswith("planner review --focus ") for command in commands)
    levels = {name: row[keys.index("confidence")] for name, row in rows.items()}
    assert set(levels.values()) <= {"high", "medium", "low", ""}
    assert levels["Shrink the capacity reservation cr-0001"] == "high"  # billed on every day
    assert levels["Run GPU, aws-gpu-8 on spot where work may pause"] == "low"
    low = company.month[OCTOBER]
    cud = next(c for c in company.commitments if c.provider == "Google Cloud")
    assert low.used[cud.id] / (low.used[cud.id] + low.unused[cud.id]) < 0.75
    (less,) = (row for name, row in rows.items() if name.startswith("Commit less"))
    assert less[1] == pytest.approx(low.unused[cud.id])


def test_golden(
    reviews: Reviews, month: date, company: Truth, check_golden: Callable[[str, str], None]
) -> None:
    review = reviews.plain(month)
    # the gate has tests of its own
    shown = replace(review, sections=tuple(s for s in review.sections if s.key != "quality"))
    text = str(render_review(shown, "md"))
    folder = str(company.files[0].parent)
    for name in (
        folder,
        folder.replace("_", "\\_"),
    ):  # Markdown escapes the underscores that a folder may have
        text = text.replace(name, "bill")
    check_golden(f"review/{month:%Y-%m}.md", text)


def test_a_month_in_the_middle_can_be_compared_with_any(bill: Bill, company: Truth) -> None:
    review = review_bill(bill, month=OCTOBER, compare_month=AUGUST, forecast=False)
    before, after = company.month[AUGUST], company.month[OCTOBER]
    for name, amount in bridge_truth(before, after).items():
        assert value(review, f"bridge_{name}_money") == pytest.approx(amount, abs=1e-6), name


def test_wrong_months_and_tags_are_told(bill: Bill) -> None:
    with pytest.raises(InputError, match="it has 2026-08, 2026-09, 2026-10"):
        review_bill(bill, month=date(2025, 1, 1))
    with pytest.raises(InputError, match="is the reviewed month itself"):
        review_bill(bill, month=OCTOBER, compare_month=OCTOBER)
    with pytest.raises(InputError, match="one to 6 different tags"):
        review_bill(bill, tags=[])


def test_progress_goes_from_0_to_1(bill: Bill) -> None:
    told: list[float] = []
    review_bill(bill, forecast=False, progress=lambda _step, share: told.append(share))
    assert told == sorted(told) and told[0] == 0.0 and told[-1] == 1.0
