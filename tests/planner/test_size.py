"""What a run needs of its machines: arithmetic by hand; the rules of thumb; `planner size` as a user types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.inputs.load import load_workload
from planner.workloads.size_needs import cores_for, disk_for, read_rate, storage_for, tier_of, workers_for
from planner.workloads.size_rules import VERDICTS, load_rules
from tests.conftest import CliResult

Run = Callable[..., CliResult]
DAY = ("--as-of", "2026-11-20")
RULES = {rule.rule_id: rule for rule in load_rules()}


@pytest.mark.parametrize(
    ("gb", "tier"),
    [(9.9, "small"), (10, "medium"), (99, "medium"), (100, "large"), (999, "large"), (1000, "very large")],
)
def test_tiers_begin_at_their_bound(gb: float, tier: str) -> None:
    assert tier_of(gb) == tier


@pytest.mark.parametrize(
    ("samples_per_s", "size", "gb_per_s"),
    [
        (
            400 / 0.435,
            114_660,
            0.1171,
        ),  # one A100 on ResNet-50: 920 images/s are 105.4 MB/s fed, 117 asked for
        (8 * 400 / 0.224, 114_660, 1.8200),  # eight H100
        (7 / 0.323, 146_600_628, 3.5302),  # one H100 on 3D U-Net
        (60_000, 4, 0.000267),  # tokens of a node
        (0, 114_660, 0),
    ],
)
def test_read_rates_are_those_of_the_samples(samples_per_s: float, size: float, gb_per_s: float) -> None:
    assert read_rate(samples_per_s, size) == pytest.approx(gb_per_s, rel=2e-3)


@pytest.mark.parametrize(
    ("images_per_s", "accelerators", "workers"),
    [(2470, 1, 13), (3410, 1, 18), (190, 1, 2), (191 * 2, 1, 3), (19_760, 8, 13), (0, 8, 2)],
)
def test_workers_follow_the_images(images_per_s: float, accelerators: float, workers: int) -> None:
    assert workers_for(images_per_s, accelerators) == workers


@pytest.mark.parametrize(
    ("accelerators", "nodes", "workers", "cores"),
    [(8, 1, 2, 28), (8, 1, 4, 44), (16, 2, 2, 56), (1, 1, 13, 18)],
)
def test_cores_follow_the_workers(accelerators: float, nodes: int, workers: int, cores: float) -> None:
    assert cores_for(accelerators, nodes, workers) == cores


@pytest.mark.parametrize(
    ("gb", "checkpoint", "kept", "disk"), [(147, 0.3, 2, 184.35), (100, 0, 0, 125), (0, 980, 3, 2940)]
)
def test_disk_holds_data_and_checkpoints(gb: float, checkpoint: float, kept: int, disk: float) -> None:
    assert disk_for(gb, checkpoint, kept) == pytest.approx(disk)


@pytest.mark.parametrize(
    ("gb", "nodes", "read", "local", "starts"),
    [
        (100, 1, 0.1, 1000, "object storage, copied to local NVMe"),
        (100, 1, 0.1, 0, "object storage, streamed"),
        (5000, 1, 0.1, 30_000, "object storage, copied to local NVMe"),  # a few TB need no second node
        (50_000, 4, 2.0, 30_000, "a parallel file system (managed Lustre), or shards"),
        (900, 1, 25.0, 0, "a parallel file system (managed Lustre): more than one client"),
    ],
)
def test_storage_follows_volume_and_rate(
    gb: float, nodes: int, read: float, local: float, starts: str
) -> None:
    assert storage_for(gb, nodes, read, local).startswith(starts)


@pytest.mark.parametrize("number", range(1, 57))
def test_each_rule_has_a_verdict_and_a_source(number: int) -> None:
    rule = RULES[f"R{number:02d}"]
    assert rule.verdict in VERDICTS and rule.source and rule.as_of and rule.rule
    if rule.quantity:
        bases = {"data_gb": 100.0, "data_100_gb": 1.0, "params_billion": 8.0, "accelerator_memory_gb": 320.0}
        low, high = rule.value(bases)
        assert low > 0 and (high is None or high >= low)
        assert rule.against or rule.verdict != "contradicted"


def test_rules_hold_for_their_volumes() -> None:
    assert RULES["R01"].applies(5) and not RULES["R01"].applies(10)
    assert RULES["R04"].applies(1000) and not RULES["R04"].applies(999)
    assert RULES["R16"].value({"data_gb": 100.0}) == (200.0, 300.0)
    assert RULES["R38"].value({"accelerator_memory_gb": 320.0}) == (2560.0, 5120.0)


def test_machines_for_images_with_the_rules_beside(run_cli: Run, tmp_path: Path) -> None:
    args = ("size", "--data", "100GB", "--goal", "image_classification", "--deadline", "3w", *DAY)
    written = tmp_path / "workload.yaml"
    found = json.loads(run_cli(*args, "--budget", "5000", "--write", str(written), "-o", "json").stdout)
    needs = found["needs"]
    assert needs["tier"] == "large" and needs["disk_gb"] >= 125 and found["outcome"]["status"] == "planned"
    by_id = {rule["rule_id"]: rule for rule in found["rules"]}
    assert by_id["R16"]["rule_low"] == 200 and by_id["R03"]["model"] == needs["accelerators"]
    assert (
        by_id["R06"]["rule_cost_usd"] is not None
        and by_id["R06"]["model_cost_usd"] == found["outcome"]["total_usd"]
    )
    assert float(by_id["R06"]["rule_cost_usd"]) >= float(found["outcome"]["total_usd"])
    workload = load_workload(written).workload
    assert workload.task is not None and workload.constraints.budget_usd == 5000
    table = run_cli(*args, "--budget", "5000").unwrapped
    assert "Rules that do not hold" in table and "R38 (8-16 GB of RAM per GB of GPU memory)" in table


def test_no_machines_is_exit_3(run_cli: Run) -> None:
    result = run_cli(
        "size", "--data", "1TB", "--goal", "language_model_pretraining", "--deadline", "1h", *DAY
    )
    assert (
        result.code == 3 and "No machines for" in result.stdout and "What would bring a plan" in result.stdout
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--data", "100GB", "--goal", "image_clasification"), "did you mean 'image_classification'?"),
        (("--data", "many", "--goal", "image_classification"), "data.size"),
        (("--data", "100GB", "--goal", "text_classification", "--deadline", "soon"), "is not a duration"),
    ],
)
def test_wrong_input_is_named(args: tuple[str, ...], message: str, run_cli: Run) -> None:
    result = run_cli("size", *args, *DAY)
    assert result.code == 2 and message in result.stderr and not result.stdout
