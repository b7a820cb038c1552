"""`planner commit` as a user types it: texts, data formats, certificates, limits and mistakes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT, CliResult

Run = Callable[..., CliResult]
EXAMPLE = ROOT / "examples" / "commit.yaml"
USAGE = "hour,pool,instances\n" + "".join(
    f"{hour},{pool},{base + (hour % 24) // 6 - 2 * (hour // 24 % 7 >= 5)}\n"
    for hour in range(336)
    for pool, base in (("a", 8), ("b", 3))
)


def write(folder: Path, **changes: Any) -> Path:
    """A small question with prices of its own; sections replace those of the base."""
    base: dict[str, Any] = {
        "version": 1,
        "name": "small",
        "start": "2027-01-01",
        "pools": [
            {"name": "a", "provider": "x", "region": "r", "prices": {"on_demand": 10.0, "reserved_1y": 6.5}},
            {"name": "b", "provider": "x", "region": "r", "prices": {"on_demand": 4.0, "reserved_1y": 2.0},
             "upfront_usd": {"reserved_1y": 5000}},
        ],
        "demand": {"file": "usage.csv"},
        "scenarios": {"count": 8, "hours_per_year": 100, "growth": {"low": 0.8, "likely": 1.0, "high": 1.3}},
        "commitments": [
            {"purchase_option": "reserved_1y", "pool": "a", "instances": 2, "expires": "2027-06-30"}
        ],
    }  # fmt: skip
    (folder / "usage.csv").write_text(USAGE)
    path = folder / "question.yaml"
    path.write_text(yaml.safe_dump(base | changes))
    return path


def test_options_that_leave_some_prices_out_are_verified(tmp_path: Path, run_cli: Run) -> None:
    """Break-evens are those of the options allowed, for the judge too."""
    pools = [
        {"name": "a", "provider": "x", "region": "r",
         "prices": {"on_demand": 10.0, "reserved_1y": 6.5, "savings_plan_1y": 7.0}},
        {"name": "b", "provider": "x", "region": "r", "prices": {"on_demand": 4.0, "savings_plan_1y": 2.8}},
    ]  # fmt: skip
    path = write(tmp_path, pools=pools, options={"allow": ["savings_plan_1y"]}, commitments=[])
    answer = tmp_path / "answer.json"
    assert run_cli("commit", path, "-o", "json", "--out", answer).code == 0
    assert {row["option"] for row in json.loads(answer.read_text())["break_evens"]} == {"savings_plan_1y"}
    found = run_cli("verify", answer, "--workload", path)
    assert found.code == 0, found.stdout


PLANS = [
    {"name": name, "provider": "x", "region": "r", "spot_share": 0.25,
     "prices": {"on_demand": usd, "spot": usd / 4, "reserved_1y": usd * 0.6, "savings_plan_1y": usd * part}}
    for name, usd, part in (("a", 10.0, 0.7), ("b", 4.0, 0.65))
]  # fmt: skip


@pytest.mark.parametrize("fmt", ["table", "md"])
def test_text(tmp_path: Path, run_cli: Run, check_golden: Callable[[str, str], None], fmt: str) -> None:
    found = run_cli("commit", write(tmp_path), "-o", fmt)
    assert (found.code, found.stderr) == (0, "")
    assert fmt == "md" or max(map(len, found.stdout.splitlines())) <= 100
    check_golden(
        f"commit/small.{'txt' if fmt == 'table' else fmt}",
        re.sub(r"[0-9.]+ s\b", "0.0 s", found.stdout),
    )


def test_data_formats_say_the_same(tmp_path: Path, run_cli: Run) -> None:
    question = write(tmp_path, pools=PLANS, risk={"weight": 0.3, "level": 0.8})
    texts = {
        fmt: run_cli("commit", question, "-o", fmt, "--gap", "0.01%").stdout
        for fmt in ("json", "yaml", "csv")
    }
    answer = json.loads(texts["json"])
    assert answer["schema_version"] == 1
    assert (answer["status"], answer["currency"]) == ("optimal", "USD")
    assert answer["bound_usd"] <= answer["objective_usd"]
    assert answer["gap_ratio"] <= 1e-4
    loaded = yaml.safe_load(texts["yaml"])
    assert {**loaded, "seconds": 0} == {**answer, "seconds": 0}
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert [row["option"] for row in rows] == [line["option"] for line in answer["lines"]]
    assert answer["lines"]
    assert [float(row["total_usd"]) for row in rows] == [line["total_usd"] for line in answer["lines"]]


def test_figures_agree_with_each_other(tmp_path: Path, run_cli: Run) -> None:
    found = run_cli("commit", write(tmp_path, pools=PLANS, risk={"weight": 0.3, "level": 0.8}), "-o", "json")
    answer = json.loads(found.stdout)
    plan, nothing = answer["plan"], answer["nothing"]
    mixed = 0.7 * plan["expected_usd"] + 0.3 * plan["worst_usd"]
    assert mixed == pytest.approx(answer["objective_usd"], rel=1e-6)
    assert plan["savings_usd"] == pytest.approx(nothing["expected_usd"] - plan["expected_usd"], abs=0.02)
    shares = [level["share"] for level in answer["levels"]]
    assert shares == sorted(shares)
    coverage = [level["coverage_ratio"] for level in answer["levels"]]
    used = [level["utilisation_ratio"] for level in answer["levels"][1:]]
    assert coverage == sorted(coverage)
    assert used[0] > used[-1]
    assert all(0 <= ratio <= 1 for ratio in coverage + used)
    committed = sum(line["total_usd"] for line in answer["lines"] if line["now"])
    assert plan["committed_usd"] == pytest.approx(committed, rel=1e-6)
    planned = sum(line["usd_per_hour"] for line in answer["lines"] if not line["now"])
    assert planned and plan["planned_usd"] == pytest.approx(planned * 184 * 24, rel=1e-6)  # from 1 July on
    assert answer["regret"]["scenarios"] == 8
    assert 0 <= answer["regret"]["mean_usd"] <= answer["regret"]["worst_usd"]
    assert answer["expiring"][0]["expires"] == "2027-06-30"
    for item in answer["break_evens"]:
        ratio = item["all_in_usd_per_hour"] / item["on_demand_usd_per_hour"]
        assert item["hours_per_year"] == pytest.approx(8760 * ratio, abs=0.1)


def test_the_example_is_answered_with_a_certificate_that_verifies(tmp_path: Path, run_cli: Run) -> None:
    question = tmp_path / "commit.yaml"
    text = (
        EXAMPLE.read_text()
        .replace("count: 40", "count: 4")
        .replace("hours_per_year: 500", "hours_per_year: 60")
    )
    question.write_text(text)
    (tmp_path / "commit-usage.csv").write_bytes((ROOT / "examples" / "commit-usage.csv").read_bytes())
    proof = tmp_path / "proof.json"
    found = run_cli("commit", question, "-o", "json", "--certificate", proof)
    assert found.code == 0, found.stderr
    answer = json.loads(found.stdout)
    assert {source["provider"] for source in answer["catalog"]} == {"azure"}
    checked = run_cli("verify", proof)
    assert checked.code == 0, checked.stderr
    assert json.loads(proof.read_text())["objective"] == pytest.approx(answer["objective_usd"], rel=1e-7)
    content = json.loads(proof.read_text())
    content["bound"] *= 1.01
    proof.write_text(json.dumps(content))
    assert run_cli("verify", proof).code == 5


def test_a_time_limit_leaves_a_plan_and_its_bound(tmp_path: Path, run_cli: Run) -> None:
    scenarios = {"count": 20, "hours_per_year": 400}
    question = write(tmp_path, pools=PLANS, scenarios=scenarios, risk={"weight": 0.5})
    found = run_cli("commit", question, "-o", "json", "--time-limit", "0.001s")
    assert found.code == 0
    answer = json.loads(found.stdout)
    assert (answer["status"], answer["reason"]) == ("feasible", "time_limit")
    assert 0 <= answer["bound_usd"] <= answer["objective_usd"]
    assert any("time limit" in note for note in answer["notes"])
    table = run_cli("commit", question, "--time-limit", "0.001s").unwrapped
    assert "the time limit ended the search" in table


@pytest.mark.parametrize(
    ("usage", "message"),
    [
        ("hour,pool,instances\n0,a,two\n", r"usage.csv:2: instances: must be a number, got 'two'"),
        ("hour,pool,instances\n0,c,2\n", r"usage.csv:2: pool: no pool is called 'c'"),
        ("hour,pool,instances\n0,a,2\n", r"the history holds 1 hours \(0 whole days\)"),
    ],
)
def test_a_bad_history_is_named_with_its_line(tmp_path: Path, run_cli: Run, usage: str, message: str) -> None:
    question = write(tmp_path)
    (tmp_path / "usage.csv").write_text(usage)
    found = run_cli("commit", question)
    assert (found.code, found.stdout) == (2, "")
    assert re.search(message, found.stderr)
    assert "Traceback" not in found.stderr


def test_mistakes_in_the_question(tmp_path: Path, run_cli: Run) -> None:
    assert "no such file" in run_cli("commit", tmp_path / "none.yaml").stderr
    found = run_cli("commit", write(tmp_path, risks={"weight": 1}))
    assert found.code == 2
    assert re.search(
        r"question.yaml:\d+:1: risks: unknown key 'risks' \(did you mean 'risk'\?\)", found.stderr
    )
    found = run_cli("commit", write(tmp_path, demand={"file": "none.csv"}))
    assert (found.code, "none.csv: no such file" in found.stderr) == (2, True)


def test_a_hostile_name_steers_nothing(tmp_path: Path, run_cli: Run) -> None:
    pools = [PLANS[0] | {"name": "=cmd|'/c calc'!A0"}]
    plan = {"pool": pools[0]["name"], "instances": 4, "start": "2027-01-01", "end": "2027-12-31"}
    question = write(tmp_path, name="x\x1b[31m", pools=pools, demand={"planned": [plan]}, commitments=[])
    assert run_cli("commit", question).code in (0, 2)
    question = write(tmp_path, pools=pools, demand={"planned": [plan]}, commitments=[])
    rows = list(csv.DictReader(io.StringIO(run_cli("commit", question, "-o", "csv").stdout)))
    assert rows[0]["serves"].startswith("'=")


def test_writing_to_a_file_is_all_or_nothing(tmp_path: Path, run_cli: Run) -> None:
    question = write(tmp_path)
    assert run_cli("commit", question, "--out", tmp_path / "answer.txt").stdout == ""
    assert "\nBUY          2 commitments from " in (tmp_path / "answer.txt").read_text()
    assert run_cli("commit", question, "--out", tmp_path / "none" / "answer.txt").code == 2
