"""`planner portfolio`, as a user types it: plans, what must give way, frontiers, certificates and bad input."""

from __future__ import annotations

import csv
import io
import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, CliResult, Run

Golden = Callable[[str, str], None]
DAY = ("--as-of", "2026-11-20")
EXAMPLE = str(ROOT / "examples" / "portfolio.yaml")
SIZED = """\
version: 1
kind: portfolio
name: tight
start: 2026-12-01
windows:
  - {name: dec, start: 2026-12-01}
  - {name: jan, start: 2027-01-01}
budget_usd: 2_000
quota:
  - {provider: aws, region: "*", quota: P, unit: vCPU, limit: 192, window: dec}
  - {provider: gcp, region: "*", quota: a2, limit: 8}
commitments:
  - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, nodes: 2,
     busy_nodes: 1}
jobs:
  - name: a
    deadline: 30h
    candidates: &ways
      - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, family: P, nodes: 1, hours: 20,
         usd_per_hour: 20, quota_units: 96}
      - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, family: own, nodes: 1, hours: 20,
         purchase_option: reserved_1y, cost_usd: 1}
      - {provider: gcp, region: us-central1, instance_type: a2-highgpu-8g, family: a2, nodes: 1, hours: 28,
         usd_per_hour: 22, quota_units: 8}
  - name: b
    count: 2
    deadline: 30h
    candidates: *ways
  - name: optional
    value_usd: 50
    candidates: *ways
"""
pytestmark = pytest.mark.catalog("small")


def plain(text: str) -> str:
    """Without what differs from run to run: seconds and the file's folder."""
    return "\n".join(line for line in text.splitlines() if "solved in" not in line) + "\n"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.yaml"
    path.write_text(SIZED, encoding="utf-8")
    return path


def with_text(path: Path, old: str, new: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("fmt", ["table", "md", "csv"])
def test_a_plan(jobs: Path, fmt: str, run_cli: Run, check_golden: Golden) -> None:
    result = run_cli("portfolio", str(jobs), "-o", fmt)
    assert result.code == 0 and not result.stderr
    check_golden(f"portfolio/plan.{fmt}", plain(result.stdout))


@pytest.mark.parametrize("fmt", ["table", "md"])
def test_what_must_give_way(jobs: Path, fmt: str, run_cli: Run, check_golden: Golden) -> None:
    result = run_cli("portfolio", with_text(jobs, "limit: 192", "limit: 90"), "-o", fmt)
    assert result.code == 3
    check_golden(f"portfolio/infeasible.{fmt}", plain(result.stdout))


def test_json_and_yaml_say_the_same_and_add_up(jobs: Path, run_cli: Run) -> None:
    found = json.loads(run_cli("portfolio", str(jobs), "-o", "json").stdout)
    other = yaml.safe_load(run_cli("portfolio", str(jobs), "-o", "yaml").stdout)
    for timed in ("seconds", "proof"):
        found_part, other_part = found.pop(timed), other.pop(timed)
        assert type(found_part) is type(other_part)
    assert found == other
    assert found["schema_version"] == 1 and found["currency"] == "USD" and found["status"] == "optimal"
    assert sum(job["cost_usd"] for job in found["jobs"]) == pytest.approx(found["totals"]["cost_usd"])
    assert all(limit["used"] <= limit["available"] for limit in found["limits"])
    assert {job["job"]: job["status"] for job in found["jobs"]}["optional"] == "left out"


def test_raising_the_limits_named_is_enough(jobs: Path, run_cli: Run) -> None:
    """The user does what the answer says, and the portfolio fits."""
    path = with_text(jobs, "limit: 192", "limit: 90")
    told = json.loads(run_cli("portfolio", path, "-o", "json").stdout)
    (change,) = told["relaxation"]["limits"]
    assert change["now"] == 90 and told["relaxation"]["budget"] is None
    again = run_cli("portfolio", with_text(jobs, "limit: 90", f"limit: {change['needed']}"), "-o", "json")
    assert again.code == 0
    assert json.loads(again.stdout)["totals"]["cost_usd"] <= told["totals"]["cost_usd"] * 1.001


def test_the_example_with_its_certificate(tmp_path: Path, run_cli: Run) -> None:
    file = tmp_path / "certificate.json"
    result = run_cli("portfolio", EXAMPLE, "-o", "json", "--certificate", str(file), *DAY)
    assert result.code == 0
    found = json.loads(result.stdout)
    assert found["totals"]["planned"] + found["totals"]["left_out"] == found["totals"]["jobs"] >= 10
    assert found["proof"]["gap_exact_ratio"] <= 1e-3
    assert found["catalog"] and all(source["sha256"] for source in found["catalog"])
    own = [limit for limit in found["limits"] if limit["kind"] == "commitment"]
    assert own and all(limit["used"] <= limit["available"] for limit in own)
    assert run_cli("verify", str(file)).code == 0
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(content | {"bound": content["bound"] + 10**6}), encoding="utf-8")
    assert run_cli("verify", str(file)).code == 5


def test_the_frontier(run_cli: Run) -> None:
    result = run_cli("portfolio", EXAMPLE, "--frontier", "5", "-o", "json", *DAY)
    assert result.code == 0
    points = json.loads(result.stdout)["points"]
    assert len(points) == 5
    for point in points:
        assert point["cost_usd"] <= point["budget_usd"] + 1e-6
        assert point["delay_bound"] <= point["delay"] * (1 + 1e-9)
    assert [point["budget_usd"] for point in points] == sorted(point["budget_usd"] for point in points)
    delays = [point["delay"] for point in points]
    assert delays == sorted(delays, reverse=True)
    told = run_cli("portfolio", EXAMPLE, "--frontier", "3", "--details", "all", *DAY).stdout
    assert "Cost against delay" in told and "adapters#1" in told


def test_jobs_and_candidates_from_csv(tmp_path: Path, run_cli: Run) -> None:
    (tmp_path / "jobs.yaml").write_text(
        "version: 1\nkind: portfolio\nname: csv\nstart: 2026-12-01\njobs_csv: j.csv\ncandidates_csv: c.csv\n"
    )
    (tmp_path / "j.csv").write_text(
        "name,deadline,value_usd,data_location,data_size\none,48h,,aws/us-east-1,2TB\ntwo,48h,900,,\n=1+1,,,,\n"
    )
    (tmp_path / "c.csv").write_text(
        "job,provider,region,instance_type,nodes,hours,cost_usd\n"
        "one,aws,us-east-1,p5.48xlarge,1,40,1000\none,gcp,us-central1,a3-highgpu-8g,1,40,950\n"
        "one,gcp,us-central1,a3-highgpu-8g,2,49,10\ntwo,aws,us-east-1,p5.48xlarge,1,40,1000\n"
        "=1+1,aws,us-east-1,p5.48xlarge,1,40,1000\n"
    )
    result = run_cli("portfolio", str(tmp_path / "jobs.yaml"), "-o", "csv")
    assert result.code == 0
    rows = {row["job"]: row for row in csv.DictReader(io.StringIO(result.stdout))}
    assert rows["one"]["provider"] == "aws"  # data gravity: the transfer costs more than the difference
    assert rows["two"]["status"] == "left out"
    assert "'=1+1" in rows  # no spreadsheet runs it


BAD = [
    ("kind: portfolio", "kind: portfolo", "kind"),
    ("budget_usd", "budget", "did you mean 'budget_usd'"),
    ("window: dec", "window: dez", "did you mean 'dec'"),
    ("hours: 28", "hours: -28", "hours"),
    ("usd_per_hour: 22", "usd_per_hour: 22, cost_usd: 5", "either cost_usd or usd_per_hour"),
    ("name: b\n", "name: a\n", "two jobs are called 'a'"),
    ("value_usd: 50", "must_run: false", "needs a value_usd"),
    ("{name: jan, start: 2027-01-01}", "{name: jan, start: 2026-01-01}", "must start after"),
    ("start: 2026-12-01\nwindows", "start: 2026-12-01\njobs_csv: no.csv\nwindows", "no such file"),
    ("    value_usd: 50\n", "    workload: no.yaml\n", "exactly one of"),
    ("count: 2", "count: 100000000", "plan them in parts"),
    ("hours: 28", "hours: 1e308", "must be at most 876600"),
    ("    value_usd: 50\n", "    delay_usd_per_hour: 1e14\n", "a delay until"),
]


@pytest.mark.parametrize(("old", "new", "expected"), BAD, ids=[item[2] for item in BAD])
def test_bad_input_names_its_place(jobs: Path, old: str, new: str, expected: str, run_cli: Run) -> None:
    result = run_cli("portfolio", with_text(jobs, old, new))
    assert result.code == 2 and not result.stdout
    assert expected in result.stderr and "jobs.yaml:" in result.stderr
    assert "Traceback" not in result.stderr


BAD_CSV = [
    ("job,provider\n", "there are no columns 'region', "),
    ("job,provider,region,instance_type,nodes,hours,costs\n", "did you mean 'cost_usd'"),
    ("job,provider,region,instance_type,nodes,hours,cost_usd\nx,aws,r,t,1,1,1\n", "not listed: 'x'"),
    ("job,provider,region,instance_type,nodes,hours,cost_usd\na,aws,r,t,1,nine,1\n", "c.csv:2: hours"),
    ("job,provider,region,instance_type,nodes,hours,cost_usd\na,aws,r,t,1,9\n", "has 6 cells"),
    ("job,provider,region,instance_type,nodes,hours,cost_usd\na,aws,r,t,1,9,-1\n", "must not be below 0"),
    ("job,provider,region,instance_type,nodes,hours,cost_usd\na,aws,r,t,1.5,9,1\n", "whole number"),
    ("job,provider,region,instance_type,nodes,hours,cost_usd\na,aws,r,t,1,inf,1\n", "hours"),
]


@pytest.mark.parametrize(("text", "expected"), BAD_CSV, ids=[item[1] for item in BAD_CSV])
def test_bad_candidates_csv(tmp_path: Path, text: str, expected: str, run_cli: Run) -> None:
    head = "version: 1\nkind: portfolio\nname: n\ncandidates_csv: c.csv\njobs: [{name: a}]\n"
    (tmp_path / "jobs.yaml").write_text(head)
    (tmp_path / "c.csv").write_text(text)
    result = run_cli("portfolio", str(tmp_path / "jobs.yaml"))
    assert result.code == 2 and expected in result.stderr


def test_an_unknown_backend_is_an_input_error(jobs: Path, run_cli: Run) -> None:
    assert run_cli("portfolio", str(jobs), "--backend", "cplex").code == 2


def test_a_limit_far_above_all_use_never_binds(jobs: Path, run_cli: Run) -> None:
    free = run_cli("portfolio", with_text(jobs, "limit: 192", "limit: 1e15"), "-o", "json")
    large = run_cli("portfolio", with_text(jobs, "limit: 1e15", "limit: 100000"), "-o", "json")
    assert free.code == large.code == 0
    assert json.loads(free.stdout)["totals"] == json.loads(large.stdout)["totals"]


def test_a_job_that_nothing_can_run_is_named_without_a_solver(jobs: Path, run_cli: Run) -> None:
    text = "  - name: huge\n    deadline: 10h\n    inline:\n"
    text += "      version: 1\n      name: huge\n      model: {preset: llama-3-8b}\n"
    text += "      training: {tokens: 1e15, global_batch: 512, sequence_length: 4096}\n"
    text += "      constraints: {regions: [aws/us-east-1], accelerators: {allow: [t4*]}}\n"
    jobs.write_text(jobs.read_text(encoding="utf-8") + text, encoding="utf-8")
    result = run_cli("portfolio", str(jobs), *DAY)
    assert result.code == 3
    assert "huge: 0 of" in result.unwrapped and "no shared limit helps" in result.unwrapped


def test_ctrl_c_gives_the_best_plan_so_far(
    run_cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from solvers.search import search

    # With all layouts of the adapters, the first bound does not settle the example: a search follows.
    example = shutil.copytree(Path(EXAMPLE).parent, tmp_path / "examples") / "portfolio.yaml"
    with_text(example.with_name("llama-70b-lora.yaml"), "training:\n", "training:\n  stack: compiled\n")

    def interrupted(*_args: object, **_named: object) -> object:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal was ignored")

    monkeypatch.setattr(search, "solve", interrupted)
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # it may have been ignored from the start
    try:
        result = run_cli("portfolio", str(example), "-o", "json", "--gap", "0", *DAY)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.code == 130 and "the answer is the best one known by then" in result.stderr
    found = json.loads(result.stdout)
    assert found["proof"]["interrupted"] and found["jobs"]
    assert found["proof"]["bound_exact_usd"] is not None


def test_a_solver_that_denies_a_plan_is_called_at_fault(
    jobs: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planner.portfolios import solve
    from solvers.backends.base import Relaxation
    from solvers.problem.solution import Termination
    from solvers.search import search

    monkeypatch.setattr(solve, "greedy_plan", lambda *_args: None)
    monkeypatch.setattr(
        search, "relax", lambda *_args, **_named: Relaxation(Termination.INFEASIBLE, message="no")
    )
    result = run_cli("portfolio", str(jobs))
    assert result.code == 1
    assert "Solver fault" in result.stdout


WAITS = """\
version: 1
kind: portfolio
name: waits
start: 2026-12-01
starts: windows
windows: [{name: w1, start: 2026-12-01}, {name: w2, start: 2026-12-03}]
quota: [{provider: aws, region: "*", quota: P, limit: 96}]
jobs:
  - name: a
    count: 2
    deadline: 5d
    candidates:
      - {provider: aws, region: us-east-1, instance_type: p4d, family: P, nodes: 1, hours: 40, cost_usd: 100,
         quota_units: 96}
      - {provider: aws, region: eu-west-1, instance_type: p5, family: X, nodes: 1, hours: 40, cost_usd: 300}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", [("2026-12-01", 100.0), ("2026-12-03", 100.0)]),  # the second waits for the quota
        ("starts: windows\n", "", [("2026-12-01", 100.0), ("2026-12-01", 300.0)]),
        ("deadline: 5d", "deadline: 3d", [("2026-12-01", 100.0), ("2026-12-01", 300.0)]),
        # a run that goes on into the second window leaves it no quota
        (
            "hours: 40, cost_usd: 100",
            "hours: 50, cost_usd: 100",
            [("2026-12-01", 100.0), ("2026-12-01", 300.0)],
        ),
    ],
)
def test_jobs_wait_for_a_window(
    tmp_path: Path, old: str, new: str, expected: list[tuple[str, float]], run_cli: Run
) -> None:
    (tmp_path / "jobs.yaml").write_text(WAITS.replace(old, new) if old else WAITS)
    found = json.loads(run_cli("portfolio", str(tmp_path / "jobs.yaml"), "-o", "json").stdout)
    assert sorted((job["start"][:10], job["cost_usd"]) for job in found["jobs"]) == expected


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a,x.yaml,two,", "j.csv:2: count: must be a whole number, got 'two'"),
        ("a,x.yaml,,cheap", "j.csv:2: delay_usd_per_hour: must be a number, got 'cheap'"),
    ],
)
def test_a_number_of_a_job_that_is_none_is_named_with_its_line(
    row: str, said: str, tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    (tmp_path / "p.yaml").write_text("version: 1\nkind: portfolio\nname: n\njobs_csv: j.csv\n")
    (tmp_path / "j.csv").write_text(f"name,workload,count,delay_usd_per_hour\n{row}\n")
    result = run_cli("portfolio", str(tmp_path / "p.yaml"))
    assert result.code == 2 and said in " ".join(result.stderr.split())
