"""Jobs sized elsewhere are gathered in one table: the same candidates as each job alone has at each of its starts."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from planner.asked.options import Options
from planner.inputs.portfolio_load import load_portfolio
from planner.portfolios.gather import Gatherer
from planner.portfolios.sequencing import MOST_SUMS, start_sums, thinned
from planner.portfolios.table import CandidateTable
from tests.conftest import Run

NOW = datetime(2026, 11, 24, tzinfo=UTC)
FILE = """\
version: 1
kind: portfolio
name: jobs of every kind
start: 2026-12-01
windows: [{name: first, start: 2026-12-01}, {name: second, start: 2026-12-03}, {name: third, start: 2026-12-08}]
starts: windows
candidates_csv: ways.csv
quota: [{provider: aws, region: "*", quota: P, unit: vCPU, limit: 9000}]
commitments: [{provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, nodes: 3}]
jobs:
  - {name: plain}
  - {name: copies, count: 3, deadline: 2026-12-04, delay_usd_per_hour: 2.5}
  - {name: late, earliest_start: 2026-12-03T12:00:00Z, deadline: 5d}
  - {name: data, data: {location: aws/us-east-1, size: 2TB}}
  - {name: optional, must_run: false, value_usd: 700}
  - name: inside
    candidates: [{provider: gcp, region: us-central1, instance_type: a2-highgpu-8g, nodes: 2, hours: 30, cost_usd: 5}]
"""


def _ways(draw: np.random.Generator) -> str:
    lines = [
        "job,provider,region,instance_type,purchase_option,nodes,hours,cost_usd,usd_per_hour,family,quota_units"
    ]
    for name in ("data", "plain", "copies", "late", "optional"):
        for region in ("us-east-1", "us-west-2"):
            for option in ("on_demand", "reserved_1y"):
                nodes, hours = draw.integers(1, 4), draw.uniform(1, 100)
                paid = (
                    f"{draw.uniform(1, 900):.2f}," if draw.random() < 0.5 else f",{draw.uniform(1, 40):.2f}"
                )
                drawn = f"P,{96 * nodes}" if draw.random() < 0.5 else ","
                lines.append(f"{name},aws,{region},p4d.24xlarge,{option},{nodes},{hours:.3f},{paid},{drawn}")
    return "\n".join(lines) + "\n"


def _rows(table: CandidateTable, job: int) -> list[tuple[object, ...]]:
    own = table.take(table.job == job)
    columns = [getattr(own, field.name).tolist() for field in fields(CandidateTable) if field.name != "job"]
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_one_table_has_what_each_job_has_alone(tmp_path: Path, seed: int) -> None:
    (tmp_path / "ways.csv").write_text(_ways(np.random.default_rng(seed)), encoding="utf-8")
    (tmp_path / "jobs.yaml").write_text(FILE, encoding="utf-8")
    loaded = load_portfolio(tmp_path / "jobs.yaml")

    def no_catalog() -> None:
        raise AssertionError("nothing is asked of a catalog")

    gatherer = Gatherer(loaded, no_catalog, Options(now=NOW))  # type: ignore[arg-type]
    gathered = gatherer.gather()
    table = gathered.question.table
    assert (np.diff(table.job) >= 0).all() and len(gathered.jobs) == 8
    left = table.left_out
    assert table.job[left].tolist() == [6] and table.counted_micro_usd[left].tolist() == [700_000_000]
    starts = gatherer.start + np.array([timedelta(0), timedelta(days=2), timedelta(days=7)])
    n_starts = {
        "copies": 2,
        "late": 2,
    }  # one starts by its deadline on the 4th; the other from the 3rd, until the 6th
    for number, (name, entry) in enumerate(zip(gathered.jobs, gathered.kinds, strict=True)):
        own = name.partition("#")[0]
        begins = list(starts[: n_starts.get(own, 3)])
        if own == "late":
            begins = [gatherer.start + timedelta(days=2, hours=12)]
        alone: list[tuple[object, ...]] = []
        for begin in begins:
            alone += _rows(gatherer.candidates_of(entry, begin), 0)
        assert _rows(table.take(~left), number) == sorted(alone), name
        report = gathered.reports[entry]
        late = sum(1 for row in alone if row[9] > 0)  # type: ignore[operator]
        assert (report.name, report.total, report.passed) == (own, len(alone), len(alone) - late)


def _sums_one_by_one(base: list[int], runs: list[int], horizon: int) -> set[int]:
    sums = set(base)
    for run in runs:
        sums |= {start + run for start in sums if start + run <= horizon}
        if len(sums) > MOST_SUMS:
            sums = set(thinned(sorted(sums), MOST_SUMS // 2))
    return sums


@pytest.mark.parametrize("seed", range(8))
def test_sums_of_run_times_are_those_of_one_by_one(seed: int) -> None:
    draw = np.random.default_rng(seed)
    base = sorted({0, *draw.integers(0, 100_000, size=3).tolist()})
    runs = sorted(draw.integers(0, 10 ** int(draw.integers(2, 6)), size=30).tolist())
    horizon = int(draw.choice([0, 1_000, 100_000, 10_000_000]))
    assert start_sums(base, runs, horizon) == _sums_one_by_one(base, runs, horizon)


ALIKE = """
version: 1
kind: portfolio
name: alike
start: 2026-12-01
commitments:
  - &rack {provider: onprem, region: here, instance_type: box, purchase_option: owned, nodes: 1}
  - *rack
jobs:
  - name: tune
    count: 3
    deadline: 11h
    candidates:
      - {provider: onprem, region: here, instance_type: box, purchase_option: owned, nodes: 1, hours: 10, cost_usd: 0}
      - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, nodes: 1, hours: 10, cost_usd: 300}
"""


def test_candidates_draw_on_every_commitment_of_their_terms(run_cli: Run, tmp_path: Path) -> None:
    """Two racks bought apart hold a job each; the third job is bought."""
    file, out = tmp_path / "alike.yaml", tmp_path / "answer.json"
    file.write_text(ALIKE, encoding="utf-8")
    made = run_cli("portfolio", str(file), "--as-of", "2026-11-20", "-o", "json", "--out", str(out))
    assert made.code == 0, made.stderr
    drawn = [job["parts"][0]["commitment"] for job in json.loads(out.read_text(encoding="utf-8"))["jobs"]]
    assert sorted(map(str, drawn)) == ["None", "commitments[0]", "commitments[1]"]
    assert run_cli("verify", str(out), "--workload", str(file)).code == 0


def test_jobs_wait_for_a_commitment_all_of_which_comes_free_later(run_cli: Run, tmp_path: Path) -> None:
    """A day of delay costs less than another machine; of two racks, one is busy until then."""
    rack = "provider: onprem, region: here, instance_type: box, purchase_option: owned, nodes: 1"
    waiting = f"""
version: 1
kind: portfolio
name: waiting
start: 2026-12-01
commitments:
  - {{{rack}}}
  - {{{rack}, busy_nodes: 1, busy_until: 2026-12-02}}
jobs:
  - name: tune
    count: 2
    delay_usd_per_hour: 1
    candidates:
      - {{{rack}, hours: 40, cost_usd: 0}}
      - {{provider: aws, region: us-east-1, instance_type: p4d.24xlarge, nodes: 1, hours: 10, cost_usd: 300}}
"""
    file, out = tmp_path / "waiting.yaml", tmp_path / "answer.json"
    file.write_text(waiting, encoding="utf-8")
    made = run_cli("portfolio", str(file), "--as-of", "2026-11-20", "-o", "json", "--out", str(out))
    assert made.code == 0, made.stderr
    jobs = json.loads(out.read_text(encoding="utf-8"))["jobs"]
    begun = {job["parts"][0]["commitment"]: job["start_hours"] for job in jobs}
    assert begun == {"commitments[0]": 0.0, "commitments[1]": 24.0}
    assert run_cli("verify", str(out), "--workload", str(file)).code == 0
