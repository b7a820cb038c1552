"""Every command answers in every format, on the examples: pages are whole, workbooks hold typed numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from openpyxl import load_workbook

from planner.cli import root
from planner.render import ANSWER_FORMATS
from tests.conftest import ROOT, Run
from tests.planner.render.markup import read_page

DAY = ("--as-of", "2026-11-20")
EXAMPLES = ROOT / "examples"
QUESTIONS: dict[str, tuple[str, ...]] = {
    "optimize": ("optimize", "bert-large.yaml", *DAY),
    "explain": ("explain", "bert-large.yaml", *DAY),
    "frontier": ("frontier", "resnet50-imagenet.yaml", *DAY),
    "whatif": ("whatif", "bert-large.yaml", "--set", "constraints.max_nodes=1", *DAY),
    "compare": ("compare", "bert-large.yaml", "--pick", "p4d.24xlarge,g5.xlarge", *DAY),
    "estimate": ("estimate", "bert-large.yaml", "--instance-type", "p4d.24xlarge"),
    "pipeline": ("pipeline", "pipeline.yaml", *DAY),
    "schedule": ("schedule", "schedule.yaml", "--gap", "5%"),
    "serving": ("serving", "serving.yaml", *DAY),
    "budget": ("budget", "budgets.yaml", "--daily", str(EXAMPLES / "daily-costs.csv")),
    "forecast": ("forecast", "--daily", str(EXAMPLES / "daily-costs.csv"), "--currency", "USD"),
    "list": ("catalog", "list", "--max-results", "3"),
    "show": ("catalog", "show", "p4d.24xlarge"),
    "history": ("catalog", "history"),
    "diff": ("catalog", "diff", "bundled", "bundled"),
}
# what answers a question that takes longer than its page
SEARCHES = {
    "optimize": "planner.workloads.answer.optimize",
    "explain": "planner.workloads.explain.explain",
    "whatif": "planner.workloads.whatif.ask_whatif",
    "compare": "planner.job.compare.compare",
    "forecast": "planner.finops.forecast.answer.forecast_scopes",
    "frontier": "planner.job.frontier.frontier",
    "pipeline": "planner.pipelines.answer.plan_pipeline",
    "schedule": "planner.schedules.answer.plan_schedule",
    "serving": "planner.serving.answer.plan_serving",
}
WITHOUT_FORMATS = {
    "schema",
    "config",
    "doctor",
    "refresh",
    "import",
    "accept",
    "keygen",
    "sign",
    "init",
    "mcp",
    "export",
}
pytestmark = pytest.mark.catalog("small")


def _commands(group: click.Group) -> dict[str, click.Command]:
    context = click.Context(group)
    found: dict[str, click.Command] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found |= _commands(command) if isinstance(command, click.Group) else {name: command}
    return found


def test_every_answer_has_every_format() -> None:
    for name, command in _commands(root).items():
        given = next((option for option in command.params if option.name == "output"), None)
        if name in WITHOUT_FORMATS or (given is None and name == "show"):
            continue
        assert given is not None and isinstance(given.type, click.Choice), name
        assert set(ANSWER_FORMATS) <= set(given.type.choices), name


@pytest.mark.parametrize("name", QUESTIONS)
def test_examples_become_pages_and_workbooks(
    name: str, run_cli: Run, tmp_path: Path, asked_once: Callable[[str], None]
) -> None:
    if name in SEARCHES:
        asked_once(SEARCHES[name])
    words = [str(EXAMPLES / word) if word.endswith(".yaml") else word for word in QUESTIONS[name]]
    page, book = tmp_path / "answer.html", tmp_path / "answer.xlsx"
    for fmt, path in (("html", page), ("xlsx", book)):
        assert run_cli(*words, "-o", fmt, "--out", str(path)).code in (0, 5), fmt
    text = page.read_text(encoding="utf-8")
    faults, _ = read_page(text)
    assert faults == []
    assert "http-equiv" in text
    assert text.count("<script") == (name == "optimize")  # a job's page has sliders
    cells = [cell for sheet in load_workbook(book) for row in sheet.iter_rows() for cell in row]
    assert all(cell.data_type != "f" for cell in cells)
    assert name == "diff" or any(isinstance(cell.value, int | float) for cell in cells)
    assert all(sheet.freeze_panes == "A2" for sheet in load_workbook(book))


def test_names_of_users_are_shown_as_words(
    run_cli: Run, tmp_path: Path, asked_once: Callable[[str], None]
) -> None:
    asked_once(SEARCHES["optimize"])
    evil = tmp_path / "w.yaml"
    source = (EXAMPLES / "resnet50-imagenet.yaml").read_text(encoding="utf-8")
    lines = [
        "name: '=<script>alert(1)</script>'" if line.startswith("name:") else line
        for line in source.splitlines()
    ]
    evil.write_text("\n".join(lines), encoding="utf-8")
    page = run_cli("optimize", str(evil), *DAY, "-o", "html").stdout
    assert page.count("<script") == 1 and "&lt;script&gt;alert" in page
    rows = run_cli("optimize", str(evil), *DAY, "-o", "csv").stdout
    assert "'=<script>" in rows
    assert json.loads(run_cli("optimize", str(evil), *DAY, "-o", "json").stdout)["workload"].startswith(
        "=<script>"
    )
