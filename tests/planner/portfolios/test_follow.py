"""Jobs that follow each other on owned machines: against every order and choice, and what is claimed."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from planner.portfolios import sequencing
from planner.portfolios.sequencing import thinned
from tests.conftest import CliResult, Run

START = datetime(2026, 12, 1, tzinfo=UTC)
RACK = "provider: onprem, region: rack, instance_type: box, purchase_option: owned"
CLOUD = "provider: aws, region: us-east-1, instance_type: p4d.24xlarge"

TUNE = """version: 1
name: tune
model: {preset: llama-3.1-8b}
training: {tokens: 2e8, global_batch: 64, sequence_length: 2048, method: lora}
data: {size: 2GB, location: aws/us-east-1}
"""


class Job:
    """A job that runs on the rack, in the cloud, or on either."""

    def __init__(self, draw: np.random.Generator, pool: int) -> None:
        self.nodes = int(draw.integers(1, pool + 1))
        self.hours: float = int(draw.integers(1, 7))
        self.rack_usd = int(draw.integers(1, 6))
        self.cloud_usd = int(draw.integers(20, 60)) if draw.random() < 0.8 else None
        self.cloud_hours = int(draw.integers(1, 5))
        self.deadline = int(draw.integers(6, 20))
        self.earliest = int(draw.choice([0, 0, 0, 2, 3]))
        self.delay = int(draw.choice([0, 0, 1]))

    def yaml(self, name: str) -> str:
        lines = [
            f"  - name: {name}",
            f"    deadline: {self.deadline}h",
            f"    delay_usd_per_hour: {self.delay}",
        ]
        if self.earliest:
            lines.append(f"    earliest_start: {(START + timedelta(hours=self.earliest)).isoformat()}")
        lines += [
            "    candidates:",
            f"      - {{{RACK}, nodes: {self.nodes}, hours: {self.hours}, cost_usd: {self.rack_usd}}}",
        ]
        if self.cloud_usd is not None:
            lines.append(
                f"      - {{{CLOUD}, nodes: 1, hours: {self.cloud_hours}, cost_usd: {self.cloud_usd}}}"
            )
        return "\n".join(lines)


def _least(jobs: list[Job], pool: int) -> float:
    """Every choice of rack or cloud, every order on the rack, each job as early as it fits: some order is best."""
    best = math.inf
    for choice in product(*[("rack", "cloud") if job.cloud_usd is not None else ("rack",) for job in jobs]):
        on_rack = [job for job, place in zip(jobs, choice, strict=True) if place == "rack"]
        cloud = 0.0
        for job, place in zip(jobs, choice, strict=True):
            if place == "cloud":
                assert job.cloud_usd is not None
                end = job.earliest + job.cloud_hours
                cloud += job.cloud_usd + job.delay * end if end <= job.deadline else math.inf
        for order in permutations(on_rack):
            best = min(best, cloud + _rack(list(order), pool))
    return best


def _rack(order: list[Job], pool: int) -> float:
    used = [0] * 100
    total = 0.0
    for job in order:
        start = next(
            at
            for at in range(job.earliest, 90)
            if all(used[h] + job.nodes <= pool for h in range(at, at + int(job.hours)))
        )
        for hour in range(start, start + int(job.hours)):
            used[hour] += job.nodes
        if start + job.hours > job.deadline:
            return math.inf
        total += job.rack_usd + job.delay * (start + job.hours)
    return total


def _plan(folder: Path, run_cli: Run, jobs: list[Job], pool: int) -> CliResult:
    text = "\n".join([
        "version: 1", "kind: portfolio", "name: turns", f"start: {START.isoformat()}", "commitments:",
        f"  - {{{RACK}, nodes: {pool}}}", "jobs:", *(job.yaml(f"j{at}") for at, job in enumerate(jobs)),
    ])  # fmt: skip
    file = folder / "jobs.yaml"
    file.write_text(text + "\n", encoding="utf-8")
    return run_cli("portfolio", str(file), "-o", "json", "--gap", "0", "--as-of", "2026-11-20")


@pytest.mark.parametrize("block", range(5))
def test_following_jobs_cost_what_the_best_order_costs(block: int, tmp_path: Path, run_cli: Run) -> None:
    for seed in range(12 * block, 12 * (block + 1)):
        draw = np.random.default_rng([seed, 5])
        pool = int(draw.integers(1, 4))
        jobs = [Job(draw, pool) for _ in range(int(draw.integers(2, 5)))]
        best = _least(jobs, pool)
        result = _plan(tmp_path, run_cli, jobs, pool)
        if math.isinf(best):
            assert result.code == 3, seed
            continue
        assert result.code == 0, (seed, best)
        found = json.loads(result.stdout)
        assert float(found["totals"]["counted_usd"]) == pytest.approx(best, abs=1e-5), seed


def test_four_jobs_take_turns_on_one_owned_machine(tmp_path: Path, run_cli: Run) -> None:
    """$1 each, one after another within 24 h; all at once three of them would rent for $100 each."""
    job = Job(np.random.default_rng(0), 1)
    job.nodes, job.hours, job.rack_usd, job.cloud_usd, job.cloud_hours = 1, 5, 1, 100, 5
    job.deadline, job.earliest, job.delay = 24, 0, 0
    found = json.loads(_plan(tmp_path, run_cli, [job] * 4, 1).stdout)
    assert float(found["totals"]["cost_usd"]) == 4.0
    assert "may also start at 3 later moments" in json.dumps(found)
    job.deadline = 14
    found = json.loads(_plan(tmp_path, run_cli, [job] * 4, 1).stdout)
    assert float(found["totals"]["cost_usd"]) == 202.0


def test_later_starts_end_where_no_job_would_be_in_time(tmp_path: Path, run_cli: Run) -> None:
    """Ten jobs of 7 to 16 h on one machine have sums up to 208 h; only those up to the latest start help."""
    jobs = []
    for at in range(10):
        job = Job(np.random.default_rng(0), 1)
        job.nodes, job.hours, job.rack_usd, job.cloud_usd, job.cloud_hours = 1, 7 + at, 1, 100, 5
        job.deadline, job.earliest, job.delay = 26, 0, 0
        jobs.append(job)
    found = json.loads(_plan(tmp_path, run_cli, jobs, 1).stdout)
    later = [window["start_hours"] for window in found["windows"]]
    assert later == [0.0, *range(7, 20)]  # of 26 h, the shortest job takes 7
    assert float(found["totals"]["cost_usd"]) == 7 * 100.0 + 3  # 7, 8 and 9 h fit one after another


def test_jobs_of_odd_lengths_take_turns(tmp_path: Path, run_cli: Run) -> None:
    """Of thousands of sums of run times, those at which one list's jobs begin are among the starts considered."""
    jobs = []
    for at in range(14):
        job = Job(np.random.default_rng(0), 1)
        job.nodes, job.rack_usd, job.cloud_usd, job.cloud_hours = 1, 1, 100, 5
        job.deadline, job.earliest, job.delay = 80, 0, 0
        job.hours = 5 + at * at / 100  # 78.19 h in all
        jobs.append(job)
    found = json.loads(_plan(tmp_path, run_cli, jobs, 1).stdout)
    assert float(found["totals"]["cost_usd"]) == 14.0
    assert len(found["windows"]) == 25
    # 35.91 h are 30.55 and 5.36, but for rounding: who ends then makes room for who begins
    (tmp_path / "answer.json").write_text(json.dumps(found), encoding="utf-8")
    verified = run_cli("verify", str(tmp_path / "answer.json"), "--workload", str(tmp_path / "jobs.yaml"))
    assert verified.code == 0, verified.stdout


def test_starts_are_thinned_evenly_and_keep_the_last() -> None:
    """By time: sums of run times crowd together late, where few jobs can still begin."""
    assert thinned([1, *range(80, 100)], 3) == [1, 80, 99]
    assert thinned([1, 2, 3, 100], 3) == [2, 3, 100]
    assert thinned([10, 97, 98, 99, 100], 4) == [10, 97, 98, 100]
    assert thinned([1, 2, 3], 3) == [1, 2, 3]
    assert thinned(list(range(100)), 4) == [24, 49, 74, 99]
    assert thinned([5, 6], 0) == []


def test_an_answer_without_later_starts_says_so(
    tmp_path: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where later starts would add too many candidates, "optimal" is about jobs that start at once."""
    monkeypatch.setattr(sequencing, "MOST_ADDED", 1)
    job = Job(np.random.default_rng(0), 1)
    job.nodes, job.hours, job.rack_usd, job.cloud_usd, job.cloud_hours = 1, 5, 1, 100, 5
    job.deadline, job.earliest, job.delay = 24, 0, 0
    found = json.loads(_plan(tmp_path, run_cli, [job] * 4, 1).stdout)
    assert float(found["totals"]["cost_usd"]) == 301.0
    assert any("a plan that runs jobs one after another may cost less" in note for note in found["notes"])


@pytest.mark.catalog("small")
def test_jobs_of_one_workload_take_turns_however_many_entries_name_it(tmp_path: Path, run_cli: Run) -> None:
    """Later starts are limited by what is to be worked out for them: once for all eighteen, not at all for `free`."""
    (tmp_path / "tune.yaml").write_text(TUNE, encoding="utf-8")
    free = TUNE.replace("training: {", "constraints: {providers: [gcp]}\ntraining: {")
    (tmp_path / "free.yaml").write_text(free, encoding="utf-8")
    names = ", ".join(["free", *(f"j{at}" for at in range(18))])
    rows = "\n".join(f"{name},{'free' if name == 'free' else 'tune'}.yaml,20d" for name in names.split(", "))
    (tmp_path / "jobs.csv").write_text(f"name,workload,deadline\n{rows}\n", encoding="utf-8")
    file = tmp_path / "jobs.yaml"
    file.write_text(
        "version: 1\nkind: portfolio\nname: turns\nstart: 2026-12-01\njobs_csv: jobs.csv\ncommitments:\n"
        "  - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, nodes: 1}\n",
        encoding="utf-8",
    )
    result = run_cli("portfolio", str(file), "-o", "json", "--as-of", "2026-11-20")
    found = json.loads(result.stdout)
    assert sum(job["owned"] for job in found["jobs"]) == 18
    assert len({job["start"] for job in found["jobs"] if job["owned"]}) == 18


def _tunes(folder: Path, tokens: list[str], jobs: int, busy: str = "") -> Path:
    """Jobs of as many workloads as there are amounts of tokens, and one machine that is paid already."""
    for at, amount in enumerate(tokens):
        (folder / f"t{at}.yaml").write_text(TUNE.replace("2e8", amount), encoding="utf-8")
    rows = "\n".join(f"j{at},t{at % len(tokens)}.yaml,20d" for at in range(jobs))
    (folder / "jobs.csv").write_text(f"name,workload,deadline\n{rows}\n", encoding="utf-8")
    file = folder / "jobs.yaml"
    file.write_text(
        "version: 1\nkind: portfolio\nname: turns\nstart: 2026-12-01\njobs_csv: jobs.csv\ncommitments:\n"
        "  - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, nodes: 1"
        f"{busy}}}\n",
        encoding="utf-8",
    )
    return file


@pytest.mark.catalog("small")
def test_jobs_of_many_workloads_take_turns_at_starts_of_their_own(tmp_path: Path, run_cli: Run) -> None:
    """Fifteen one after another need fourteen later starts; each of five workloads is built at its own three."""
    file = _tunes(tmp_path, ["1e8", "2e8", "3e8", "4e8", "5e8"], 15)
    result = run_cli("portfolio", str(file), "-o", "json", "--as-of", "2026-11-20")
    found = json.loads(result.stdout)
    assert len({job["start"] for job in found["jobs"] if job["owned"]}) == 15
    (note,) = (note for note in found["notes"] if "later moments" in note)
    assert "each workload at up to" in note
    (tmp_path / "answer.json").write_text(result.stdout, encoding="utf-8")
    assert run_cli("verify", str(tmp_path / "answer.json"), "--workload", str(file)).code == 0


@pytest.mark.catalog("small")
def test_a_workload_waits_for_a_machine_that_comes_free(tmp_path: Path, run_cli: Run) -> None:
    """Two machines of which one is busy: the second and third job begin when it comes free, or the first one ends."""
    file = _tunes(tmp_path, ["2e9"], 3, ", busy_nodes: 1, busy_until: 2026-12-02")
    text = file.read_text(encoding="utf-8").replace("nodes: 1, busy_nodes", "nodes: 2, busy_nodes")
    file.write_text(text, encoding="utf-8")
    found = json.loads(run_cli("portfolio", str(file), "-o", "json", "--as-of", "2026-11-20").stdout)
    assert all(job["owned"] for job in found["jobs"])
    assert "2026-12-02T00:00+00:00" in {job["start"] for job in found["jobs"]}, found["jobs"]
