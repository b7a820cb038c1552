"""Every example loads, resolves and explains itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.inputs.load import load_workload
from planner.inputs.resolve import resolve_model, resolve_training
from planner.inputs.schema import Workload
from planner.inputs.tasks import expand_task

FOLDER = Path(__file__).parents[3] / "examples"
SCHEMA_LINE = "# yaml-language-server: $schema=../planner/data/schemas/workload.v1.json"
WORKLOADS = sorted(path for path in FOLDER.glob("*.yaml") if path.read_text().startswith(SCHEMA_LINE))


def test_there_are_enough_examples_and_each_file_is_one() -> None:
    assert len(WORKLOADS) >= 8
    # files of other kinds (portfolios, pipelines, ...) name their own schema and have their own tests
    others = {path.name for path in FOLDER.glob("*.yaml") if "$schema=" not in path.read_text()}
    named = {name for path in WORKLOADS for name in load_workload(path).workload.prices.offers}
    assert others == named


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_example_is_complete(path: Path) -> None:
    loaded = load_workload(path)
    workload = loaded.workload
    assert workload.description
    assert workload.constraints.deadline is not None
    assert workload.constraints.budget_usd is not None
    concrete: list[Workload] = [v.workload for v in expand_task(workload)] or [workload]
    for each in concrete:
        assert each.model is not None
        training = resolve_training(each, resolve_model(each.model))
        assert training.total_steps > 0
        assert training.data_bytes is not None
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    assert len(comments) >= 3, "say what the example is about"


def test_readme_lists_every_example() -> None:
    readme = (FOLDER / "README.md").read_text()
    assert [path.name for path in WORKLOADS if f"({path.name})" not in readme] == []


def test_gpt3_is_the_published_run() -> None:
    workload = load_workload(FOLDER / "gpt3-175b.yaml").workload
    training = resolve_training(workload)
    assert training.total_tokens == 300_000_000_000
    assert (training.global_batch, training.sequence_length) == (1536, 2048)
    assert workload.constraints.max_accelerators == 1024
