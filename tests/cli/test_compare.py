"""`planner compare` on the bundled catalog: each row is the plan of `optimize` within it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import planner
from tests.cli.test_command_pages import run_page
from tests.conftest import ROOT, Run

DAY = ("--as-of", "2026-11-20")
BERT = "examples/bert-large.yaml"
LLAMA = "examples/llama-3-8b.yaml"
DPO = "examples/dpo-8b.yaml"
THREE = "p4d.24xlarge,a2-highgpu-8g,Standard_ND96asr_v4"
pytestmark = pytest.mark.catalog("small")


@pytest.fixture(autouse=True)
def _questions_are_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked_once: Callable[[str], None]
) -> None:
    """A comparison takes a plan per row: tests of the same question, and the page, share its answer."""
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    asked_once("planner.job.compare.compare")


def test_the_commands_of_the_page_run(run_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    run_page("compare", run_cli)


def rows_of(run_cli: Run, *args: str) -> dict[str, dict[str, Any]]:
    result = run_cli("compare", *args, *DAY, "-o", "json")
    assert result.code == 0, result.stderr
    return {row["row"]: row for row in json.loads(result.stdout)["rows"]}


def limited(tmp_path: Path, limit: str) -> Path:
    path = tmp_path / "limited.yaml"
    text = Path(BERT).read_text(encoding="utf-8")
    assert "constraints:\n" in text
    path.write_text(text.replace("constraints:\n", f"constraints:\n  {limit}\n"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("over", "limit", "row"),
    [
        (("--pick", THREE), "instance_types: {allow: [a2-highgpu-8g]}", "a2-highgpu-8g"),
        (("--over", "provider"), "providers: [gcp]", "gcp"),
        (("--over", "option"), "purchase_options: [on_demand]", "on_demand"),
    ],
)
def test_a_row_is_the_plan_of_the_file_limited_to_it(
    over: tuple[str, ...], limit: str, row: str, run_cli: Run, tmp_path: Path
) -> None:
    found = rows_of(run_cli, BERT, *over)[row]
    best = found["best"]
    plan = planner.optimize(limited(tmp_path, limit), as_of=DAY[1])
    assert (best["cost_usd"], best["nodes"]) == (str(plan.total_usd), plan.lines[0].nodes)
    assert best["hours"] == pytest.approx(plan.hours)
    assert plan.risk is not None
    assert found["p_meet_deadline"] == pytest.approx(plan.risk.p_meet_deadline)


def test_the_first_picked_is_the_base_and_changes_are_to_it(run_cli: Run) -> None:
    rows = rows_of(run_cli, BERT, "--pick", THREE)
    assert next(iter(rows)) == "p4d.24xlarge" and rows["p4d.24xlarge"]["cost_ratio"] == 1.0
    base, other = (rows[name]["best"] for name in ("p4d.24xlarge", "a2-highgpu-8g"))
    ratio = float(other["cost_usd"]) / float(base["cost_usd"])
    assert rows["a2-highgpu-8g"]["cost_ratio"] == pytest.approx(ratio)


@pytest.mark.catalog("whole")
def test_singapore_is_dearer_than_silicon_valley(run_cli: Run) -> None:
    result = run_cli("compare", BERT, "--over", "region", "--base", "aws/us-west-1", *DAY, "-o", "json")
    (claim,) = json.loads(result.stdout)["claims"]
    assert claim["region"] == "aws/ap-southeast-1" and not claim["holds"]
    assert claim["gap"]["median_ratio"] > 0.1 and claim["gap"]["types"] >= 10
    found = json.loads(result.stdout)
    assert found["rows"][0]["row"] == found["base"] == "aws/us-west-1"
    shown = run_cli("compare", BERT, "--over", "region", "--base", "aws/us-west-1", *DAY)
    assert "CLAIM  aws/ap-southeast-1 against aws/us-west-1, on-demand: +16.6 %" in shown.stdout
    assert "does not hold" in shown.unwrapped and shown.unwrapped.count("claim of 15-20 % cheaper") == 1
    best = run_cli("compare", BERT, "--over", "region", *DAY)  # compares with neither place
    assert "CLAIM" not in best.stdout and "none moves between regions" in best.unwrapped


def test_spot_alone_without_a_record_is_not_called_cheapest(run_cli: Run) -> None:
    result = run_cli("compare", LLAMA, "--over", "option", *DAY, "-o", "json")
    rows = {row["row"]: row for row in json.loads(result.stdout)["rows"]}
    assert rows["spot"]["misses"] == ["unrecorded"]
    plan = planner.optimize(LLAMA, as_of=DAY[1])
    assert rows["spot, else on_demand"]["best"]["cost_usd"] == str(plan.total_usd)
    assert "spot, else on_demand is cheapest" in run_cli("compare", LLAMA, "--over", "option", *DAY).unwrapped


def test_a_row_that_breaks_a_limit_breaks_as_few_as_it_can(run_cli: Run) -> None:
    """A commitment that is over the budget whatever it runs on is not also years late to be a little cheaper."""
    rows = rows_of(run_cli, LLAMA, "--over", "option")
    terms = {
        name: row["misses"] for name, row in rows.items() if name.startswith(("reserved", "cud", "savings"))
    }
    assert terms and all(len(misses) == 1 for misses in terms.values()), terms


@pytest.mark.catalog("whole")
def test_a_row_that_breaks_a_limit_is_marked(run_cli: Run, tmp_path: Path) -> None:
    text = Path(LLAMA).read_text(encoding="utf-8").replace("deadline: 3w", "deadline: 4d")
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")
    picks = ("compare", str(path), "--pick", "p4d.24xlarge,g5.xlarge", *DAY)
    rows = {row["row"]: row for row in json.loads(run_cli(*picks, "-o", "json").stdout)["rows"]}
    assert "deadline" in rows["p4d.24xlarge"]["misses"] and rows["p4d.24xlarge"]["best"]
    assert rows["g5.xlarge"]["best"] is None and rows["g5.xlarge"]["reason"]
    result = run_cli(*picks)
    assert "* breaks a limit (too late" in result.unwrapped
    assert result.stdout.startswith("None of the 2 instance types compared meets every limit")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--pick", "p4d.24xlrge"), "did you mean 'p4d.24xlarge'?"),
        (("--over", "region", "--base", "aws/us-wst-1"), "did you mean 'aws/us-west-1'?"),
        ((), "give either --pick TYPE,TYPE or --over region"),
        (("--pick", THREE, "--over", "type"), "give either --pick TYPE,TYPE or --over region"),
    ],
)
def test_wrong_names_are_named(args: tuple[str, ...], message: str, run_cli: Run) -> None:
    result = run_cli("compare", BERT, *args, *DAY)
    assert result.code == 2 and message in result.stderr and not result.stdout


def test_what_spot_saves_has_a_chance(run_cli: Run) -> None:
    found = json.loads(run_cli("compare", BERT, "--over", "provider", *DAY, "-o", "json").stdout)
    saving = next(row["spot"] for row in found["rows"] if row["row"] == "aws")
    assert saving["saved_ratio"] > 0 and 0.9 <= saving["p_meet_deadline"] <= 1.0


def test_commitments_of_years_say_that_they_are_and_large_changes_are_factors(
    run_cli: Run, tmp_path: Path
) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(
        "version: 1\nname: tiny\nmodel: {preset: bert-base}\n"
        "training: {epochs: 3, global_batch: 32, sequence_length: 128}\n"
        "data: {samples: 25_000, sample_size: 1KB}\nconstraints: {deadline: 1d, providers: [gcp]}\n",
        encoding="utf-8",
    )
    said = run_cli("compare", str(path), "--over", "option", *DAY)
    assert said.code == 0, said.stderr
    assert "cud_1y, cud_3y: the whole term, owed in full; planner commit weighs one" in said.unwrapped
    assert re.search(r"cud_1y .* x \d\d,\d{3} ", said.stdout)


def test_a_fleet_is_not_compared(run_cli: Run) -> None:
    result = run_cli("compare", str(ROOT / "examples" / "hpo-fleet.yaml"), "--over", "type", *DAY)
    assert result.code == 2 and "planner optimize" in result.stderr


def test_the_api_answers_as_the_command() -> None:
    found = planner.compare(BERT, pick=["p4d.24xlarge", "a2-highgpu-8g"], as_of=DAY[1])
    frame = found.to_frame()
    assert list(frame["row"]) == ["p4d.24xlarge", "a2-highgpu-8g"] and "compared for" in found.report().topic


def test_hours_beside_the_steps_are_named_unless_the_file_states_them(run_cli: Run, tmp_path: Path) -> None:
    stated = tmp_path / "stated.yaml"
    stated.write_text(
        f"{Path(BERT).read_text(encoding='utf-8')}\nassumptions: {{beside_steps_ratio: 0.2}}\n", "utf-8"
    )
    told = [
        "speed is that of the steps; run time is 1.36 x the steps' time"
        in " ".join(run_cli("compare", str(file), "--pick", THREE, *DAY).stdout.split())
        for file in (BERT, stated)
    ]
    assert told == [True, False]


def test_values_put_over_the_file_hold_for_every_row(run_cli: Run) -> None:
    rows = rows_of(run_cli, BERT, "--over", "provider", "--set", "constraints.providers=[gcp]")
    assert {name for name, row in rows.items() if row.get("best") is not None} == {"gcp"}


def test_a_length_that_nobody_stated_is_named_by_every_command_that_prices_the_job(run_cli: Run) -> None:
    words = re.compile(r"samples of [\d,]+ tokens each assumed \(training\.lengths\)")

    def said(*args: str) -> list[str]:
        result = run_cli(*args, *DAY)
        assert result.code == 0, result.stderr
        return words.findall(" ".join(result.stdout.split()))

    drop = ("--set", "training.lengths=null")
    named = said("optimize", DPO, *drop)
    assert len(named) == 1
    assert said("compare", DPO, "--over", "provider", *drop) == named
    assert said("frontier", DPO, "--points", "2", *drop) == named
    assert said("frontier", DPO, "--points", "2") == []
