"""Machines that are paid for cost nothing more, and places that are misspelt are named, wherever they are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run

pytestmark = pytest.mark.catalog("small")
DAY = ("--as-of", "2026-11-20")
WORKLOAD = """\
version: 1
name: own
model: {preset: bert-base}
training: {samples: 1e6, global_batch: 256, sequence_length: 128}
constraints: {deadline: 7d}
prices: {offers: [own.yaml]}
"""
MACHINE = """\
version: 1
machines:
  - instance_type: our-box
    accelerator: a100-40gb-sxm
    accelerator_count: 8
    vcpus: 96
    memory_gib: 1024
    nodes: 2
    price_per_hour: 0
"""
PORTFOLIO = """\
version: 1
kind: portfolio
name: two
start: 2027-02-01
commitments: [{provider: berlin, region: hall, instance_type: box, purchase_option: owned, nodes: 2}]
jobs:
  - name: a
    deadline: 5d
    candidates:
      - {provider: berlin, region: hall, instance_type: box, purchase_option: owned, nodes: 2, hours: 40, cost_usd: 0}
      - {provider: aws, region: us-east-1, instance_type: p5.48xlarge, nodes: 2, hours: 20, usd_per_hour: 55}
"""
PIPELINE = """\
version: 1
kind: pipeline
name: one
start: 2027-02-01
tasks:
  - name: a
    candidates:
      - {provider: berlin, region: hall, instance_type: box, purchase_option: owned, nodes: 1, hours: 4,
         usd_per_hour: 0}
      - {provider: aws, region: us-east-1, instance_type: p5.48xlarge, nodes: 2, hours: 2, usd_per_hour: 55}
"""
KINDS = {"portfolio": PORTFOLIO, "pipeline": PIPELINE}


def write(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return str(tmp_path / name)


def test_an_owned_machine_may_cost_nothing_more(tmp_path: Path, run_cli: Run) -> None:
    file, plan = write(tmp_path, "w.yaml", WORKLOAD), str(tmp_path / "plan.json")
    write(tmp_path, "own.yaml", MACHINE)
    assert run_cli("optimize", file, *DAY, "-o", "json", "--out", plan).code == 0
    found = json.loads(Path(plan).read_text(encoding="utf-8"))
    assert [line["instance_type"] for line in found["lines"]] == ["our-box"]
    costs = [cost for cost in found["lines"][0]["costs"] if cost["id"] == "compute"]
    assert [float(cost["amount_usd"]) for cost in costs] == [0.0]
    assert run_cli("verify", plan, "--workload", file).code == 0
    for command in ("frontier", "explain"):
        assert "our-box" in run_cli(command, file, *DAY).stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "price_per_hour: 0",
            "price_per_hour: 0\n    purchase_option: on_demand",
            "only a machine that is owned",
        ),
        ("price_per_hour: 0", "price_per_hour:", "the machine has no price"),
        ("price_per_hour: 0", "power_kw: 6\n    usd_per_kwh: 0", "price_per_hour: 0 if nothing is to count"),
    ],
)
def test_a_price_that_is_missing_is_not_zero(
    old: str, new: str, message: str, tmp_path: Path, run_cli: Run
) -> None:
    file = write(tmp_path, "w.yaml", WORKLOAD)
    write(tmp_path, "own.yaml", MACHINE.replace(old, new))
    result = run_cli("optimize", file, *DAY)
    assert result.code == 2 and message in result.stderr and "own.yaml:" in result.stderr, result.stderr


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_sized_candidates_that_are_paid_already_may_cost_nothing(
    kind: str, tmp_path: Path, run_cli: Run
) -> None:
    file, saved = write(tmp_path, "f.yaml", KINDS[kind]), str(tmp_path / "answer.json")
    result = run_cli(kind, file, *DAY, "-o", "json", "--out", saved)
    assert result.code == 0, result.stderr
    answer = json.loads(Path(saved).read_text(encoding="utf-8"))
    assert float(answer["totals"]["cost_usd"] if kind == "portfolio" else answer["total_usd"]) == 0.0
    assert run_cli("verify", saved, "--workload", file).code == 0
    write(tmp_path, "f.yaml", KINDS[kind].replace("usd_per_hour: 55", "usd_per_hour: 0"))
    result = run_cli(kind, file, *DAY)
    assert result.code == 2 and "candidates[1].usd_per_hour: a price of 0 is none" in result.stderr


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("provider: aws, region: us-eats-1", "candidates[1].region: no region of aws called 'us-eats-1'"),
        (
            "provider: asw, region: us-east-1",
            "candidates[1].provider: no provider called 'asw' in the catalog",
        ),
        ("provider: AWS, region: us-east-1", "(did you mean 'aws'?)"),
    ],
)
def test_misspelt_places_of_candidates_are_named(
    kind: str, new: str, message: str, tmp_path: Path, run_cli: Run
) -> None:
    file = write(tmp_path, "f.yaml", KINDS[kind].replace("provider: aws, region: us-east-1", new))
    for command in (kind, "validate"):
        result = run_cli(command, file, *DAY)
        assert result.code == 2 and message in result.stderr and "f.yaml:" in result.stderr, result.stderr


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "p5.48xlarge",
            "p5.48xlage",
            "no aws machine called p5.48xlage in the catalog: is p5.48xlarge meant?",
        ),
        ("provider: aws", "provider: acme", "treated as your own providers: acme"),
        ("p5.48xlarge", "p6.48xlarge", ""),
        ("p5.48xlarge", "m7i.large", ""),
    ],
)
def test_names_of_candidates_that_the_catalog_does_not_have_are_noted(
    kind: str, old: str, new: str, said: str, tmp_path: Path, run_cli: Run
) -> None:
    result = run_cli(kind, write(tmp_path, "f.yaml", KINDS[kind].replace(old, new)), *DAY)
    assert result.code == 0, result.stderr
    if said:
        assert said in result.unwrapped
    else:
        assert "in the catalog" not in result.unwrapped


@pytest.mark.parametrize(
    "place", ["provider: aws-outposts, region: fra1", "provider: aws, region: us-east-9"]
)
def test_places_of_ones_own_and_newer_regions_are_taken(place: str, tmp_path: Path, run_cli: Run) -> None:
    text = PORTFOLIO.replace("provider: aws, region: us-east-1", place)
    assert run_cli("portfolio", write(tmp_path, "f.yaml", text), *DAY).code == 0


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("azur/westeurope", "data.location: 'azur/westeurope' is not a place"),
        ("aws/us-eats-1", "no region called 'aws/us-eats-1' in the catalog (did you mean 'aws/us-east-1'?)"),
        ("berlin/hall", ""),
        ("onprem", ""),
    ],
)
def test_the_place_of_a_jobs_data_is_checked(
    location: str, message: str, tmp_path: Path, run_cli: Run
) -> None:
    data = f"deadline: 5d\n    data: {{location: {location}, size: 1TB}}"
    result = run_cli("portfolio", write(tmp_path, "f.yaml", PORTFOLIO.replace("deadline: 5d", data)), *DAY)
    assert result.code == (2 if message else 0) and message in result.stderr, result.stderr


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "a,aws,us-eats-1,p4d.24xlarge,on_demand,2,5,9",
            "ways.csv:3: region: no region of aws called 'us-eats-1'",
        ),
        (
            "a,gpc,us-east1,a2,on_demand,2,5,9",
            "ways.csv:3: provider: no provider called 'gpc' in the catalog",
        ),
        (
            "a,aws,us-east-1,p4d.24xlarge,on_demnd,2,5,9",
            "ways.csv:3: purchase_option: there is no 'on_demnd'",
        ),
    ],
)
def test_a_table_of_candidates_is_checked_alike(row: str, message: str, tmp_path: Path, run_cli: Run) -> None:
    header = "job,provider,region,instance_type,purchase_option,nodes,hours,usd_per_hour"
    write(tmp_path, "ways.csv", f"{header}\na,aws,us-east-1,p4d.24xlarge,spot,2,5,9\n{row}\n")
    text = "version: 1\nkind: portfolio\nname: p\ncandidates_csv: ways.csv\njobs: [{name: a}]\n"
    result = run_cli("portfolio", write(tmp_path, "f.yaml", text), *DAY)
    assert result.code == 2 and message in result.stderr and "did you mean" in result.stderr, result.stderr
