"""`planner optimize` of batch inference: nothing is trained, and the plan says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_optimize import DAY
from tests.conftest import Run

WORKLOAD = """
version: 1
kind: inference
name: answers
model: {preset: llama-3.1-8b}
inference: {requests: 2e5, input_tokens: {mean: 900}, output_tokens: {mean: 350}}
data: {location: aws/us-east-1, size: 10GB}
constraints: {accelerators: {allow: ["a10g*"]}, regions: [aws/us-east-2]}
"""
OF_TRAINING = ("training", "evaluation", "checkpoint", "model out of", "micro-batch", "step time")


def test_a_plan_speaks_of_requests_and_results_and_evaluates_nothing(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(WORKLOAD, encoding="utf-8")
    shown = " ".join(run_cli("optimize", str(path), "--details", "all", *DAY).stdout.lower().split())
    shown, assumed, _ = shown.partition(" assumptions ")
    assert assumed and "1 replica of 1 accelerator" in shown
    assert not [word for word in OF_TRAINING if word in shown], shown
    assert "answering requests" in shown and "requests into the region" in shown


def test_evaluation_is_charged_where_the_workload_states_it(run_cli: Run, tmp_path: Path) -> None:
    path, target = tmp_path / "answers.yaml", tmp_path / "plan.json"
    path.write_text(WORKLOAD + "assumptions: {evaluation_share_ratio: 0.1}\n", encoding="utf-8")
    assert run_cli("optimize", str(path), "-o", "json", "--out", str(target), *DAY).code == 0
    plan = json.loads(target.read_text(encoding="utf-8"))
    hours = {part["id"]: part["hours"] for part in plan["timeline"]}
    assert plan["kind"] == "inference"
    assert abs(hours["evaluation"] - 0.1 * hours["training_steps"]) < 1e-9
    done = run_cli("verify", str(target), "--workload", str(path))
    assert done.code == 0, done.stdout + done.stderr


def test_a_chip_without_bf16_answers_in_fp16_and_the_judge_agrees(run_cli: Run, tmp_path: Path) -> None:
    path, target = tmp_path / "answers.yaml", tmp_path / "plan.json"
    path.write_text(WORKLOAD.replace("a10g*", "t4*").replace("llama-3.1-8b", "qwen2.5-3b"), encoding="utf-8")
    assert run_cli("optimize", str(path), "-o", "json", "--out", str(target), *DAY).code == 0
    plan = json.loads(target.read_text(encoding="utf-8"))
    assert {line["accelerator"] for line in plan["lines"]} == {"t4-16gb-pcie"}
    done = run_cli("verify", str(target), "--workload", str(path))
    assert done.code == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "machines",
    [("g5.xlarge",), ("g6.xlarge", "g5.12xlarge"), ("g6.2xlarge",)],
    ids=["fits", "several", "too small"],
)
def test_an_estimate_speaks_of_requests_replicas_and_the_engine(
    machines: tuple[str, ...], run_cli: Run, tmp_path: Path
) -> None:
    path = tmp_path / "answers.yaml"
    small = machines == ("g6.2xlarge",)
    path.write_text(WORKLOAD.replace("-8b", "-70b") if small else WORKLOAD, encoding="utf-8")
    asked = [word for name in machines for word in ("--instance-type", name)]
    shown = " ".join(run_cli("estimate", str(path), *asked, "--nodes", "1").stdout.lower().split())
    words = (
        *OF_TRAINING,
        "where the step goes",
        "zero",
        "recompute",
        "pipeline",
        "goodput",
        "hfu",
        "software stack",
    )
    assert not [word for word in words if word in shown], shown
    assert "engine vllm 2026" in shown or len(machines) > 1
    if small:
        assert "fits no" in shown and "of 22 gib by the most frugal" in shown
    else:
        assert (
            "requests/s" in shown and "output tokens/s" in shown and ("replica" in shown or len(machines) > 1)
        )


def test_an_estimate_counts_all_requests_at_its_rate(run_cli: Run, tmp_path: Path) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(WORKLOAD, encoding="utf-8")
    done = run_cli("estimate", str(path), "--instance-type", "g5.xlarge", "--nodes", "2", "-o", "json")
    (item,) = json.loads(done.stdout)["estimates"]
    made = item["answered"]
    assert (made["amount"], made["what"], item["run"], item["hfu_ratio"]) == (200_000, "requests", None, None)
    assert made["work_hours"] * 3600 * made["rate_per_s"] == pytest.approx(200_000)
    assert made["output_tokens_per_s"] == pytest.approx(350 * made["rate_per_s"])


def test_a_model_larger_than_a_machine_is_not_offered_on_two_and_told_why(
    run_cli: Run, tmp_path: Path
) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(WORKLOAD.replace("llama-3.1-8b", "deepseek-v3"), encoding="utf-8")
    done = run_cli("estimate", str(path), "--instance-type", "p5.48xlarge", "--nodes", "2")
    shown = " ".join(done.stdout.split())
    assert done.code == 3 and "the most frugal choice of replicas (each within one machine)" in shown
