"""The data-quality gate: what a bill cannot carry is withheld or flagged, with the reason."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

import pytest

import planner.finops
from planner.finops.quality import Gate, assess_quality, checks_of_figures
from planner.finops.read import open_bill
from tests.focus_company import make_company
from tests.planner.finops.read.test_open import line, write

SAMPLE = Path(__file__).parents[4] / "shared" / "finops" / "focus_real" / "focus_1.0_sample_1000.csv"
DATA = Path(planner.finops.__file__).parent / "data"
OCTOBER = date(2026, 10, 1)


def gate_of(path: Path, month: date = OCTOBER, **options: object) -> Gate:
    with open_bill([path]) as bill:
        return assess_quality(bill, month, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("company")
    make_company(2, seed=3, rows_per_month=2000, version="1.4", out=folder)
    return folder


def test_a_sound_bill_passes(company: Path) -> None:
    gate = gate_of(company)
    for kpi in (
        "esr_list_ratio",
        "esr_contract_ratio",
        "commitment_utilisation_ratio",
        "forecast_effective_money",
        "billed_money",
    ):
        assert gate.status(kpi) == ("ok", ""), kpi


@pytest.mark.shared
@pytest.mark.skipif(not SAMPLE.exists(), reason="the official FOCUS sample is not beside the project")
def test_the_official_sample_has_no_savings_rate() -> None:
    gate = gate_of(SAMPLE, date(2024, 9, 1))
    for kpi in ("esr_list_ratio", "esr_contract_ratio", "forecast_effective_money"):
        status, reason = gate.status(kpi)
        assert status == "withheld"
        assert "have an EffectiveCost of 0 and no commitment behind them" in reason
    assert gate.status("billed_money")[0] == "ok"


def zero_effective(cost: str) -> str:
    return line(cost).replace(f"Usage,{cost},{cost}", f"Usage,{cost},0")


@pytest.mark.parametrize(
    ("lines", "kpi", "status", "text"),
    [
        ([zero_effective("3"), line(3)], "esr_list_ratio", "withheld", "50.0 % of billed use has an Eff"),
        ([line(1), line(1).replace(",2,2,P", ",0,2,P")], "esr_list_ratio", "withheld", "known for 50.0 % of use"),
        ([line(1), line(1).replace(",2,2,P", ",0,2,P")], "esr_contract_ratio", "ok", ""),
        ([line(9), line(1).replace(",2,2,P", ",2,,P")], "esr_contract_ratio", "flagged", "known for 90.0 % of use"),
        ([line(99), line(-1)], "forecast_effective_money", "flagged", "1.0 % of effective cost is negative in rows"),
        ([line(99), line(-1).replace("Usage", "Credit")], "forecast_effective_money", "ok", ""),
        ([*[line(1)] * 9, line("x")], "spend_money", "withheld", "10.0 % of rows have no readable cost"),
        ([*[line(1)] * 9, "cut,off"], "spend_money", "withheld", "10.0 % of rows have no readable cost"),
        ([line(currency="")], "spend_money", "flagged", "the bill names no currency"),
        ([line(), line().replace("Usage", "")], "spend_money", "withheld", "50.0 % of charges do not say whether"),
        ([line()], "allocation_ratio", "withheld", "no charge of the export carries tags"),
        ([line()], "bridge_price_money", "withheld", "SKU and priced quantity are known for 0.0 % of use cost"),
        ([line()], "budget_variance_money", "flagged", "1 of 31 days of the month has use"),
    ],
)  # fmt: skip
def test_each_fault_has_its_effect(
    lines: list[str], kpi: str, status: str, text: str, tmp_path: Path
) -> None:
    got, reason = gate_of(write(tmp_path / "a.csv", *lines)).status(kpi)
    assert got == status
    assert text in reason


def test_charges_counted_twice_withhold_sums(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", line(1, sku="s1"), line(2, sku="s2"))
    write(tmp_path / "b.csv", line(2, sku="s2"), line(5, sku="s3"))
    with open_bill([tmp_path]) as bill:
        status, reason = assess_quality(bill, OCTOBER).status("spend_money")
    assert status == "withheld"
    assert "20.0 % of billed cost is counted twice" in reason


@pytest.mark.parametrize(("factor", "status"), [(1.0, "ok"), (1.01, "flagged"), (1.5, "withheld")])
def test_invoices_must_add_up(factor: float, status: str, company: Path, tmp_path: Path) -> None:
    (source,) = company.glob("invoice*")
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["BilledCost"] = str(float(row["BilledCost"]) * factor)
    with (tmp_path / "invoice.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with open_bill([*company.glob("focus*"), tmp_path / "invoice.csv"]) as bill:
        gate = assess_quality(bill, OCTOBER)
    (check,) = [check for check in gate.checks if check.key == "invoices"]
    assert check.value == pytest.approx(1 - 1 / factor, abs=1e-6)
    assert gate.status("billed_money")[0] == status


class Late:
    """A tenth of a day's cost is there on the day itself, and all of it a day later."""

    newest_age = 0

    def factor(self, age: int) -> float:
        return 10.0 if age == 0 else 1.0


def test_late_days_flag_the_month(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(90), line(1, day="2026-10-04"))
    gate = gate_of(path, completion=Late())
    (check,) = [check for check in gate.checks if check.key == "reported"]
    assert check.value == pytest.approx(0.91)
    assert gate_of(path).status("budget_variance_money")[1] == "2 of 31 days of the month have use"


def test_a_month_in_one_row_is_complete(tmp_path: Path) -> None:
    row = line(5).replace("2026-10-03T00:00:00Z,2026-10-03T01:00:00Z", "2026-10-01,2026-11-01")
    (check,) = [c for c in gate_of(write(tmp_path / "a.csv", row)).checks if c.key == "complete"]
    assert (check.value, check.status) == (1.0, "ok")


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_check_is_used_and_has_its_reasons() -> None:
    checks = _rows("quality_checks.csv")
    used = {name for names in checks_of_figures().values() for name in names}
    assert used == {row["check"] for row in checks}
    assert all(row["why"] and row["source"] and row["as_of"] for row in checks)


def test_a_worse_bill_never_passes_better(tmp_path: Path) -> None:
    order = {"ok": 0, "flagged": 1, "withheld": 2}
    seen = []
    for bad in (0, 1, 2, 10, 50):
        path = write(tmp_path / f"{bad}.csv", *[line(1)] * 50, *[zero_effective("1")] * bad)
        seen.append(order[gate_of(path).status("esr_list_ratio")[0]])
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 2)
