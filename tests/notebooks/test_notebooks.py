"""Every notebook runs from top to bottom; its cells hold no outputs."""

from __future__ import annotations

import ast
import gzip
import json
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner import finops
from tests.focus_company.shared import small_company
from tests.notebooks.example_bill import FOLDER as EXAMPLE
from tests.notebooks.example_bill import write_example
from tests.planner.finops.small_bill import charge, each_day, write_bill

# what is asked here is that the cells run, of a fifth of the bundled offers as of all
pytestmark = pytest.mark.catalog("small")
FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


def _run(path: Path, shown: list[object] | None = None, **parameters: str) -> dict[str, object]:
    """Run the code cells; `parameters` stand in for those of the cell that papermill replaces.

    What a kernel would display is put into `shown`.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], (
            f"cell {number} of {path.name} holds outputs: clear them before committing"
        )
        tree = ast.parse("".join(cell["source"]), f"{path.name}[{number}]")
        last = tree.body.pop() if shown is not None and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}[{number}]", "exec"), names)  # the repository's own code
        if isinstance(last, ast.Expr) and shown is not None:
            value = ast.Expression(last.value)
            shown.append(eval(compile(value, f"{path.name}[{number}]", "eval"), names))
        if "parameters" in cell["metadata"].get("tags", ()):
            assert parameters.keys() <= names.keys()
            names |= parameters
    return names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a folder of the user's own: they found their examples only from inside the repository."""
    monkeypatch.chdir(tmp_path)
    assert len(_run(path)) > 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_papermill_understands_every_parameter(path: Path) -> None:
    """It skips a line with a second equals sign and then calls the parameter unknown."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            assert all(
                line.count("=") == 1 for line in "".join(cell["source"]).splitlines() if line[0] != "#"
            )


def _papermill(name: str, folder: Path, **parameters: str) -> str:
    """Run a notebook as its users do, in a kernel of its own; its outputs as one text."""
    given = [word for key, value in parameters.items() for word in ("-r", key, value)]
    options = ["--no-progress-bar", "--kernel", "python3", "--cwd", str(folder), *given]
    command = [
        sys.executable,
        "-m",
        "papermill",
        str(FOLDER / f"{name}.ipynb"),
        str(folder / "out.ipynb"),
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    cells = json.loads((folder / "out.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]
    texts = [output.get("text", output.get("data", {}).get("text/html", "")) for output in outputs]
    return "\n".join("".join(text) for text in texts)


def test_the_review_runs_on_another_bill_and_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a kernel: that the cells of a notebook run in one is shown of `what_if`."""
    monkeypatch.chdir(tmp_path)
    company = small_company()
    bill = str(Path(company.files[0]).parent)
    shown: list[Any] = []
    _run(
        FOLDER / "monthly_review.ipynb", shown, bill=bill, month="2026-09", tags="team", report="review.html"
    )
    assert "September 2026 cost" in capsys.readouterr().out
    assert "<svg" in "".join(one._repr_html_() for one in shown if one is not None)
    page = (tmp_path / "review.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "2026-09" in page


def test_what_if_draws_its_answers_in_a_kernel(tmp_path: Path) -> None:
    """Cost by deadline and by scenario as pictures, by papermill, on a workload of one's own."""
    own = tmp_path / "mine.yaml"
    own.write_text(
        (FOLDER.parent / "examples" / "resnet50-imagenet.yaml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    shown = _papermill("what_if", tmp_path, workload=str(own))
    assert shown.count("<svg") >= 2 and "Cost by scenario" in shown
    assert shown.count("<h4>Scenarios</h4>") == 1  # it stands on the screen and behind it
    assert "p5.48xlarge" in shown and "purchase_options" in shown


def test_the_budget_runs_on_a_bill() -> None:
    bill = str(Path(small_company().files[0]).parent)
    names: Any = _run(FOLDER / "budget_forecast.ipynb", bill=bill, by="tag:team", scenario="volume=+50%")
    assert "No budgets file was given." in repr(names["shown"])
    assert names["after"][0].expected > names["before"][0].expected > 0
    exact = sum(b.expected - a.expected for a, b in zip(names["before"], names["after"], strict=True))
    assert names["saving"] == pytest.approx(exact, rel=0.1)
    assert round(names["saving"]) != round(exact)  # "Together -190,206 USD" of a cost known to 10,000


def test_the_budget_takes_the_currency_of_the_bill(tmp_path: Path) -> None:
    """It asked every bill for rows in USD."""
    rows = each_day(date(2026, 8, 1), date(2026, 10, 31), BillingCurrency="EUR")
    names: Any = _run(
        FOLDER / "budget_forecast.ipynb", bill=str(write_bill(tmp_path / "bill.csv", rows)), by="service"
    )
    assert names["answer"].currency == names["currency"] == "EUR"


def test_the_budget_expects_a_block_once_in_all_its_parts(tmp_path: Path) -> None:
    """The coming 30 days added up had the block in their range, the table of the same 30 days had not."""
    rows = each_day(date(2026, 6, 1), date(2026, 10, 31))
    rows += each_day(date(2026, 6, 1), date(2026, 10, 31), 5, SkuId="weekly")[::7]
    bought: dict[str, Any] = {"ChargeCategory": "Purchase", "ChargeFrequency": "One-Time", "SkuId": "block"}
    rows.append(charge(date(2026, 9, 9), 1500, **bought))
    names: Any = _run(
        FOLDER / "budget_forecast.ipynb", bill=str(write_bill(tmp_path / "bill.csv", rows)), by="service"
    )
    (same,) = (one for one in names["answer"].scopes[0].periods if one.period.is_horizon)
    coming = names["coming"]
    assert (coming.total, coming.total_low, coming.total_high) == pytest.approx(
        (same.expected, same.low, same.high)
    )


def test_both_read_a_bill_of_two_currencies(tmp_path: Path) -> None:
    """They had no parameter for rates, without which such a bill is refused."""
    days = date(2026, 8, 1), date(2026, 10, 31)
    bill = write_bill(tmp_path / "bill.csv", each_day(*days) + each_day(*days, BillingCurrency="EUR"))
    (tmp_path / "rates.csv").write_text("date,from,to,rate\n2026-08,EUR,USD,1.5\n", encoding="utf-8")
    given: Any = {"bill": str(bill), "rates": str(tmp_path / "rates.csv"), "target": "USD"}
    review: Any = _run(FOLDER / "monthly_review.ipynb", **given)["review"]
    assert review.currency == "USD" and review.verdict.startswith("October 2026 cost 7,750 USD")
    answer: Any = _run(FOLDER / "budget_forecast.ipynb", **given)["answer"]
    assert answer.currency == "USD"


def test_both_read_a_bill_in_columns_of_its_own(tmp_path: Path) -> None:
    """They had no parameter for what `--map` names, without which a neocloud's invoice is refused."""
    own, columns = tmp_path / "own.csv", tmp_path / "columns.csv"
    days = (date(2026, 8, 1) + timedelta(number) for number in range(92))
    own.write_text(
        "day,usd,project\n" + "".join(f"{day},{100 + day.day % 3},ml\n" for day in days), encoding="utf-8"
    )
    pairs = "day=ChargePeriodStart", "usd=BilledCost", "project=Tags.team", "'USD'=BillingCurrency"
    finops.read_mapping((*pairs, "'Usage'=ChargeCategory"), columns)
    given: Any = {"bill": str(own), "mapping": str(columns)}
    assert "October 2026 cost 3,131 USD" in _run(FOLDER / "monthly_review.ipynb", **given)["review"].verdict  # type: ignore[attr-defined]
    shown: list[object] = []
    answer: Any = _run(FOLDER / "budget_forecast.ipynb", shown, by="tag:team", **given)["answer"]
    assert [scope.scope for scope in answer.scopes] == ["total", "ml"]


def test_the_example_bill_is_what_its_generator_makes(tmp_path: Path) -> None:
    made = write_example(tmp_path)
    assert [path.name for path in made] == sorted(path.name for path in EXAMPLE.glob("*.csv.gz"))
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) < 200_000
    for path in made:
        assert gzip.decompress(path.read_bytes()) == gzip.decompress((EXAMPLE / path.name).read_bytes())
