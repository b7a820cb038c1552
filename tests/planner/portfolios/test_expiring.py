"""Commitments that expire: no run outlasts them, what gives way says so, `verify` sees one that does, cost ends too."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.inputs.portfolio_load import load_portfolio
from tests.conftest import ROOT, Run

pytestmark = pytest.mark.catalog("small")
LABEL = "aws/us-east-1 p4d.24xlarge (reserved_1y)"
TEXT = """version: 1
kind: portfolio
name: expiring
start: 2026-12-01
commitments:
  - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, nodes: 4,
     usd_per_node_hour: 10, expires: 2026-12-02}
jobs:
"""
OWNED = "{provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, cost_usd: 1"
BOUGHT = "{provider: aws, region: us-east-1, instance_type: p5.48xlarge, nodes: 2, hours: 13, cost_usd: 1430}"
SHARED = f"""  - name: a
    count: 3
    candidates: [{OWNED}, nodes: 4, hours: 18}}, {OWNED}, nodes: 2, hours: 34}}, {BOUGHT}]
"""


def ask(run_cli: Run, path: Path, text: str, *options: str, code: int = 0) -> tuple[Any, Path]:
    """The answer to a portfolio, which `verify` accepts, and its file."""
    path.write_text(text, encoding="utf-8")
    target = path.with_suffix(".json")
    made = run_cli("portfolio", str(path), *options, "-o", "json", "--out", str(target))
    assert (made.code, made.stderr.count("\n")) == (code, 1)  # the line that names the file
    done = run_cli("verify", str(target), "--workload", str(path))
    assert (done.code, done.stderr) == (0, "")
    return json.loads(target.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("options", [(), ("--rolling", "6h")])
def test_no_run_outlasts_what_it_runs_on(run_cli: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Two runs of 18 h on four nodes end within 48 h, and so do two of 34 h side by side: the third job is bought."""
    answer, _ = ask(run_cli, tmp_path / "jobs.yaml", TEXT + SHARED, *options)
    longer, _ = ask(run_cli, tmp_path / "jobs.yaml", (TEXT + SHARED).replace("12-02}", "12-03}"), *options)
    ends = [(job["end"], job.get("owned", job.get("stints", [{}])[0].get("owned"))) for job in answer["jobs"]]
    assert sum(bool(owned) for _, owned in ends) == 2
    assert all(end <= "2026-12-03T00:00" for end, owned in ends if owned)
    cost = "bought_usd" if options else "cost_usd"
    assert (answer["totals"][cost], longer["totals"][cost]) == (1432.0, 3.0)


def test_the_cheapest_plan_is_that_of_all_orders(run_cli: Run, tmp_path: Path) -> None:
    """Jobs of other lengths on one node that ends after 20 h: the set that fits and saves most runs on it."""
    hours, price = (5, 7, 9, 11), (50, 60, 100, 105)
    jobs = "".join(
        f"  - {{name: j{at}, candidates: [{OWNED}, nodes: 4, hours: {own}}}, {{provider: aws, region: us-east-1, "
        f"instance_type: p5.48xlarge, nodes: 1, hours: 2, cost_usd: {usd}}}]}}\n"
        for at, (own, usd) in enumerate(zip(hours, price, strict=True))
    )
    text = TEXT.replace("2026-12-02}", '"2026-12-01T20:00"}')
    answer, _ = ask(run_cli, tmp_path / "jobs.yaml", text + jobs)
    sets = itertools.product((False, True), repeat=len(hours))
    fitting = [one for one in sets if sum(itertools.compress(hours, one)) <= 20]
    least = min(sum(1 if own else usd for own, usd in zip(one, price, strict=True)) for one in fitting)
    assert answer["totals"]["cost_usd"] == least


def test_what_gives_way_is_the_end_of_the_commitment(run_cli: Run, tmp_path: Path) -> None:
    path, only = tmp_path / "jobs.yaml", f"  - {{name: b, candidates: [{OWNED}, nodes: 2, hours: 50}}]}}\n"
    answer, _ = ask(run_cli, path, TEXT + only, code=3)
    assert answer["relaxation"]["limits"] == [
        {"limit": f"{LABEL} after 2026-12-02", "window": "", "unit": "nodes", "now": 0, "needed": 2}
    ]
    assert f"Change that makes one possible: {LABEL} after 2026-12-02 0 -> 2 nodes" in " ".join(
        run_cli("portfolio", str(path)).stdout.split()
    )
    rolling, _ = ask(run_cli, path, TEXT + only, "--rolling", "6h", code=3)
    assert rolling["jobs"][0]["status"] == "never started"


def test_a_workload_runs_on_it_only_where_it_ends_in_time(run_cli: Run, tmp_path: Path) -> None:
    job = {"name": "w", "workload": str(Path("examples/llama-70b-lora.yaml").resolve())}
    text = TEXT + f"  - {json.dumps(job)}\n"
    for expires, owned in (("2026-12-02", True), ('"2026-12-01T12:00"', False)):
        one = text.replace("expires: 2026-12-02", f"expires: {expires}")
        answer, _ = ask(run_cli, tmp_path / "jobs.yaml", one, "--as-of", "2026-11-20")
        assert answer["jobs"][0]["owned"] is owned


@pytest.mark.parametrize("options", [(), ("--rolling", "6h")])
def test_what_a_slow_run_pays_after_the_end_is_in_the_cost_of_its_job(
    run_cli: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    example = Path("examples/llama-70b-lora.yaml").resolve()
    text = TEXT + f"  - {json.dumps({'name': 'w', 'workload': str(example)})}\n"
    costs = []
    for end in ("2027-12-02", '"2026-12-02T00:30"'):
        one = text.replace("expires: 2026-12-02", f"expires: {end}")
        answer, _ = ask(run_cli, tmp_path / "jobs.yaml", one, "--as-of", "2026-11-20", *options)
        job = answer["jobs"][0]
        assert job.get("owned", job.get("stints", [{}])[0].get("owned"))
        costs.append((answer["totals"]["bought_usd" if options else "cost_usd"], job))
    assert costs[0][0] < costs[1][0]


def test_of_equal_terms_each_job_pays_after_the_end_of_its_own(run_cli: Run, tmp_path: Path) -> None:
    """Two jobs at once on two commitments that differ in their ends alone: only one of them pays after an end."""
    example = Path("examples/llama-70b-lora.yaml").resolve()
    jobs = "".join(
        f"  - {json.dumps({'name': name, 'workload': str(example), 'deadline': '40h'})}\n" for name in "ab"
    )
    soon = TEXT.split("commitments:\n")[1].split("jobs:")[0]
    both = soon.replace("expires: 2026-12-02", 'expires: "2026-12-02T00:30"') + soon.replace(
        "2026-12-02", "2027-12-02"
    )
    text = TEXT.replace(soon, both) + jobs
    answer, _ = ask(run_cli, tmp_path / "jobs.yaml", text, "--as-of", "2026-11-20")
    used = {
        part["commitment"]: sum(
            float(line["amount_usd"]) for line in part["lines"] if line["kind"] == "after_end"
        )
        for job in answer["jobs"]
        for part in job["parts"]
    }
    assert set(used) == {"commitments[0]", "commitments[1]"}
    assert used["commitments[0]"] > 0 == used["commitments[1]"]


@pytest.mark.parametrize("options", [(), ("--rolling", "6h")])
def test_one_that_is_over_before_the_start_is_named(
    run_cli: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """A year that is misspelt left it out without a word; moments of another zone are shown in UTC."""
    path, text = tmp_path / "jobs.yaml", TEXT + SHARED
    over, _ = ask(run_cli, path, text.replace("expires: 2026-12-02", "expires: 2025-12-02"), *options)
    assert f"the commitment {LABEL} expires before the start, 2026-12-01" in " ".join(over["notes"])
    zone, _ = ask(run_cli, path, text.replace("2026-12-02}", '"2026-12-03T05:30+05:30"}'), *options)
    assert "expires before" not in " ".join(zone["notes"])
    assert options or f"{LABEL} after 2026-12-03 00:00" in [one["limit"] for one in zone["limits"]]


def test_what_is_owned_costs_until_it_expires(run_cli: Run, tmp_path: Path) -> None:
    late = f"  - {{name: c, submitted: 5d, candidates: [{BOUGHT}]}}\n"
    answer, target = ask(run_cli, tmp_path / "jobs.yaml", TEXT + SHARED + late, "--rolling", "6h")
    assert answer["totals"]["period_hours"] == 120
    assert answer["totals"]["owned_usd"] == pytest.approx(4 * 48 * 10)
    assert answer["totals"]["utilisation_ratio"] == pytest.approx(2 * 34 * 2 / (4 * 48))
    answer["totals"]["owned_usd"] = 4 * 120 * 10.0
    target.write_text(json.dumps(answer), encoding="utf-8")
    assert run_cli("verify", str(target), "--workload", str(tmp_path / "jobs.yaml")).code == 5


@pytest.mark.parametrize("options", [(), ("--rolling", "6h")])
def test_a_run_that_outlasts_it_is_detected(run_cli: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    """The answer to the same question with a later end is no answer to this one, nor with its rows made to fit."""
    path = tmp_path / "jobs.yaml"
    later = (TEXT + SHARED).replace("12-02}", "12-03}")
    answer, target = ask(run_cli, path, later, *options)
    path.write_text(TEXT + SHARED, encoding="utf-8")
    sha = ask(run_cli, tmp_path / "other.yaml", TEXT + SHARED, *options)[0]["sha256"]
    forged = copy.deepcopy(answer) | {"sha256": sha}
    for row in forged["limits"]:
        row["limit"] = row["limit"].replace("12-03", "12-02")
    target.write_text(json.dumps(forged), encoding="utf-8")
    done = run_cli("verify", str(target), "--workload", str(path))
    assert done.code == 5
    told = f"after {LABEL} expires" if options else f"limits[{len(forged['limits']) - 1}].used"
    assert told in done.unwrapped


@pytest.mark.parametrize("key", ["ends", "until", "expiry", "term"])
def test_other_words_for_it_are_named(run_cli: Run, tmp_path: Path, key: str) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text((TEXT + SHARED).replace("expires", key), encoding="utf-8")
    done = run_cli("portfolio", str(path))
    assert done.code == 2
    assert f"unknown key '{key}' (did you mean 'expires'?)" in done.stderr


def test_a_job_with_commitments_of_its_own_is_sent_to_those_of_the_portfolio(tmp_path: Path) -> None:
    job = (ROOT / "examples" / "owned-top-up.yaml").read_text(encoding="utf-8")
    (tmp_path / "job.yaml").write_text(job, encoding="utf-8")
    text = "version: 1\nkind: portfolio\nname: p\njobs:\n  - {name: a, workload: job.yaml}\n"
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"job 'a' has `commitments` of its own: write them once"):
        load_portfolio(tmp_path / "p.yaml")
