"""`planner verify`: a saved plan holds, a changed one does not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_optimize import BERT, DAY, write
from tests.conftest import ROOT, Run

pytestmark = pytest.mark.catalog("small")


def planned(run_cli: Run, workload: str, target: Path, *options: str) -> dict[str, Any]:
    done = run_cli("optimize", workload, "-o", "json", "--out", str(target), *options, *DAY)
    assert done.code in (0, 3), done.stderr
    made: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return made


def test_a_plan_on_own_machines_or_owned_commitments_holds(run_cli: Run, tmp_path: Path) -> None:
    machines = (ROOT / "examples" / "onprem-machines.yaml").read_text(encoding="utf-8")
    (tmp_path / "own.yaml").write_text(machines, encoding="utf-8")
    full = machines.replace("    lifetime_years: 4", "    lifetime_years: 4\n    cost_basis: full")
    (tmp_path / "full.yaml").write_text(full, encoding="utf-8")
    owned = {"provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge", "nodes": 2}
    for changes in (
        {"prices": {"offers": ["own.yaml"]}, "constraints": {"providers": ["onprem"]}},
        {"prices": {"offers": ["full.yaml"]}, "constraints": {"providers": ["onprem"]}},
        {"commitments": [{**owned, "purchase_option": "reserved_1y"}]},
        {"prices": {"overlays": [{"change": "-8%"}]}},
    ):
        path, target = write(tmp_path, **changes), tmp_path / "plan.json"
        assert planned(run_cli, path, target)["status"] == "planned"
        done = run_cli("verify", str(target), "--workload", path)
        assert done.code == 0, done.stderr
    assert "--details stated lists them" in done.stdout and "filters[*]" not in done.stdout
    listed = run_cli("verify", str(target), "--workload", path, "--details", "stated").stdout
    assert "filters[*].removed" in listed


def test_a_plan_on_own_machines_holds_on_a_later_day(run_cli: Run, tmp_path: Path) -> None:
    machines = (ROOT / "examples" / "onprem-machines.yaml").read_text(encoding="utf-8")
    (tmp_path / "own.yaml").write_text(machines, encoding="utf-8")
    path = write(tmp_path, prices={"offers": ["own.yaml"]}, constraints={"providers": ["onprem"]})
    target = tmp_path / "plan.json"
    made = planned(run_cli, path, target)
    # the file states no day: prices are of the day that is planned for, not of the day on which a file is read
    assert "as_of" not in machines and {line["price_as_of"] for line in made["lines"]} == {DAY[-1]}
    assert run_cli("verify", str(target), "--workload", path).code == 0


def test_a_forged_full_cost_or_purchase_in_cash_is_a_fault(run_cli: Run, tmp_path: Path) -> None:
    machines = (ROOT / "examples" / "onprem-machines.yaml").read_text(encoding="utf-8")
    full = machines.replace("    lifetime_years: 4", "    lifetime_years: 4\n    cost_basis: full")
    (tmp_path / "own.yaml").write_text(full, encoding="utf-8")
    path, target = (
        write(tmp_path, prices={"offers": ["own.yaml"]}, constraints={"providers": ["onprem"]}),
        tmp_path / "plan.json",
    )
    made = planned(run_cli, path, target)
    cheaper = {**made["lines"][0], "full_usd_per_hour": "5"}
    dearer = {**made["cash"][0], "amount_usd": made["total_usd"]}
    for forged in ({"lines": [cheaper]}, {"cash": [dearer]}):
        target.write_text(json.dumps({**made, **forged}), encoding="utf-8")
        assert run_cli("verify", str(target), "--workload", path).code == 5


def test_a_plan_with_a_derived_price_holds(run_cli: Run, tmp_path: Path) -> None:
    limits = {"purchase_options": ["reserved_3y"], "allow_derived": True}
    prices = {"commitment_share": 0.01}
    path, target = write(tmp_path, constraints=limits, prices=prices), tmp_path / "plan.json"
    made = planned(run_cli, path, target)
    assert made["lines"][0]["price_basis"] == "derived"
    assert run_cli("verify", str(target), "--workload", path).code == 0


def _total(plan: dict[str, Any]) -> None:
    plan["total_usd"] = str(Decimal(plan["total_usd"]) - 1)


def _price(plan: dict[str, Any]) -> None:
    line = plan["lines"][0]
    line["price_per_hour"] = "0.01"


def _deadline(plan: dict[str, Any]) -> None:
    plan["deadline"] = "2026-11-20T01:00+00:00"


@pytest.mark.parametrize("tamper", [_total, _price, _deadline])
def test_a_changed_plan_does_not_hold(
    run_cli: Run, tmp_path: Path, tamper: Callable[[dict[str, Any]], None]
) -> None:
    target = tmp_path / "plan.json"
    made = planned(run_cli, write(tmp_path, constraints={"deadline": "3d"}), target)
    tamper(made)
    target.write_text(json.dumps(made), encoding="utf-8")
    done = run_cli("verify", str(target))
    assert (done.code, done.stderr) == (5, "")
    assert "the plan does not hold" in " ".join(done.stdout.split())  # a long path wraps the line


def test_a_plan_of_another_workload_is_named_and_checked(run_cli: Run, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    planned(run_cli, write(tmp_path), target)
    done = run_cli("verify", str(target), "--workload", str(BERT))
    assert done.code == 5
    assert "is not the workload file of this plan" in " ".join(done.stdout.split())


def test_a_plan_with_a_fall_back_is_not_of_a_workload_without_a_deadline(
    run_cli: Run, tmp_path: Path
) -> None:
    target, other = tmp_path / "plan.json", tmp_path / "other.yaml"
    assert planned(run_cli, str(BERT), target)["launch"]["strategy"] == "spot_with_fallback"
    text = Path(BERT).read_text(encoding="utf-8")
    other.write_text(re.sub(r"(?m)^  deadline: .*\n", "", text), encoding="utf-8")
    done = run_cli("verify", str(target), "--workload", str(other), "-o", "csv")
    assert done.code == 5 and "p_meet_deadline" in done.stdout


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "7", "{not json", '{"schema_version": 99, "lines": []}', "\x00\x01"]
)
def test_what_is_no_plan_is_bad_input(run_cli: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    done = run_cli("verify", str(path))
    assert (done.code, done.stdout) == (2, "")
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_folder_or_huge_plan_is_bad_input(run_cli: Run, tmp_path: Path) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(50 * 2**20)
    for path in (tmp_path / "none.json", tmp_path, huge):
        done = run_cli("verify", str(path))
        assert done.code == 2
        assert str(path) in done.stderr


def test_a_plan_made_with_set_verifies_with_the_same_set(run_cli: Run, tmp_path: Path) -> None:
    target, values = tmp_path / "plan.json", ("--set", "constraints.max_nodes=1")
    planned(run_cli, str(BERT), target, *values)
    given = ("verify", str(target), "--workload", str(BERT))
    assert run_cli(*given, *values).code == 0
    for other in ((), ("--set", "constraints.max_nodes=2")):
        done = run_cli(*given, *other)
        assert done.code == 5 and "is not the workload file of this plan" in " ".join(done.stdout.split())
    alone = run_cli("verify", str(target), *values)
    assert alone.code == 2 and "give it with --workload" in alone.stderr


def test_set_is_refused_for_an_answer_of_no_workload(run_cli: Run, tmp_path: Path) -> None:
    target = tmp_path / "schedule.json"
    target.write_text('{"schedule": {}}', encoding="utf-8")
    done = run_cli("verify", str(target), "--workload", str(BERT), "--set", "constraints.max_nodes=1")
    assert done.code == 2 and "a schedule is not made from one" in " ".join(done.stderr.split())


def test_an_infeasible_answer_has_its_exit_code(run_cli: Run, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    assert (
        planned(run_cli, write(tmp_path, constraints={"budget_usd": 0.01}), target)["status"] == "infeasible"
    )
    assert run_cli("verify", str(target)).code == 3


def test_a_default_precision_holds_where_the_machines_have_no_other(run_cli: Run, tmp_path: Path) -> None:
    training = {"tokens": "1e9", "global_batch": 256, "sequence_length": 512}
    path = write(tmp_path, training=training, constraints={"accelerators": {"allow": ["T4", "V100"]}})
    target = tmp_path / "plan.json"
    made = planned(run_cli, path, target)
    precision = next(item for item in made["assumptions"] if item["key"] == "training.precision")
    assert (made["status"], precision["value"], precision["origin"]) == ("planned", "fp16", "default")
    assert run_cli("verify", str(target), "--workload", path).code == 0
    precision["value"] = "bf16"
    target.write_text(json.dumps(made), encoding="utf-8")
    assert run_cli("verify", str(target), "--workload", path).code == 5


def test_own_machines_without_bf16_are_used_alone_in_fp16_and_named_beside_others(
    run_cli: Run, tmp_path: Path
) -> None:
    machines = (ROOT / "examples" / "onprem-machines.yaml").read_text(encoding="utf-8")
    old = machines.replace("dgx-a100", "dgx-1").replace("a100-40gb-sxm", "v100-32gb-sxm")
    (tmp_path / "own.yaml").write_text(old, encoding="utf-8")
    training = {"tokens": "1e9", "global_batch": 256, "sequence_length": 512}
    says = "dgx-1 has no bf16, so no plan uses it (training.precision: fp16 would allow it)"
    prices, target = {"offers": ["own.yaml"]}, tmp_path / "plan.json"
    beside = planned(run_cli, write(tmp_path, training=training, prices=prices), target)
    assert says in beside["warnings"]
    limits = {"purchase_options": ["owned"]}
    path = write(tmp_path, training=training, prices=prices, constraints=limits)
    alone = planned(run_cli, path, target)
    assert says not in alone["warnings"] and [line["instance_type"] for line in alone["lines"]] == ["dgx-1"]
    assert run_cli("verify", str(target), "--workload", path).code == 0


def test_a_task_on_cards_without_bf16_is_planned_in_fp16(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    wanted = {"version": 1, "name": "task", "task": {"type": "image_classification", "effort": "small"}}
    limits = {"deadline": "30d", "accelerators": {"allow": ["V100"]}}
    path.write_text(
        json.dumps({**wanted, "data": {"samples": 200_000}, "constraints": limits}), encoding="utf-8"
    )
    made = planned(run_cli, str(path), tmp_path / "plan.json")
    stated = [item["value"] for item in made["assumptions"] if item["key"] == "training.precision"]
    assert (made["status"], stated) == ("planned", ["fp16"])
    assert run_cli("verify", str(tmp_path / "plan.json"), "--workload", str(path)).code == 0


SELDOM = """version: 1
name: rl
model: {preset: llama-3.1-8b}
training:
  objective: grpo
  steps: 192
  global_batch: 2048
  stack: tuned
  rollouts:
    prompt_tokens: {mean: 150, max: 512}
    response_tokens: {mean: 870, p95: 1740, max: 3584}
    samples_per_prompt: 32
    update_batch: 512
data: {samples: 32_000, location: aws/us-east-1}
constraints:
  deadline: 13d
  max_nodes: 4
  regions: [gcp/us-west2, gcp/europe-west4]
  instance_types: {allow: [a4-highgpu-8g]}
"""


@pytest.mark.catalog("whole")
def test_checkpoints_that_are_seldom_carried_are_off_by_what_their_chance_leaves_open(
    tmp_path: Path, run_cli: Run
) -> None:
    """A fall-back in another region that one run in thousands needs: `verify` of a single plan allows for it too."""
    (tmp_path / "rl.yaml").write_text(SELDOM, encoding="utf-8")
    file, answer = tmp_path / "jobs.yaml", tmp_path / "answer.json"
    file.write_text(
        "version: 1\nkind: portfolio\nname: one\nstart: 2027-01-01\njobs:\n  - {name: rl, workload: rl.yaml}\n",
        encoding="utf-8",
    )
    made = run_cli("portfolio", str(file), "-o", "json", "--as-of", "2026-11-20", "--out", str(answer))
    assert made.code == 0, made.stderr
    (job,) = json.loads(answer.read_text(encoding="utf-8"))["jobs"]
    assert "checkpoints carried between regions" in json.dumps(job["parts"])
    verified = run_cli("verify", str(answer), "--workload", str(file))
    assert verified.code == 0, verified.stdout
