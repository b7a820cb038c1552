"""Frontiers, serving fleets and schedules are recomputed: real answers hold, a change of any field is caught."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forgeries import Forger, passes, texts_of
from benchmarks.fuzz import SMALLER, example_with
from benchmarks.instances.answers import (
    EXAMPLES,
    PORTFOLIOS,
    Saved,
    changed,
    commits,
    fleets_that_serve,
    frontiers,
    pipelines,
    portfolio_frontiers,
    portfolios,
    schedules,
)
from tests.conftest import Run
from tests.planner.judge.tampering import changes_of, uncaught

PIPELINE = EXAMPLES.parent / "tests" / "fixtures" / "pipeline-with-one-workload.yaml"
KINDS: dict[str, Callable[[], Iterator[Saved]]] = {
    "frontier": partial(frontiers, ("owned-top-up",)), "serving": partial(fleets_that_serve, ("serving-llama-8b",)),
    "schedule": schedules, "pipeline": partial(pipelines, (0.95,), PIPELINE),
    **{name: partial(portfolios, (name,)) for name in PORTFOLIOS},
    "portfolio frontier": portfolio_frontiers, "commit": partial(commits, ("commitments of given futures",)),
}  # fmt: skip
pytestmark = pytest.mark.catalog("small")


@pytest.fixture(scope="module", params=sorted(KINDS))
def saved(request: pytest.FixtureRequest) -> Saved:
    (found,) = KINDS[request.param]()
    return found


def test_an_answer_holds_and_every_leaf_is_checked_or_stated(saved: Saved) -> None:
    assert saved.judge(saved.answer) == []


def test_every_field_that_is_not_stated_is_caught_when_it_changes(saved: Saved) -> None:
    assert uncaught(saved, changes_of(saved, texts_of([saved]), one_per_field=True)) == []


def test_random_forgeries_are_caught(saved: Saved) -> None:
    forger, rng = Forger(saved.answer, saved.stated, texts_of([saved])), random.Random(3)
    drawn = [forger.draw(rng) for _ in range(15)]  # `python -m benchmarks.forgeries` draws thousands
    assert [one.where for one in drawn if one is not None and passes(saved, one.answer)] == []


@pytest.mark.parametrize(("command", "example"), [("serving", "serving"), ("schedule", "schedule")])
def test_the_command_takes_the_question(run_cli: Run, tmp_path: Path, command: str, example: str) -> None:
    target, question = tmp_path / "answer.json", str(EXAMPLES / f"{example}.yaml")
    assert run_cli(command, question, "-o", "json", "--out", str(target)).code == 0
    done = run_cli("verify", str(target), "--workload", question)
    assert (done.code, done.stderr) == (0, "")
    assert run_cli("verify", str(target)).code == 2
    made = json.loads(target.read_text(encoding="utf-8"))
    made["proof"]["gap_ratio"] = 0.5
    target.write_text(json.dumps(made), encoding="utf-8")
    assert run_cli("verify", str(target), "--workload", question).code == 5


@pytest.mark.parametrize("example", ["serving", "serving-llama-8b"])
def test_a_fleet_that_is_left_out_is_missed(run_cli: Run, tmp_path: Path, example: str) -> None:
    target, question = tmp_path / "answer.json", str(EXAMPLES / f"{example}.yaml")
    assert run_cli("serving", question, "-o", "json", "--out", str(target)).code == 0
    target.write_text(json.dumps({**json.loads(target.read_text()), "machines": []}), encoding="utf-8")
    done = run_cli("verify", str(target), "--workload", question)
    assert done.code == 5
    assert "none, though a fleet is said to be found" in done.unwrapped


WINDOWS = """
version: 1
kind: portfolio
name: windows
start: 2026-12-01
starts: windows
windows: [{name: first, start: 2026-12-01}, {name: second, start: 2026-12-02}]
quota: [{provider: aws, region: "*", quota: p4d, limit: 3, window: first}]
commitments:
  - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, nodes: 2,
     busy_nodes: 1, busy_until: 2026-12-01T12:00}
  - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, nodes: 2}
candidates_csv: ways.csv
jobs:
  - {name: a, count: 2, delay_usd_per_hour: 0.5}
  - {name: b, earliest_start: 2026-12-02T06:00, deadline: 60h, data: {location: gcp/us-east1, size: 2TB}}
"""
WAYS = """job,provider,region,instance_type,family,purchase_option,nodes,hours,cost_usd,usd_per_hour,quota_units
a,aws,us-west-2,p4d.24xlarge,p4d,on_demand,2,7.123456,,21.5,
a,aws,us-east-1,p4d.24xlarge,p4d,reserved_1y,2,7.2,1,,
b,aws,us-west-2,p4d.24xlarge,p4d,on_demand,1,14,290,,3
"""


def test_windows_and_candidates_of_a_csv_file(run_cli: Run, tmp_path: Path) -> None:
    question, target = tmp_path / "jobs.yaml", tmp_path / "answer.json"
    question.write_text(WINDOWS, encoding="utf-8")
    (tmp_path / "ways.csv").write_text(WAYS, encoding="utf-8")
    made = run_cli("portfolio", str(question), "-o", "json", "--out", str(target))
    assert (made.code, made.stderr.count("\n")) == (0, 1)  # the line that names the file
    done = run_cli("verify", str(target), "--workload", str(question))
    assert (done.code, done.stderr) == (0, "")
    answer = json.loads(target.read_text(encoding="utf-8"))
    assert {job["start_hours"] for job in answer["jobs"]} > {24.0}  # some wait for the second window

    def told(change: Callable[[Any], None]) -> str:
        forged = copy.deepcopy(answer)
        change(forged)
        target.write_text(json.dumps(forged), encoding="utf-8")
        result = run_cli("verify", str(target), "--workload", str(question), "-o", "json")
        assert result.code == 5
        return str(json.loads(result.stdout)["faults"])

    for field, value in (("unit", []), ("kind", None), ("window", 5)):
        forged = copy.deepcopy(answer)
        forged["limits"][0][field] = value
        target.write_text(json.dumps(forged), encoding="utf-8")
        refused = run_cli("verify", str(target), "--workload", str(question))
        assert refused.code in (2, 5) and "Traceback" not in refused.stderr
    # two commitments of equal terms: what a job draws on is told by its place in the file
    drawn = [part["commitment"] for job in answer["jobs"] for part in job["parts"]]
    at = drawn.index("commitments[1]")
    assert drawn.count("commitments[1]") > 0 and None in drawn
    moved = told(lambda one: one["jobs"][at]["parts"][0].update(commitment="commitments[0]"))
    assert "limits" in moved
    assert "neither its earliest start" in told(lambda one: one["jobs"][0].update(start_hours=1.0))
    assert "a window is missing" in told(lambda one: one["limits"].pop())
    quotas = [(limit["limit"], limit["window"]) for limit in answer["limits"] if limit["kind"] == "quota"]
    assert quotas == [("aws/us-east-1 p4d", "first")]  # none in us-west-2, where nothing draws on it
    assert "drawn on, but not listed" in told(lambda one: one["limits"].pop(0))
    unused = {**answer["limits"][0], "limit": "aws/us-west-2 p4d", "used": 0}
    assert "limits" in told(lambda one: one["limits"].insert(1, unused))
    assert "more than there is" in told(lambda one: one["limits"][0].update(used=4))
    assert "not every job" in told(lambda one: one["jobs"].pop())


def test_a_job_on_records_of_ones_own_names_what_is_not_recomputed(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "seen.csv").write_text(
        "time,zone,provider,instance_type,gang,available\n2026-02-01T00:00Z,us-east-2a,aws,p3.2xlarge,2,1\n",
        encoding="utf-8",
    )
    changed("bert-large", {"spot": {"evidence": ["seen.csv"]}}, tmp_path).rename(tmp_path / "own.yaml")
    question, target = tmp_path / "jobs.yaml", tmp_path / "answer.json"
    job = "{name: encoder, workload: own.yaml, deadline: 200h}"
    question.write_text(
        f"version: 1\nkind: portfolio\nname: own\nstart: 2026-12-01\njobs:\n  - {job}\n", encoding="utf-8"
    )
    made = run_cli("portfolio", str(question), "-o", "json", "--out", str(target))
    assert (made.code, made.stderr.count("\n")) == (0, 1)  # the line that names the file
    done = run_cli("verify", str(target), "--workload", str(question), "-o", "json")
    left = json.loads(done.stdout)["not_recomputed"]
    assert done.code == 0
    assert (
        "spot records" in str(left) and "jobs[*].cost_usd" in str(left) and "jobs[*].nodes" not in str(left)
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (WAYS.replace("nodes", "knots"), ":1: unknown column 'knots'"),
        (f"{WAYS}a,aws\n", ":5: has 2 cells"),
        ("job,provider\ra\n", ":1: cannot be read as CSV"),
        (None, ": no such file"),
    ],
)
def test_a_broken_file_of_candidates_is_refused_by_its_line(
    run_cli: Run, tmp_path: Path, text: str | None, says: str
) -> None:
    """The judge's own reader ended in an internal error, for a missing column, a short row or another line end."""
    question, target, ways = tmp_path / "jobs.yaml", tmp_path / "answer.json", tmp_path / "ways.csv"
    question.write_text(WINDOWS, encoding="utf-8")
    ways.write_text(WAYS, encoding="utf-8")
    assert run_cli("portfolio", str(question), "-o", "json", "--out", str(target)).code == 0
    if text is None:
        ways.unlink()
    else:
        ways.write_text(text, encoding="utf-8", newline="")
    done = run_cli("verify", str(target), "--workload", str(question))
    assert done.code == 2
    assert f"{ways}{says}" in done.stderr


def test_a_broken_history_of_a_commitment_plan_is_refused_by_its_line(run_cli: Run, tmp_path: Path) -> None:
    """A pool that the question has not, and a short row, ended in internal errors."""
    question, target, usage = (
        tmp_path / "commit.yaml",
        tmp_path / "answer.json",
        tmp_path / "commit-usage.csv",
    )
    question.write_text(example_with("commit", SMALLER["commit"]), encoding="utf-8")
    lines = (EXAMPLES / "commit-usage.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    whole = "".join(lines[: 1 + 3 * 48])
    usage.write_text(whole, encoding="utf-8")
    day = ("--as-of", "2026-11-20", "--no-regret")
    assert run_cli("commit", str(question), *day, "-o", "json", "--out", str(target)).code == 0
    for more, says in (
        ("2026-10-20T00:00Z,zz,3\n", "no pool is called 'zz'"),
        ("2026-10-20T00:00Z\n", "has not the 3 cells"),
    ):
        usage.write_text(whole + more, encoding="utf-8")
        done = run_cli("verify", str(target), "--workload", str(question))
        assert done.code == 2
        assert f"{usage}:146" in done.stderr and says in done.stderr
