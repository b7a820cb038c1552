"""`planner estimate`: speed, memory and limits of clusters the user names."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalogs.store.load import load_catalog
from planner.estimation.report_rows import COLUMNS, PARTS
from tests.cli.test_optimize import example, write
from tests.conftest import ROOT, Run
from tests.schema_check import schema_faults

LLAMA, RESNET, GPT3 = example("llama-3-8b"), example("resnet50-imagenet"), example("gpt3-175b")
SCHEMA = json.loads((ROOT / "planner/data/schemas/estimate.v1.json").read_text())


def ask(run_cli: Run, *args: str, code: int = 0) -> Any:
    done = run_cli("estimate", *args, "-o", "json")
    assert (done.code, done.stderr) == (code, "")
    answer = json.loads(done.stdout)
    assert schema_faults(answer, SCHEMA) == []
    return answer


def test_an_estimate_adds_up(run_cli: Run) -> None:
    (one,) = ask(run_cli, LLAMA, "--instance-type", "p4d.24xlarge", "--nodes", "4")["estimates"]
    assert one["throughput_low_per_s"] < one["throughput_per_s"] < one["throughput_high_per_s"]
    assert one["throughput_per_s"] * one["step_time_s"] == pytest.approx(512 * 8192)
    assert one["throughput_per_accelerator_per_s"] * 32 == pytest.approx(one["throughput_per_s"])
    assert sum(one["breakdown_s"].values()) == pytest.approx(one["step_time_s"])
    assert set(one["breakdown_s"]) == set(PARTS)
    memory = one["memory"]
    assert sum(memory["parts_gib"].values()) == pytest.approx(memory["needed_gib"])
    assert memory["needed_gib"] + memory["free_gib"] == pytest.approx(memory["usable_gib"])
    assert 0 <= memory["oom_ratio"] < 0.5
    assert 0 < one["mfu_ratio"] <= one["hfu_ratio"] < 1
    layout = one["layout"]
    shard = layout["tensor_parallel"] * layout["pipeline_parallel"] * layout["context_parallel"]
    assert shard * layout["data_parallel"] == 32
    assert layout["data_parallel"] * layout["micro_batch"] * layout["grad_accumulation"] == 512
    assert [item["step_time_over_best_ratio"] >= 0 for item in one["other_layouts"]] == [True] * 3


def test_sizes_that_nobody_stated_are_warned_of(run_cli: Run, tmp_path: Path) -> None:
    for preset, said in (
        ("dit-xl-2", "images of 256 px assumed (model.image_size)"),
        ("llama-3.1-8b", "sequences of 8,192 tokens assumed (training.sequence_length)"),
    ):
        asked = write(tmp_path, model={"preset": preset}, training={"samples": 1e6, "global_batch": 64})
        assert said in ask(run_cli, asked, "--instance-type", "p5.48xlarge")["warnings"]


def test_an_estimate_of_a_fleet_says_that_it_is_of_one_run(run_cli: Run, tmp_path: Path) -> None:
    def warned(runs: int) -> list[str]:
        asked = write(tmp_path, kind="fleet", fleet={"runs": runs})
        warnings: list[str] = ask(run_cli, asked, "--instance-type", "p5.48xlarge")["warnings"]
        return warnings

    assert "hours and cost are of one of 200 runs: planner optimize plans them all" in warned(200)
    assert not any("runs" in text for text in warned(1))


def test_replicas_that_do_not_divide_an_update_are_named(run_cli: Run, tmp_path: Path) -> None:
    lengths = {"mean": 400, "max": 1024}
    rollouts = {
        "prompt_tokens": lengths,
        "response_tokens": lengths,
        "samples_per_prompt": 4,
        "update_batch": 4,
    }
    training = {"objective": "grpo", "steps": 10, "global_batch": 64, "rollouts": rollouts}
    path = write(tmp_path, model={"preset": "llama-3.2-1b"}, training=training)
    done = run_cli("estimate", path, "--instance-type", "p5.48xlarge", "--layout", "tp=1,pp=1,cp=1")
    assert done.code == 2
    assert "8 data-parallel replicas do not divide the 4 responses of an update" in done.stderr


def test_cost_is_price_by_hours_where_it_is_cheapest(run_cli: Run) -> None:
    (one,) = ask(run_cli, LLAMA, "--instance-type", "p4d.24xlarge", "--nodes", "4")["estimates"]
    prices, run = one["prices"], one["run"]
    steady, spot = prices["steady"], prices["spot"]
    rows = [
        row for row in load_catalog(None).offers.rows()
        if (row["provider"], row["instance_type"]) == ("aws", "p4d.24xlarge") and not row["flags"]
    ]  # fmt: skip
    for offer, option in ((steady, "on_demand"), (spot, "spot")):
        known = [Decimal(row["price_per_hour"]) for row in rows if row["purchase_option"] == option]
        assert offer["usd_per_hour"] == pytest.approx(float(min(known)))
        assert offer["cluster_usd_per_hour"] == pytest.approx(4 * offer["usd_per_hour"])
        assert offer["as_of"] and offer["source"] and offer["basis"]
    for end in ("", "_low", "_high"):
        assert prices[f"run{end}_usd"] == pytest.approx(
            steady["cluster_usd_per_hour"] * run[f"wall_hours{end}"], abs=0.01
        )


def test_prices_keep_to_the_workloads_places_and_options(run_cli: Run) -> None:
    cluster = (LLAMA, "--instance-type", "p4d.24xlarge", "--nodes", "4")
    (one,) = ask(run_cli, *cluster, "--set", "constraints.regions=['us-west-2']")["estimates"]
    assert {one["prices"]["steady"]["region"], one["prices"]["spot"]["region"]} == {"us-west-2"}
    (one,) = ask(run_cli, *cluster, "--set", "constraints.purchase_options=[spot]")["estimates"]
    assert one["prices"]["steady"] is None and one["prices"]["run_usd"] is None and one["prices"]["spot"]
    done = run_cli("estimate", *cluster, "--set", "constraints.regions=[eu-south-9]")
    assert done.code == 0 and "no price in the catalog within the workload's places" in done.stdout


def test_own_machines_cost_what_their_file_says(run_cli: Run) -> None:
    (one,) = ask(run_cli, example("onprem-comparison"), "--instance-type", "dgx-a100")["estimates"]
    assert one["prices"]["steady"]["option"] == "owned" and one["prices"]["spot"] is None
    assert one["prices"]["run_usd"] > 0


@pytest.mark.parametrize("form", ["table", "csv", "yaml", "md", "html"])
def test_every_format_says_what_a_cluster_costs(run_cli: Run, form: str) -> None:
    done = run_cli("estimate", LLAMA, "--instance-type", "p4d.24xlarge", "--nodes", "4", "-o", form)
    assert done.code == 0 and re.search(r"87\.83|21\.957", done.stdout) and "2026-07" in done.stdout


def test_pinned_parts_are_kept_and_never_faster_than_the_free_choice(run_cli: Run) -> None:
    (free,) = ask(run_cli, LLAMA, "--instance-type", "p4d.24xlarge", "--nodes", "4")["estimates"]
    text = "tp=4,pp=2,micro_batch=1,zero=1,recompute=full"
    (one,) = ask(run_cli, LLAMA, "--instance-type", "p4d.24xlarge", "--nodes", "4", "--layout", text)[
        "estimates"
    ]
    layout = one["layout"]
    kept = (
        layout["tensor_parallel"],
        layout["pipeline_parallel"],
        layout["micro_batch"],
        layout["zero_stage"],
    )
    assert (kept, layout["recompute"]) == ((4, 2, 1, 1), "full")
    assert one["step_time_s"] >= free["step_time_s"]
    assert one["hfu_ratio"] == pytest.approx(one["mfu_ratio"] * 4 / 3)


def test_text_says_what_matters_within_the_width_and_in_ascii_where_asked(run_process: Run) -> None:
    done = run_process(
        "estimate", LLAMA, "--instance-type", "p4d.24xlarge", "--nodes", "4", "--details", "all"
    )
    assert done.code == 0
    for words in ("tokens/s (80 %:", "per accelerator", "MFU, HFU", "Where the step goes", "█", "Memory of the fullest",
                  "probability of running out", "Next best layouts", "accelerators busy", "host memory",
                  "software stack", "learned factor", "planner calibrate"):  # fmt: skip
        assert words in done.stdout, words
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    assert "\x1b" not in done.stdout
    plain = run_process(
        "estimate",
        LLAMA,
        "--instance-type",
        "p4d.24xlarge",
        "--nodes",
        "4",
        "--details",
        "all",
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert plain.stdout.isascii() and "####" in plain.stdout and "\\u" not in plain.stdout


def test_clusters_are_compared_in_the_order_asked(run_cli: Run) -> None:
    args = (
        RESNET,
        "--instance-type",
        "g5.12xlarge",
        "--instance-type",
        "p3.2xlarge",
        "--nodes",
        "1",
        "--nodes",
        "2",
    )
    found = ask(run_cli, *args)["estimates"]
    asked = [(item["instance_type"], item["nodes"]) for item in found]
    assert asked == [("g5.12xlarge", 1), ("g5.12xlarge", 2), ("p3.2xlarge", 1), ("p3.2xlarge", 2)]
    text = run_cli("estimate", *args, "--details", "all")
    assert "fastest of 4 is" in text.stdout and "Clusters" in text.stdout and "Layouts" in text.stdout
    rows = list(csv.DictReader(io.StringIO(run_cli("estimate", *args, "-o", "csv").stdout)))
    assert [row["nodes"] for row in rows] == ["1", "2", "1", "2"]
    assert tuple(rows[0]) == COLUMNS
    assert float(rows[0]["throughput_per_s"]) == pytest.approx(found[0]["throughput_per_s"])
    assert yaml.safe_load(run_cli("estimate", *args, "-o", "yaml").stdout)["estimates"] == found
    assert "| 1 x g5.12xlarge |" in run_cli("estimate", *args, "-o", "md").stdout


def test_a_short_run_is_nearly_all_start_up(run_cli: Run, tmp_path: Path) -> None:
    def note(steps: int) -> str:
        file = write(tmp_path, training={"steps": steps, "global_batch": 256, "sequence_length": 128})
        text = " ".join(run_cli("estimate", file, "--instance-type", "p4d.24xlarge").stdout.split())
        return text[text.index("whole run:") :]

    assert re.search(r"^whole run: training steps 0[0-9.]+ h \(0 %\), start-up >99 %", note(20))
    long = note(20_000_000).partition(" !")[0]
    assert re.search(r"h \(7\d %\), evaluation 1 %, beside the steps 26 %, checkpoints", long)
    assert "start-up" not in long


def test_slow_data_break_the_rule_and_unknown_data_are_not_checked(run_cli: Run, tmp_path: Path) -> None:
    (slow,) = ask(run_cli, RESNET, "--instance-type", "p4d.24xlarge")["estimates"]
    loading = slow["data_loading"]
    assert loading["passes"] is (loading["share_ratio"] < 0.2 and loading["busy_ratio"] > 0.7)
    assert slow["limited_by"] == "data_loading" and loading["passes"] is False
    assert "data loading takes" in run_cli("estimate", RESNET, "--instance-type", "p4d.24xlarge").stdout
    path = write(tmp_path, model={"preset": "resnet-50"}, training={"samples": 1e6, "global_batch": 256})
    (unknown,) = ask(run_cli, path, "--instance-type", "p4d.24xlarge")["estimates"]
    assert unknown["data_loading"]["passes"] is None
    assert "not checked" in run_cli("estimate", path, "--instance-type", "p4d.24xlarge").stdout


def test_what_does_not_fit_says_how_much_is_missing_and_what_would(run_cli: Run) -> None:
    (one,) = ask(run_cli, GPT3, "--instance-type", "p4d.24xlarge", "--nodes", "8", code=3)["estimates"]
    assert not one["fits"] and one["throughput_per_s"] is None and one["layout"] is None
    assert one["memory"]["needed_gib"] > one["memory"]["allowed_gib"]
    near = one["nearest_fit"]
    assert near["nodes"] > 8
    (there,) = ask(run_cli, GPT3, "--instance-type", "p4d.24xlarge", "--nodes", str(near["nodes"]), "--layout",
                   f"tp={near['layout']['tensor_parallel']},pp={near['layout']['pipeline_parallel']},"
                   f"micro_batch={near['layout']['micro_batch']}")["estimates"]  # fmt: skip
    assert there["fits"]
    text = run_cli("estimate", GPT3, "--instance-type", "p4d.24xlarge", "--nodes", "8")
    assert (text.code, text.stderr) == (3, "")
    assert "by the most frugal layout" in text.unwrapped and "INSTEAD" in text.stdout


def test_a_layout_that_only_may_fit_says_how_likely_it_fails_and_what_would_accept_it(
    run_cli: Run, tmp_path: Path
) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(
        "version: 1\nname: q\nmodel: {preset: llama-3.1-70b}\ntraining: {samples: 1e4, global_batch: 16,"
        " sequence_length: 1024, method: qlora, objective: sft, optimizer: paged_adamw_8bit}\n"
    )
    refused = run_cli("estimate", path, "--instance-type", "gpu_1x_a6000")
    found = re.search(
        r"risk of running out: \d+ % \(training\.memory\.confidence: ([\d.]+) accepts", refused.unwrapped
    )
    assert refused.code == 3 and found is not None
    accepting = ("--set", f"training.memory.confidence={found[1]}")
    assert run_cli("estimate", path, "--instance-type", "gpu_1x_a6000", *accepting).code == 0


def test_what_fits_with_weights_in_host_memory_says_so_where_the_host_holds_them(
    run_cli: Run, tmp_path: Path
) -> None:
    """QLoRA of 70 B parameters on 2 x 24 GB (FSDP with its weights on the host does the same)."""
    path = tmp_path / "w.yaml"
    path.write_text(
        "version: 1\nname: q\nmodel: {preset: llama-3.1-70b}\ntraining: {samples: 1e4, global_batch: 16,"
        " sequence_length: 1024, method: qlora, objective: sft, precision: bf16}\n"
    )
    refused = run_cli("estimate", path, "--instance-type", "g5.8xlarge", "--nodes", "2")
    assert refused.code == 3
    assert "training.memory: {offload_weights: true}" in refused.unwrapped
    # half of 70 B weights of 4.5 bits, tables in 16: as much as the machine with 16 GiB has in all
    assert re.search(r"and (18|19|20)(\.\d)? GiB of each node's 128", refused.unwrapped)
    assert (
        "offload_weights"
        not in run_cli("estimate", path, "--instance-type", "g5.xlarge", "--nodes", "2").stdout
    )
    stated = ("--set", "training.memory={offload_weights: true}")
    assert run_cli("estimate", path, "--instance-type", "g5.8xlarge", "--nodes", "2", *stated).code == 0


def test_the_fewest_pins_are_released(run_cli: Run) -> None:
    pins = ("--layout", "zero=0,tp=1,pp=1,cp=1")
    (one,) = ask(run_cli, LLAMA, "--instance-type", "p4d.24xlarge", *pins, code=3)["estimates"]
    near = one["nearest_fit"]
    assert near["nodes"] == 1 and len(near["released"]) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--instance-type", "p4d.24xlage"), "did you mean 'p4d.24xlarge'?"),
        (("--instance-type", "P4D.24XLARGE"), "did you mean 'p4d.24xlarge'?"),
        (("--instance-type", "p4d.24xlarge", "--provider", "asw"), "no provider called 'asw' in the catalog"),
        (("--instance-type", "p4d.24xlarge", "--provider", "gcp"), "no gcp instance type called 'p4d.24xlarge'"),
        (("--instance-type", "p4d.24xlarge", "--layout", "tp=3"), "tp=3 does not divide the 32 attention heads"),
        (("--instance-type", "p4d.24xlarge", "--layout", "tp=16"), "does not divide the 8 accelerators of 1 x p4d"),
        (("--instance-type", "p4d.24xlarge", "--layout", "tp=8,pp=1,cp=1,mb=3"), "micro_batch=3 does not divide"),
        (("--instance-type", "p4d.24xlarge", "--nodes", "7", "--layout", "tp=1,pp=1,cp=1"), "56 data-parallel"),
        (("--instance-type", "p4d.24xlarge", "--layout", "tpp=2"), "no part is called 'tpp' (did you mean"),
        (("--instance-type", "p4d.24xlarge", "--layout", "tp"), "'tp' needs a value, like tp=1"),
        (("--instance-type", "p4d.24xlarge", "--layout", "tp=two"), "must be a whole number, not 'two'"),
        (("--instance-type", "p4d.24xlarge", "--layout", "tp=0"), "must be at least 1"),
        (("--instance-type", "p4d.24xlarge", "--layout", "tp=2,tensor_parallel=2"), "given twice"),
        (("--instance-type", "p4d.24xlarge", "--layout", "zero=4"), "zero_stage is 0, 1, 2 or 3"),
        (("--instance-type", "p4d.24xlarge", "--layout", "recompute=some"), "one of none, selective, full"),
        (("--instance-type", "p4d.24xlarge", "--nodes", "0"), "0 is not in the range"),
        (("--provider", "aws"), "needs --instance-type"),
        (("--set", "constraints.budget_usd=1"), "name a type, such as p5.48xlarge"),
    ],
)  # fmt: skip
def test_bad_questions_are_refused_with_a_remedy(run_cli: Run, args: tuple[str, ...], words: str) -> None:
    done = run_cli("estimate", LLAMA, *args)
    assert (done.code, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_task_is_estimated_at_its_chosen_rung(run_cli: Run) -> None:
    answer = ask(run_cli, example("images-100gb"), "--instance-type", "g5.12xlarge")
    assert answer["estimates"][0]["unit"] == "samples"


def test_an_answer_can_go_to_a_file(run_cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "e.json"
    done = run_cli("estimate", LLAMA, "--instance-type", "p4d.24xlarge", "-o", "json", "--out", str(out))
    assert (done.code, done.stdout) == (0, "")
    assert json.loads(out.read_text())["estimates"][0]["fits"] is True


@pytest.mark.parametrize(
    ("machine", "told"),
    [("g4dn.xlarge", "its peaks: fp32, fp16"), ("p2.xlarge", "no source states its peak")],
)
def test_a_missing_peak_tells_what_is_known(run_cli: Run, machine: str, told: str) -> None:
    (one,) = ask(run_cli, LLAMA, "--instance-type", machine, code=3)["estimates"]
    assert one["reason"] == f"the accelerator has no known peak in bf16 ({told})"


def test_the_whole_run_of_one_that_may_stop_early_is_its_mean(run_cli: Run, tmp_path: Path) -> None:
    text = (
        "version: 1\nname: x\nmodel: {preset: bert-base}\n"
        "training: {steps: 1000000, global_batch: 256, sequence_length: 256%s}\ndata: {samples: 1e6}\n"
    )
    hours = []
    for stop in ("", ", early_stop: {mean_share: 0.4}"):
        (tmp_path / "w.yaml").write_text(text % stop)
        done = run_cli("estimate", str(tmp_path / "w.yaml"), "--instance-type", "p5.48xlarge")
        assert done.code == 0, done.stderr
        assert ("where it stops on average" in done.unwrapped) is bool(stop)
        hours.append(float(done.stdout.split("WHOLE RUN")[1].split()[0]))
    assert hours[1] < 0.5 * hours[0]


def test_every_layout_of_a_step_of_rollouts_accumulates_over_one_update(run_cli: Run) -> None:
    """Of 512 responses: the layout taken, the next best ones, and the row for a spreadsheet."""
    args = (example("grpo-8b"), "--instance-type", "p5.48xlarge", "--nodes", "2")
    (one,) = ask(run_cli, *args)["estimates"]
    names = ("data_parallel", "micro_batch", "grad_accumulation")
    data, micro, accumulated = (one["layout"][name] for name in names)
    assert (data * micro * accumulated, one["layout"]["updates"], one["layout"]["passes"]) == (512, 4, 1)
    assert one["other_layouts"]
    for other in one["other_layouts"]:
        parts = re.search(r"data (\d+), (?:\d+ virtual stages, )?micro-batch (\d+) x (\d+)", other["layout"])
        assert parts is not None, other["layout"]
        each, samples, batches = map(int, parts.groups())
        assert each * samples * batches == 512, other["layout"]
    (row,) = csv.DictReader(io.StringIO(run_cli("estimate", *args, "-o", "csv").stdout))
    assert [int(row[name]) for name in (*names, "updates", "passes")] == [data, micro, accumulated, 4, 1]


def test_an_expert_degree_above_the_data_parallel_one_is_estimated(run_cli: Run, tmp_path: Path) -> None:
    layout = {"tensor_parallel": 4, "expert_parallel": 16}
    training = {"tokens": 1e9, "global_batch": 128, "sequence_length": 4096, "layout": layout}
    asked = write(tmp_path, model={"preset": "llama-3.1-8b"}, training=training)
    (one,) = ask(run_cli, asked, "--instance-type", "p5.48xlarge", "--nodes", "4")["estimates"]
    assert (one["layout"]["data_parallel"], one["layout"]["expert_parallel"]) == (8, 16)
    assert sum(one["memory"]["parts_gib"].values()) == pytest.approx(one["memory"]["needed_gib"])


def test_a_machine_without_bf16_is_estimated_in_fp16_where_no_precision_is_stated(
    run_cli: Run, tmp_path: Path
) -> None:
    training = {"tokens": "1e9", "global_batch": 256, "sequence_length": 512}
    types = "p3.16xlarge,p4d.24xlarge"
    old, new = ask(run_cli, write(tmp_path, training=training), "--instance-type", types)["estimates"]
    assert (old["precision"], new["precision"]) == ("fp16", "bf16") and old["throughput_per_s"] > 0
    stated = write(tmp_path, training=training | {"precision": "bf16"})
    refused, same = ask(run_cli, stated, "--instance-type", types)["estimates"]
    assert not refused["fits"] and same["throughput_per_s"] == new["throughput_per_s"]
