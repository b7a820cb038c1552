"""Mistakes in portfolios, pipelines and schedules that were planned without a word: the place and the remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run

DAY = ("--as-of", "2026-11-20")

PORTFOLIO = """\
version: 1
kind: portfolio
name: own
start: 2027-02-01
commitments:
  - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_3y, nodes: 4}
jobs:
  - name: a
    earliest_start: 2027-02-02
    deadline: 2027-02-10
    data: {location: aws/us-east-1, size: 4TB}
    candidates:
      - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_3y, nodes: 3,
         hours: 20, cost_usd: 1}
"""
PIPELINE = """\
version: 1
kind: pipeline
name: two
start: 2027-02-01
deadline: 2027-02-10
tasks:
  - name: a
    candidates: [{provider: aws, region: us-east-1, instance_type: c7i.48xlarge, nodes: 1, hours: 5, cost_usd: 9}]
  - name: b
    reads: [{task: a, size: 12TB}]
    candidates: [{provider: aws, region: us-east-1, instance_type: c7i.48xlarge, nodes: 1, hours: 5, cost_usd: 9}]
"""


@pytest.mark.parametrize(
    ("kind", "text", "old", "new", "message"),
    [
        ("portfolio", PORTFOLIO, "size: 4TB", "size: 4", "write '4GB' or '4TB'"),
        ("portfolio", PORTFOLIO, "2027-02-10", "2027-01-10", "2027-01-10 is not after the start, 2027-02-01"),
        (
            "portfolio",
            PORTFOLIO,
            "2027-02-10",
            "2027-02-01",
            "earliest_start: job 'a': is not before its deadline",
        ),
        ("portfolio", PORTFOLIO, "2027-02-10", "24h", "earliest_start: job 'a': is not before its deadline"),
        ("pipeline", PIPELINE, "size: 12TB", "size: 12", "tasks[1].reads[0].size: is 12 bytes"),
        ("pipeline", PIPELINE, "2027-02-10", "2027-01-10", "2027-01-10 is not after the start, 2027-02-01"),
    ],
)
def test_the_place_and_the_remedy_are_named(
    kind: str, text: str, old: str, new: str, message: str, tmp_path: Path, run_cli: Run
) -> None:
    file = tmp_path / f"{kind}.yaml"
    file.write_text(text, encoding="utf-8")
    assert run_cli(kind, str(file), *DAY).code == 0
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    result = run_cli(kind, str(file), *DAY)
    assert result.code == 2 and message in result.stderr, result.stderr
    assert f"{kind}.yaml:" in result.stderr


@pytest.mark.parametrize("submitted", ["2027-01-20", "1h", "36h"])
def test_a_length_of_a_deadline_counts_from_the_submission_and_never_from_before_the_start(
    submitted: str, tmp_path: Path, run_cli: Run
) -> None:
    file, rolling = tmp_path / "portfolio.yaml", ("--rolling", "1d", *DAY)
    job = PORTFOLIO.replace("deadline: 2027-02-10", f"deadline: 2d\n    submitted: {submitted}")
    file.write_text(job, encoding="utf-8")
    result = run_cli("portfolio", str(file), *rolling)
    assert result.code == 0, result.stderr
    file.write_text(job.replace("earliest_start: 2027-02-02", "earliest_start: 2027-02-05"), encoding="utf-8")
    assert (
        "earliest_start: job 'a': is not before its deadline"
        in run_cli("portfolio", str(file), *rolling).stderr
    )


def test_commitments_and_candidates_that_do_not_match_are_named(tmp_path: Path, run_cli: Run) -> None:
    """A slip in a name would let candidates draw on as many reserved machines as they like."""
    file = tmp_path / "portfolio.yaml"

    def notes(text: str) -> str:
        file.write_text(text, encoding="utf-8")
        return "\n".join(json.loads(run_cli("portfolio", str(file), *DAY, "-o", "json").stdout)["notes"])

    assert "commitment" not in notes(PORTFOLIO)
    slipped = notes(PORTFOLIO.replace("us-east-1", "us-east-l", 1))
    assert "no candidate draws on the commitment aws/us-east-l p4d.24xlarge (reserved_3y)" in slipped
    assert "as many aws/us-east-1 p4d.24xlarge (reserved_3y) as wanted are assumed" in slipped


@pytest.mark.parametrize(
    ("old", "new", "place", "close"),
    [
        ("provider: aws", "provider: AWS", "machines[0].provider", "aws"),
        ("region: us-east-1", "region: us-east-1a", "machines[0].region", "us-east-1"),
        ("instance_type: g6.xlarge", "instance_type: g6.xlarg", "machines[0].instance_type", "g6.xlarge"),
    ],
)
def test_the_name_that_the_catalog_lacks_is_the_one_that_is_marked(
    old: str, new: str, place: str, close: str, tmp_path: Path, run_cli: Run
) -> None:
    offer = "provider: aws, region: us-east-1, instance_type: g6.xlarge".replace(old, new)
    serving, commit = tmp_path / "serving.yaml", tmp_path / "commit.yaml"
    serving.write_text(
        "version: 1\nkind: serving\nname: s\nbuckets:\n  - {name: b, requests_per_s: 1}\n"
        f"machines:\n  - {{name: m, {offer}, requests_per_s: {{b: 1}}}}\n",
        encoding="utf-8",
    )
    commit.write_text(
        f"version: 1\nname: c\nstart: 2027-01-01\npools:\n  - {{name: m, {offer}}}\ndemand:\n  planned:\n"
        "    - {pool: m, instances: 1, start: 2027-01-01, end: 2027-12-31}\n",
        encoding="utf-8",
    )
    for kind, file, where in (
        ("serving", serving, place),
        ("commit", commit, place.replace("machines", "pools")),
    ):
        result = run_cli(kind, str(file), *DAY)
        assert result.code == 2 and f"{where}: " in result.stderr, result.stderr
        assert f"(did you mean '{close}'?)" in result.stderr


def test_a_provider_that_is_like_none_is_answered_with_those_that_there_are(
    tmp_path: Path, run_cli: Run
) -> None:
    file = tmp_path / "commit.yaml"
    file.write_text(
        "version: 1\nname: c\nstart: 2027-01-01\npools:\n  - {name: m, provider: neocloud, region: r,"
        " instance_type: box, prices: {on_demand: 2.0}}\ndemand:\n  planned:\n"
        "    - {pool: m, instances: 1, start: 2027-01-01, end: 2027-12-31}\n",
        encoding="utf-8",
    )
    result = run_cli("commit", str(file), *DAY)
    assert result.code == 2, result.stderr
    assert "unknown provider 'neocloud' (known: alibaba, aws, azure, gcp" in result.stderr


def test_a_price_of_zero_in_a_table_is_of_what_is_paid_already(tmp_path: Path, run_cli: Run) -> None:
    """Free machines on demand are a missing price; reserved ones may cost nothing more."""
    file, table = tmp_path / "jobs.yaml", tmp_path / "ways.csv"
    file.write_text(
        "version: 1\nkind: portfolio\nname: zero\nstart: 2027-02-01\ncandidates_csv: ways.csv\n"
        "commitments:\n  - {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, "
        "purchase_option: reserved_3y, nodes: 4}\njobs:\n  - name: a\n",
        encoding="utf-8",
    )
    header = "job,provider,region,instance_type,purchase_option,nodes,hours,cost_usd\n"
    table.write_text(f"{header}a,aws,us-east-1,p4d.24xlarge,reserved_3y,1,5,0\n", encoding="utf-8")
    assert run_cli("portfolio", str(file), *DAY).code == 0
    table.write_text(f"{header}a,aws,us-east-1,p4d.24xlarge,on_demand,1,5,0\n", encoding="utf-8")
    result = run_cli("portfolio", str(file), *DAY)
    assert result.code == 2 and "ways.csv:2: a price of 0 is none" in result.stderr
