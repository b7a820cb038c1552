"""Days of options, arguments and logs that are of no year of our time: refused by name."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

import planner
from planner.errors import InputError
from tests.conftest import ROOT, Run

pytestmark = pytest.mark.catalog("small")
BERT = str(ROOT / "examples" / "bert-large.yaml")
BOUND = "must be in the years 2000 to 2100"
FAR = ("0001-01-01", "1999-12-31", "2101-01-01", "9999-12-31")


@pytest.mark.parametrize("day", FAR)
@pytest.mark.parametrize(
    "question",
    [
        ("optimize", BERT, "--as-of"), ("explain", BERT, "--as-of"), ("catalog", "list", "--as-of"),
        ("track", "plan.json", "--now"), ("track", "plan.json", "--started"),
    ],
)  # fmt: skip
def test_a_day_of_an_option(run_cli: Run, question: tuple[str, ...], day: str) -> None:
    done = run_cli(*question, day)
    assert done.code == 2 and BOUND in done.stderr and question[-1] in done.stderr


def test_a_month_of_a_review(run_cli: Run) -> None:
    done = run_cli("review", str(ROOT / "examples" / "focus"), "--month", "9999-12")
    assert done.code == 2 and BOUND in done.stderr


@pytest.mark.parametrize("day", ["9999-12-31", date(9999, 12, 31), datetime(9999, 12, 31, tzinfo=UTC)])
def test_a_day_of_a_call(day: str | date) -> None:
    with pytest.raises(InputError, match=BOUND):
        planner.optimize(BERT, as_of=day)


@pytest.mark.parametrize(
    "times",
    [
        ("9990-12-30T00:00:00Z", "9990-12-30T00:08:00Z"), ("0001-12-30T00:00:00Z", "0001-12-30T00:08:00Z"),
        ("1e18", "1.2e18"), ("253402300000", "253402300199"),
    ],
)  # fmt: skip
def test_times_of_a_log(run_cli: Run, tmp_path: Path, times: tuple[str, str]) -> None:
    plan, log = tmp_path / "plan.json", tmp_path / "log.csv"
    assert run_cli("optimize", BERT, "-o", "json", "--out", str(plan)).code == 0
    log.write_text(f"step,time\n0,{times[0]}\n400,{times[1]}\n", encoding="utf-8")
    done = run_cli("track", str(plan), "--log", str(log))
    assert done.code == 2 and f"{log.name}: the time of the last row: " in done.stderr
    with pytest.raises(InputError, match=f"now: {BOUND}"):
        log.write_text("step,time\n0,2026-11-20T00:00Z\n400,2026-11-20T00:08Z\n", encoding="utf-8")
        planner.track(str(plan), str(log), now=datetime(9999, 12, 31, tzinfo=UTC))


@pytest.mark.parametrize("day", FAR)
def test_days_of_a_forecast(run_cli: Run, tmp_path: Path, day: str) -> None:
    """Costs of the year 9999 ended in an internal error."""
    for option in (f"--fiscal-weeks=4-4-5@{day}", f"--scenario=price=-20%@{day}"):
        done = run_cli("forecast", "--daily", str(ROOT / "examples" / "daily-costs.csv"), option)
        assert done.code == 2 and BOUND in done.stderr and option[:10] in done.stderr
    costs = tmp_path / "costs.csv"
    costs.write_text("date,scope,cost\n" + f"{day},all,5\n" * 40, "utf-8")
    done = run_cli("forecast", "--daily", str(costs))
    assert done.code == 2 and f"costs.csv:2: {BOUND}" in done.stderr


HEAD = "ChargePeriodStart,BilledCost,EffectiveCost,ListCost,ContractedCost,ChargeCategory,BillingCurrency\n"


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_days_of_a_bill(run_cli: Run, tmp_path: Path, day: str) -> None:
    """Many charges of such a day ended in internal errors, and beside those of our time in no end."""
    bill = tmp_path / "bill.csv"
    far = "".join(f"{day}T00:00:00Z,{cost},1,1,1,Usage,USD\n" for cost in range(40))
    bill.write_text(HEAD + far, "utf-8")
    for question in (("review", "--focus"), ("forecast", "--focus"), ("commit", "--from-focus")):
        done = run_cli(*question, str(bill))
        assert done.code == 2 and (question[0] == "commit" or "no bill is of that year" in done.stderr)
    ours = "".join(f"2026-10-{at:02}T00:00:00Z,{at},1,1,1,Usage,USD\n" for at in range(1, 31))
    bill.write_text(HEAD + far + ours, "utf-8")
    done = run_cli("review", "--focus", str(bill))
    assert done.code == 0 and "October 2026" in done.stdout
    values = run_cli("review", "--focus", str(bill), "-o", "json").stdout
    assert f"40 rows (780.00 billed) of {day}: no bill is of such a year" in values
    assert run_cli("forecast", "--focus", str(bill)).code == (0 if day < "2000" else 2)
