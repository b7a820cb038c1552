"""What a run needs of its machines: arithmetic by hand; the rules of thumb; `planner size` as a user types it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from catalogs.store.load import load_catalog
from catalogs.tables.accelerators import load_accelerators
from planner.bundled import DATA
from planner.inputs.load import load_workload
from planner.inputs.tasks import load_tasks, nearest_tasks
from planner.workloads.size_alternatives import alternatives_to, with_memory
from planner.workloads.size_needs import (
    disk_for,
    read_rate,
    threads_per_core,
    tier_of,
    vcpus_for,
    workers_for,
)
from planner.workloads.size_rules import VERDICTS, load_facts, load_rules
from tests.conftest import Run

DAY = ("--as-of", "2026-11-20")
# bases of rules, and what a run has for them to be compared with
BASES = {
    "data_gb": 100.0, "data_100_gb": 1.0, "params_billion": 8.0, "accelerator_memory_gb": 320.0, "accelerators_4": 1.0,
}  # fmt: skip
MODEL = {
    "accelerators", "cores", "ram_gb", "disk_gb", "read_gb_per_s", "network_gbps", "device_memory_gb", "nodes",
    "loading_ratio", "workers",
}  # fmt: skip
RULES = {rule.rule_id: rule for rule in load_rules()}
pytestmark = pytest.mark.catalog("small")


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
def test_vcpus_follow_the_workers(accelerators: float, nodes: int, workers: int, cores: float) -> None:
    assert vcpus_for(accelerators, nodes, workers) == cores


@pytest.mark.parametrize(
    ("gb", "checkpoint", "kept", "disk"), [(147, 0.3, 2, 184.35), (100, 0, 0, 125), (0, 980, 3, 2940)]
)
def test_disk_holds_data_and_checkpoints(gb: float, checkpoint: float, kept: int, disk: float) -> None:
    assert disk_for(gb, checkpoint, kept) == pytest.approx(disk)


@pytest.mark.parametrize("number", range(1, 57))
def test_each_rule_has_a_verdict_and_a_source(number: int) -> None:
    """Each is evaluated for a run, or beside a fact, or says why neither can be."""
    rule = RULES[f"R{number:02d}"]
    assert rule.verdict in VERDICTS and rule.source and rule.as_of and rule.rule
    assert bool(rule.quantity) is not bool(rule.reason)
    if not rule.quantity:
        return
    low, high = rule.value(BASES)
    assert high is None or high >= low
    if rule.is_published:
        assert load_facts()[rule.quantity].source
    else:
        assert rule.quantity in MODEL and rule.basis in {*BASES, "fixed"}
        assert rule.against or rule.verdict != "contradicted"


def test_how_many_rules_are_told() -> None:
    told = [rule for rule in RULES.values() if rule.quantity]
    assert (len(RULES), len(told), sum(rule.is_published for rule in told)) == (56, 44, 16)


@pytest.mark.parametrize("name", load_facts())
def test_facts_with_arithmetic_are_its_result(name: str) -> None:
    fact = load_facts()[name]
    assert fact.words and fact.unit and fact.source and fact.as_of
    if fact.arithmetic:
        assert re.fullmatch(r"[0-9e. */+()-]+", fact.arithmetic)
        assert eval(fact.arithmetic, {"__builtins__": {}}) == pytest.approx(fact.value, rel=5e-3)


def test_facts_of_hardware_are_those_of_the_catalog() -> None:
    table = load_accelerators()
    row = {str(name): at for at, name in enumerate(table["accelerator"])}

    def of(name: str, column: str) -> float:
        return float(table[column][row[name]])

    facts = {name: fact.value for name, fact in load_facts().items()}
    assert facts["v100_link_gb_per_s"] == of("v100-16gb-sxm", "link_gb_per_s")
    assert facts["h100_link_gb_per_s"] == of("h100-80gb-sxm", "link_gb_per_s")
    assert facts["h100_memory_tb_per_s"] * 1000 == of("h100-80gb-sxm", "memory_gb_per_s")
    assert facts["four_a100_tflops"] == 4 * of("a100-80gb-sxm", "bf16_tflops")


@pytest.mark.parametrize(
    ("place", "hours", "usd", "fits"),
    [
        # 100 h on an H100 of 989 TFLOPS: 989 / 71, / 165.2, / 312 and / 125 of it; rent: hours x price
        ("RTX 3090 in a workstation", 1393, (1070, 2199), "yes"),
        ("RTX 4090 in a workstation", 599, (1599, 1599), "yes"),
        ("Colab with an A100", 317, (414.6, 414.6), "yes"),
        ("Colab with a V100", 791, (424.1, 424.1), "no: 20 of 15.2 GiB"),
    ],
)
def test_a_run_elsewhere_is_as_long_as_peaks_say(
    place: str, hours: float, usd: tuple[float, float], fits: str
) -> None:
    found = {one.name: one for one in alternatives_to("h100-80gb-sxm", 100.0, 20.0)}[place]
    assert found.hours_low == pytest.approx(hours, rel=1e-3) and found.fits == fits
    assert (found.usd_low, found.usd_high) == pytest.approx(usd, rel=1e-3)
    assert found.source and found.as_of


def test_accelerators_are_told_by_their_memory() -> None:
    large = with_memory(80)
    assert "h100-80gb-sxm" in large and "a100-40gb-sxm" not in large and not with_memory(10_000)


def test_cpus_are_a_range_without_a_price() -> None:
    """100 h x 989 / 312 on an A100, and 10 to 120 times that; the catalog has no machine without accelerators."""
    cpus = {one.name: one for one in alternatives_to("h100-80gb-sxm", 100.0, 20.0)}["CPUs alone"]
    assert (cpus.hours_low, cpus.hours_high) == pytest.approx((3170, 38_038), rel=1e-3)
    assert cpus.usd_low is None and "no price" in cpus.said
    unknown = alternatives_to("nobody-knows", 100.0, None)
    assert all(one.hours_low is None and one.fits == "" for one in unknown)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("train an LLM from scratch", {"language_model_pretraining"}),
        ("llm", {"text_finetuning", "language_model_pretraining"}),
        ("classify photos", {"image_classification"}),
        ("finetune stable diffusion", {"image_generation_finetuning"}),
        ("sentiment analysis", {"text_classification"}),
        ("weather", set()),
    ],
)
def test_a_goal_in_other_words_names_the_tasks_it_may_mean(written: str, meant: set[str]) -> None:
    assert set(nearest_tasks(written)) == meant


def test_words_of_tasks_are_of_tasks() -> None:
    with (DATA / "task_words.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["word"] for row in rows}) == len(rows)
    assert {task for row in rows for task in row["tasks"].split()} <= set(load_tasks())


def test_rules_hold_for_their_volumes_and_goals() -> None:
    assert RULES["R33"].applies(100, "image_classification") and not RULES["R33"].applies(
        100, "text_finetuning"
    )
    assert RULES["R05"].applies(1000) and not RULES["R05"].applies(999)
    assert RULES["R01"].applies(5) and not RULES["R01"].applies(10)
    assert RULES["R04"].applies(1000) and not RULES["R04"].applies(999)
    assert RULES["R16"].value({"data_gb": 100.0}) == (200.0, 300.0)
    assert RULES["R38"].value({"accelerator_memory_gb": 320.0}) == (2560.0, 5120.0)


def test_a_run_elsewhere_has_all_that_the_plan_counts_but_its_stops(run_cli: Run, tmp_path: Path) -> None:
    """Steps, evaluation and what comes beside them: 1.38 times the steps, as in the hours that stand next to it."""
    written = tmp_path / "workload.yaml"
    args = ("size", "--data", "100GB", "--goal", "image_classification", *DAY, "--write", str(written))
    found = json.loads(run_cli(*args, "-o", "json").stdout)
    plan = json.loads(run_cli("optimize", str(written), *DAY, "-o", "json").stdout)
    hours = {part["id"]: part["hours"] for part in plan["timeline"]}
    work = sum(hours[part] for part in ("training_steps", "evaluation", "beside_steps"))
    assert (
        found["work_hours"] == pytest.approx(work) and work < 0.5 * found["outcome"]["hours"]
    )  # it waits for spot
    shown = run_cli(*args).stdout
    assert re.search(r"HOURS AT WORK .*\nthis plan +([\d.]+)", shown)[1] == f"{work:.2f}"  # type: ignore[index]
    line = plan["lines"][0]
    devices = work * line["nodes"] * line["accelerators_per_node"]
    elsewhere = alternatives_to(line["accelerator"], devices, found["needs"]["device_memory_gib"])
    assert [one["hours_low"] for one in found["beside"]] == pytest.approx(
        [one.hours_low for one in elsewhere]
    )


def test_machines_for_images_with_the_rules_beside(
    run_cli: Run, tmp_path: Path, asked_once: Callable[[str], None]
) -> None:
    asked_once("planner.workloads.size.size_workload")  # one answer in three formats
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
    assert by_id["R10"]["rule_cost_usd"] == found["outcome"]["total_usd"]  # its machines have the memory
    assert by_id["R48"]["model"] == 33.9 and by_id["R48"]["rule_low"] == 30.4
    assert len(found["rules"]) + len(found["rules_undetermined"]) == 56
    assert all(rule["reason"] for rule in found["rules_undetermined"])
    asked = run_cli(*args, "--budget", "5000").stdout
    assert len(asked.splitlines()) <= 34 and "RTX 4090" in asked
    words = " ".join(asked.split())
    notes = words.partition("BEFORE YOU RELY ON IT")[2].partition(" 37 of 56")[0].split(" ! ")
    refuted = re.fullmatch(
        r"(\d+) published rules of thumb do not hold for this run: --details refuted shows why", notes[2]
    )
    assert refuted and len(notes) == 3, notes
    running = found["needs"]["ram_gb"] - 1.2 * 100.0  # a cache of the data, processes and loader workers
    assert 0.0 < running < 2.0 * found["needs"]["accelerators"] * 20.0
    details = run_cli(*args, "--budget", "5000", "--details", "refuted").unwrapped
    rules = re.split(r" (?=R\d\d \()", details.partition("Rules that do not hold")[2])[1:]
    assert len(rules) == int(refuted[1]) > 3 and all("Instead: " in rule for rule in rules), rules
    ram = next(rule for rule in rules if rule.startswith("R38 (8-16 GB of RAM per GB of GPU memory): "))
    assert f"{needs['ram_gb']:.0f} needed" in ram and "GB of RAM" in ram


def test_above_a_terabyte_the_choice_of_nodes_and_file_system_is_said(run_cli: Run) -> None:
    args = ("size", "--data", "2TB", "--goal", "text_finetuning", "--effort", "small", *DAY)
    shown = run_cli(*args)
    assert shown.code == 0
    text = shown.unwrapped
    assert "ABOVE 1 TB more nodes follow from compute and deadline" in text and "parallel file system" in text


def test_no_machines_is_exit_3(run_cli: Run) -> None:
    result = run_cli(
        "size", "--data", "1TB", "--goal", "language_model_pretraining", "--deadline", "1h", *DAY
    )
    assert result.code == 3 and "No machines for" in result.unwrapped and "INSTEAD" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--data", "100GB", "--goal", "image_clasification"), "did you mean 'image_classification'?"),
        (("--data", "100GB", "--goal", "fine-tune llm"), "did you mean 'text_finetuning'?"),
        (("--data", "100GB", "--goal", "regression"), "known: image_classification, "),
        (("--data", "many", "--goal", "image_classification"), "--data many: is not a size"),
        (("--data", "100GB", "--goal", "text_classification", "--deadline", "soon"), "is not a duration"),
    ],
)
def test_wrong_input_is_named(args: tuple[str, ...], message: str, run_cli: Run) -> None:
    result = run_cli("size", *args, *DAY)
    assert result.code == 2 and message in result.stderr and not result.stdout


@pytest.mark.parametrize(
    ("provider", "instance_type", "threads"),
    [("aws", "g6.xlarge", 2), ("aws", "g5g.metal", 1), ("aws", "g6e.48xlarge", 2), ("aws", "g7.48xlarge", 1),
     ("aws", "p9.48xlarge", None), ("gcp", "g6.xlarge", None)],
)  # fmt: skip
def test_threads_of_a_core_are_known_or_not(provider: str, instance_type: str, threads: int | None) -> None:
    assert threads_per_core(provider, instance_type) == threads


@pytest.mark.catalog("whole")
def test_threads_of_a_core_are_of_machines_of_the_catalog() -> None:
    """Every pattern fits a machine, but those of which the catalog has no price."""
    types = load_catalog().instance_types
    known = set(zip(types["provider"].tolist(), types["instance_type"].tolist(), strict=True))
    with (DATA / "threads_per_core.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    fits = [
        any(p == row["provider"] and fnmatchcase(t, row["instance_type"]) for p, t in known) for row in rows
    ]
    assert sum(fits) >= 8 and all(
        int(row["threads"]) in (1, 2) and row["source"] and row["as_of"] for row in rows
    )


def test_rules_on_cores_are_held_against_cores(run_cli: Run, asked_once: Callable[[str], None]) -> None:
    """vCPUs over threads: rules R15 and R37 ask for 16 to 32 cores, of two vCPUs each where nothing else is known."""
    asked_once("planner.workloads.size.size_workload")
    args = ("size", "--data", "100GB", "--goal", "image_classification", "--deadline", "3w", *DAY)
    asked = (*args, "--budget", "5000")
    answer = json.loads(run_cli(*asked, "-o", "json").stdout)
    rules = {rule["rule_id"]: rule for rule in answer["rules"]}
    threads = answer["machines_have"]["threads_per_core"] or 2.0
    for name in ("R15", "R37"):
        assert rules[name]["quantity"] == "cores" and (rules[name]["low"], rules[name]["high"]) == (16, 32)
        assert rules[name]["model"] == pytest.approx(answer["needs"]["vcpus"] / threads)
    said = run_cli(*asked, "--details", "rules").unwrapped
    assert f"vCPUs, {threads:g} to a core" in said
    assert ("is not known" in said) is (answer["machines_have"]["threads_per_core"] == 0)
