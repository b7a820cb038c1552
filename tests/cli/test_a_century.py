"""Work without end, as by a slip of some zeros: every question says so, none leaves the calendar."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.cli import main

DAY = ("--as-of", "2026-11-20")
WORKLOAD = """version: 1
name: endless
model: {preset: bert-base}
training: {samples: 1e20, global_batch: 256, sequence_length: 128}
constraints: {max_nodes: 2, regions: [aws/us-east-1], instance_types: {allow: ["g5.2xlarge", "g6.2xlarge"]}}
"""
SIZED = "{provider: aws, region: us-east-1, instance_type: p4d.24xlarge, nodes: 4, hours: 870000, cost_usd: 1"
FILES = {
    "endless.yaml": WORKLOAD,
    "soon.yaml": WORKLOAD.replace("max_nodes: 2", "max_nodes: 2, deadline: 5d, budget_usd: 50"),
    "fleet.yaml": WORKLOAD.replace("version: 1", "version: 1\nkind: fleet\nfleet: {}").replace(
        "max_nodes: 2", "max_nodes: 2, min_throughput: {samples_per_s: 1}"
    ),
    "jobs.yaml": """version: 1
kind: portfolio
name: jobs
jobs: [{name: one, workload: endless.yaml, must_run: true}]
""",
    "chain.yaml": f"""version: 1
kind: pipeline
name: chain
tasks: [{{name: t0, candidates: [{SIZED}}}]}}, {
        ", ".join(
            f"{{name: t{n}, candidates: [{SIZED}}}], reads: [{{task: t{n - 1}, size: 1GB}}]}}"
            for n in range(1, 90)
        )
    }]
""",
    "turns.yaml": f"""version: 1
kind: portfolio
name: turns
commitments:
  - {{provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, nodes: 4}}
jobs: [{{name: one, count: 100, must_run: true, candidates: [{SIZED}, purchase_option: reserved_1y}}]}}]
""",
}
TOO_LONG = "would take longer than a century: check the amount of work"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("century")
    for name, text in FILES.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("optimize", "endless.yaml"), TOO_LONG),
        (("optimize", "soon.yaml"), TOO_LONG),
        (("optimize", "fleet.yaml"), TOO_LONG),
        (("explain", "endless.yaml"), TOO_LONG),
        (("frontier", "endless.yaml"), ""),
        (("compare", "endless.yaml", "--over", "type"), ""),
        (("whatif", "endless.yaml", "--set", "constraints.max_nodes=4"), ""),
        (("portfolio", "jobs.yaml"), "longer than a century"),
        (("portfolio", "turns.yaml"), ""),
        (("portfolio", "turns.yaml", "--rolling", "36500d"), "still wait after a century"),
        (("pipeline", "chain.yaml"), "plans are limited to a century"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_work_without_end_is_infeasible(
    words: tuple[str, ...], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, name, *flags = words
    assert main([command, str(folder / name), *DAY, *flags]) == 3
    told = capsys.readouterr()
    assert said in " ".join((told.out + told.err).split())


def test_the_answer_in_json_names_the_filter(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", str(folder / "endless.yaml"), *DAY, "-o", "json"]) == 3
    plan = json.loads(capsys.readouterr().out)
    assert (plan["status"], plan["lines"], plan["relaxations"]) == ("infeasible", [], [])
    assert any(count["name"] == "longest" and count["removed_only_by_this"] for count in plan["filters"])


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("turns.yaml", "hours: 870000", "hours: 1.0e+12", "hours: must be at most 876600"),
        (
            "endless.yaml",
            "max_nodes: 2,",
            'max_nodes: 2, waiting: [{purchase_option: "*", hours: 1.0e+12}],',
            "hours: must be at most 876600",
        ),
    ],
)
def test_hours_beyond_a_century_are_refused_with_the_bound(
    name: str, old: str, new: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / f"longer-{name}"
    path.write_text(FILES[name].replace(old, new), encoding="utf-8")
    assert main(["portfolio" if name == "turns.yaml" else "optimize", str(path), *DAY]) == 2
    assert said in capsys.readouterr().err
