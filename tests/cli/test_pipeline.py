"""`planner pipeline` as a user types it, with sized candidates and with the example."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import ROOT, CliResult

Run = Callable[..., CliResult]
DAY = ("--as-of", "2026-11-20")
EXAMPLE = str(ROOT / "examples" / "pipeline.yaml")
HEAD = "version: 1\nkind: pipeline\nname: two\nstart: 2026-12-01\n"
MACHINE = "instance_type: m, nodes: 1"
TASKS = f"""tasks:
  - name: a
    candidates:
      - {{provider: aws, region: us-east-1, {MACHINE}, hours: 4, cost_usd: 10}}
      - {{provider: aws, region: us-west-2, {MACHINE}, hours: 2, cost_usd: 30}}
  - name: b
    candidates:
      - {{provider: aws, region: us-east-1, {MACHINE}, hours: 4, cost_usd: 20}}
      - {{provider: aws, region: us-west-2, {MACHINE}, hours: 3, cost_usd: 12}}
    reads: [{{task: a, size: 1TB}}]
"""
pytestmark = pytest.mark.catalog("small")


def write(folder: Path, text: str) -> str:
    path = folder / "pipeline.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_data_gravity_keeps_tasks_together(tmp_path: Path, run_cli: Run) -> None:
    """10 + 12 apart pays 1 TB x $0.02 = $20 of transfer; 10 + 20 in one region is the cheapest."""
    found = json.loads(run_cli("pipeline", write(tmp_path, HEAD + TASKS), "-o", "json", *DAY).stdout)
    assert Decimal(found["total_usd"]) == 30 and found["end_hours"] == 8
    assert {task["region"] for task in found["tasks"]} == {"us-east-1"}
    small = TASKS.replace("1TB", "100GB")
    found = json.loads(run_cli("pipeline", write(tmp_path, HEAD + small), "-o", "json", *DAY).stdout)
    assert Decimal(found["total_usd"]) == 24 and Decimal(found["transfers"][0]["cost_usd"]) == 2


def test_an_impossible_deadline_names_the_least_time(tmp_path: Path, run_cli: Run) -> None:
    result = run_cli("pipeline", write(tmp_path, HEAD + "deadline: 4h\n" + TASKS), *DAY)
    assert result.code == 3
    assert (
        "no choice of the 4 candidates considered meets the deadline" in result.unwrapped
        and "deadline 4.00 h -> 5.00 h" in result.unwrapped
    )
    kept = run_cli("pipeline", write(tmp_path, HEAD + "deadline: 5h\n" + TASKS), *DAY)
    assert kept.code == 0 and "$42 expected" in kept.stdout


def test_no_plan_in_time_is_exit_code_6_and_never_infeasible(tmp_path: Path, run_cli: Run) -> None:
    """Apart by 50 TB: the fastest tasks alone fit into 9 h, with the move they do not, which takes time to prove."""
    text = (
        HEAD
        + f"""deadline: 9h
tasks:
  - name: a
    candidates: [{{provider: aws, region: us-east-1, {MACHINE}, hours: 4, cost_usd: 10}}]
  - name: b
    candidates: [{{provider: aws, region: us-west-2, {MACHINE}, hours: 4, cost_usd: 20}}]
    reads: [{{task: a, size: 50TB}}]
"""
    )
    file = write(tmp_path, text)
    hurried = run_cli("pipeline", file, "--solver", "milp", "--time-limit", "0.001", *DAY)
    assert hurried.code == 6
    assert "no plan found within 0.001 s" in hurried.stdout
    assert "longer --time-limit" in hurried.stdout
    assert "infeasible" not in hurried.stdout.lower()
    proven = run_cli("pipeline", file, "--solver", "milp", *DAY)
    assert proven.code == 3
    assert "deadline 9.00 h -> 10.8 h" in proven.stdout


def test_a_small_budget_names_the_amount_it_takes(tmp_path: Path, run_cli: Run) -> None:
    result = run_cli("pipeline", write(tmp_path, HEAD + "budget_usd: 25\n" + TASKS), *DAY)
    assert result.code == 3 and "budget $25 -> $30" in result.stdout


@pytest.mark.parametrize("solver", ["auto", "milp"])
def test_the_example_plans_in_every_format(
    solver: str, run_cli: Run, asked_once: Callable[[str], None]
) -> None:
    asked_once("planner.pipelines.answer.plan_pipeline")
    table = run_cli("pipeline", EXAMPLE, "--solver", solver, "--details", "all", *DAY)
    assert table.code == 0 and "Data between tasks" in table.stdout
    screen = run_cli("pipeline", EXAMPLE, "--solver", solver, *DAY).stdout
    cost = screen.partition("COST")[2].partition(" expected")[0].strip()
    assert f"encoder-and-adapters: {cost}, done in " in table.stdout  # the title, in the digits of the screen
    assert max(map(len, table.stdout.splitlines())) <= 100
    rows = list(
        csv.DictReader(
            io.StringIO(run_cli("pipeline", EXAMPLE, "--solver", solver, "-o", "csv", *DAY).stdout)
        )
    )
    assert [row["row"] for row in rows].count("task") == 4 and len(rows) == 9


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("task: a", "task: c", "no task 'c'"),
        ("name: b", "name: a", "two tasks are called 'a'"),
        ("size: 1TB", "size: much", "tasks[1].reads[0].size"),
        ("cost_usd: 10", "price: 10", "unknown key 'price'"),
        ("cost_usd: 10", "cost_usd: 10, usd_per_hour: 1", "needs either cost_usd or usd_per_hour"),
        ("    candidates:\n      - {provider: aws, region: us-east-1, " + MACHINE + ", hours: 4, cost_usd: 20}\n"
         "      - {provider: aws, region: us-west-2, " + MACHINE + ", hours: 3, cost_usd: 12}\n",
         "    workload: nowhere.yaml\n", "no such file: nowhere.yaml"),
    ],
)  # fmt: skip
def test_faults_name_their_place(old: str, new: str, message: str, tmp_path: Path, run_cli: Run) -> None:
    result = run_cli("pipeline", write(tmp_path, HEAD + TASKS.replace(old, new, 1)), *DAY)
    assert result.code == 2 and not result.stdout
    assert message in result.stderr and "pipeline.yaml:" in result.stderr and "Traceback" not in result.stderr


def test_a_circle_is_named(tmp_path: Path, run_cli: Run) -> None:
    text = TASKS.replace("  - name: b\n", "    reads: [{task: b, size: 1GB}]\n  - name: b\n")
    result = run_cli("pipeline", write(tmp_path, HEAD + text), *DAY)
    assert result.code == 2 and "circle" in result.stderr


def test_a_fleet_is_no_task(tmp_path: Path, run_cli: Run) -> None:
    fleet = ROOT / "examples" / "hpo-fleet.yaml"
    text = HEAD + f"tasks:\n  - {{name: a, workload: {fleet}}}\n"
    result = run_cli("pipeline", write(tmp_path, text), *DAY)
    assert result.code == 2 and "needs a workload of kind: training" in result.stderr


def test_data_of_a_task_that_reads_others_is_named_as_set_aside(tmp_path: Path, run_cli: Run) -> None:
    """Its workload says where its data lies: what it reads stands for it, which nobody sees from the cost."""
    (tmp_path / "w.yaml").write_text((ROOT / "examples" / "resnet50-imagenet.yaml").read_text())
    task = "  - {name: train, workload: w.yaml, reads: [{task: a, size: 20GB}]}\n"
    path = write(tmp_path, HEAD + TASKS.split("  - name: b")[0] + task)
    answer = tmp_path / "answer.json"
    assert run_cli("pipeline", path, "-o", "json", "--out", answer, *DAY).code == 0
    assert json.loads(answer.read_text())["data_set_aside"] == ["train"]
    assert run_cli("verify", answer, "--workload", path).code == 0
    hidden = tmp_path / "hidden.json"
    hidden.write_text(json.dumps(json.loads(answer.read_text()) | {"data_set_aside": []}))
    assert run_cli("verify", hidden, "--workload", path).code != 0
    said = "train: what it reads replaces its workload's data, which is neither transferred nor stored"
    assert said in run_cli("pipeline", path, *DAY).unwrapped
    alone = write(
        tmp_path, HEAD + TASKS.split("  - name: b")[0] + task.replace(", reads: [{task: a, size: 20GB}]", "")
    )
    assert json.loads(run_cli("pipeline", alone, "-o", "json", *DAY).stdout)["data_set_aside"] == []


def shared_quota(tmp_path: Path, reads: str, deadline: str = "") -> Path:
    """Two tasks that draw 8 GPUs of 8 each: side by side they draw 16."""
    text = (ROOT / "examples" / "resnet50-imagenet.yaml").read_text()
    limits = (
        "constraints:\n  providers: [aws]\n  regions: [us-east-1]\n  max_nodes: 1\n  purchase_options: [on_demand]\n"
        "  instance_types: {allow: [p4d.24xlarge]}\n"
        "  quota: [{provider: aws, quota: a100, unit: GPU, limit: 8}]\n"
    )
    before, _, after = text.partition("constraints:\n")
    rest = [line for line in after.splitlines() if not line.startswith((" ", "#"))]
    (tmp_path / "w.yaml").write_text(before + limits + "\n".join(rest))
    path = tmp_path / "pipeline.yaml"
    path.write_text(
        f"version: 1\nkind: pipeline\nname: p\n{deadline}tasks:\n  - {{name: one, workload: w.yaml}}\n"
        f"  - {{name: two, workload: w.yaml, reads: {reads}}}\n"
    )
    return path


@pytest.mark.parametrize(("reads", "waits"), [("[]", True), ("[{task: one, size: 1GB}]", False)])
def test_tasks_that_exceed_a_quota_together_run_one_after_the_other(
    reads: str, waits: bool, tmp_path: Path, run_cli: Run
) -> None:
    path = shared_quota(tmp_path, reads)
    assert ("waits for" in run_cli("pipeline", str(path), "-o", "md", *DAY).stdout) is waits
    result = run_cli("pipeline", str(path), "-o", "json", *DAY)
    assert result.code == 0, result.stderr
    answer = json.loads(result.stdout)
    first, second = answer["tasks"]
    assert second["start_hours"] >= first["end_hours"] - 1e-6
    assert second["waits_for"] == ([first["task"]] if waits else [])
    saved = tmp_path / "answer.json"
    saved.write_text(result.stdout)
    assert run_cli("verify", str(saved), "--workload", str(path)).code == 0
    length = second["end_hours"] - second["start_hours"]
    second |= {"waits_for": [], "start_hours": 0.0, "end_hours": length}
    saved.write_text(json.dumps(answer))
    forged = run_cli("verify", str(saved), "--workload", str(path))
    assert forged.code != 0
    assert "draw 16 at once on aws/us-east-1 a100, limit 8" in " ".join(forged.stdout.split())


def test_capacity_that_fails_to_come_too_often_is_no_candidate(tmp_path: Path, run_cli: Run) -> None:
    """8 A100 of the 256 that asking brings never come with 0.05 x 8 / 256 = 0.0016 (planner/data/waiting.csv)."""
    path = shared_quota(tmp_path, "[]")
    workload = tmp_path / "w.yaml"
    text = workload.read_text()
    for confidence, code in (("0.998", 0), ("0.999", 3)):
        limit = f"constraints:\n  deadline_confidence: {confidence}\n"
        workload.write_text(text.replace("constraints:\n", limit))
        result = run_cli("pipeline", str(path), *DAY)
        assert result.code == code, result.stderr
        assert (
            "less often than the workload's deadline_confidence" in " ".join(result.stdout.split())
        ) is bool(code)


def test_a_deadline_that_no_order_keeps_is_infeasible_and_names_the_quota(
    tmp_path: Path, run_cli: Run
) -> None:
    loose = json.loads(run_cli("pipeline", str(shared_quota(tmp_path, "[]")), "-o", "json", *DAY).stdout)
    hours = loose["end_hours"] * 0.75
    path = shared_quota(tmp_path, "[]", f"deadline: {hours:.2f}h\n")
    result = run_cli("pipeline", str(path), *DAY)
    assert result.code == 3, result.stderr
    said = " ".join(result.stdout.split())
    assert "meets the deadline and the quotas that tasks share" in said
    assert "one, two would use 16 at once of the quota aws/us-east-1 a100, limit 8" in said
