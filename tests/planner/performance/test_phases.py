"""Schedules of batch, length and resolution, evaluation in the run, and losses over all pairs of a batch."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from catalogs.tables.table import Table
from planner.asked.job import Job, resolve_job
from planner.errors import InputError
from planner.inputs.load import parse_workload, validate
from planner.inputs.yaml12 import parse_yaml
from planner.performance.phases import flops_per_step
from planner.performance.search import estimate_shapes
from tests.planner.performance.test_performance import A100

FIXTURES = Path(__file__).parents[2] / "fixtures"
MACHINE = Table({name: [value] for name, value in A100.items()})
BERT = "preset: bert-large"
TOWERS = (
    "parts: [{preset: vit-b-16}, {family: transformer, layers: 12, hidden: 512, heads: 8, vocab: 49408,"
    " predicted_share: 0, tokens: 77}]"
)
FIXED = "layout: {micro_batch: 256, zero_stage: 1, recompute: none}"


def job(model: str, training: str, more: str = "") -> Job:
    text = f"version: 1\nname: x\nmodel: {{{model}}}\ntraining: {{{training}}}\n{more}"
    return resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20))


def estimate(model: str, training: str, nodes: int = 1) -> dict[str, Any]:
    asked = job(model, training)
    return estimate_shapes(asked.model, asked.training, MACHINE, [nodes]).row(0)


def hours(model: str, training: str) -> float:
    asked = job(model, training)
    return asked.total_steps * estimate(model, training)["step_time_s"] / 3600.0


def test_phases_take_the_sum_of_their_times_and_the_largest_memory() -> None:
    both = "tokens: 1e11, global_batch: 256, sequence_length: 512"
    short, long = "share: 0.9, sequence_length: 128, global_batch: 1024", "share: 0.1"
    schedule = f"{both}, phases: [{{{short}}}, {{{long}}}]"
    first, second = "tokens: 0.9e11, global_batch: 1024, sequence_length: 128", both.replace("1e11", "0.1e11")
    apart = hours(BERT, first) + hours(BERT, second)
    assert hours(BERT, schedule) == pytest.approx(apart, rel=1e-4)
    rows = [estimate(BERT, each) for each in (schedule, first, second)]
    assert rows[0]["memory_needed_gib"] == max(rows[1]["memory_needed_gib"], rows[2]["memory_needed_gib"])
    asked, each = job(BERT, schedule), [job(BERT, text) for text in (first, second)]
    assert asked.total_steps == sum(one.total_steps for one in each)
    assert asked.total_units == pytest.approx(1e11, rel=1e-4)
    flops = sum(one.total_steps * flops_per_step(one.model, one.training) for one in each)
    assert asked.total_steps * flops_per_step(asked.model, asked.training) == pytest.approx(flops)


def test_one_phase_that_changes_nothing_is_the_run_itself() -> None:
    plain = "tokens: 1e11, global_batch: 256, sequence_length: 512"
    assert hours(BERT, f"{plain}, phases: [{{share: 1}}]") == pytest.approx(hours(BERT, plain), rel=1e-9)


def test_a_larger_resolution_at_the_end_costs_its_area() -> None:
    small = "samples: 1e8, global_batch: 1024, layout: {micro_batch: 32, zero_stage: 1, recompute: none}"
    grown = hours("preset: resnet-50", f"{small}, phases: [{{share: 0.5}}, {{share: 0.5, image_size: 448}}]")
    assert grown / hours("preset: resnet-50", small) == pytest.approx(2.5, rel=0.1)


def test_a_run_fits_where_every_phase_does() -> None:
    pinned = "layout: {micro_batch: 64, recompute: none}"
    text = f"tokens: 1e10, global_batch: 512, sequence_length: 128, {pinned}, phases: [{{share: 0.5}}"
    assert estimate(BERT, f"{text}, {{share: 0.5, sequence_length: 256}}]")["fits"]
    row = estimate(BERT, f"{text}, {{share: 0.5, sequence_length: 65536}}]")
    assert (row["fits"], row["reason"]) == (False, "out_of_memory")


def test_evaluation_is_its_share_of_forward_passes() -> None:
    plain = f"samples: 1e8, global_batch: 4096, {FIXED}"
    none = estimate("preset: vit-b-16", plain)
    each = [
        estimate("preset: vit-b-16", f"{plain}, evaluation: {{every_steps: {steps}, samples: 40960}}")
        for steps in (100, 10)
    ]
    assert none["evaluation_s"] == 0.0
    # as many samples evaluated as trained on: a third of the step
    assert each[1]["evaluation_s"] == pytest.approx(none["step_time_s"] / 3.0, rel=0.1)
    assert each[0]["evaluation_s"] == pytest.approx(each[1]["evaluation_s"] / 10.0)
    assert each[0]["step_time_s"] == pytest.approx(none["step_time_s"] + each[0]["evaluation_s"])


def test_a_contrastive_loss_costs_its_products_their_exchange_and_their_memory() -> None:
    plain = f"samples: 1e8, global_batch: 32768, {FIXED}"
    none = estimate(TOWERS, plain, nodes=16)
    rows = {
        word: estimate(
            TOWERS, f"{plain}, objective: contrastive, contrastive: {{width: 512, logits: {word}}}", nodes=16
        )
        for word in ("chunks", "rows", "full")
    }
    needs = [none["memory_needed_gib"], *(row["memory_needed_gib"] for row in rows.values())]
    times = [none["step_time_s"], *(row["step_time_s"] for row in rows.values())]
    assert needs == sorted(needs) and times == sorted(times)
    # logits and their gradients of 32768 x 32768 pairs in 32 bit, and both towers' embeddings
    whole_gib = 8.0 * (32768**2 + 2 * 32768 * 512) / 2.0**30
    assert needs[3] - needs[0] == pytest.approx(whole_gib, rel=0.1)
    # a batch in several micro-batches needs the embeddings of all of it first
    few = estimate(TOWERS, f"{plain}, objective: contrastive, contrastive: {{width: 512}}", nodes=1)
    assert few["step_time_s"] > 1.2 * estimate(TOWERS, plain, nodes=1)["step_time_s"]


def test_tokens_take_as_much_room_however_long_the_sequences_of_the_phases_are() -> None:
    amount = "tokens: 1e9, global_batch: 256, sequence_length: 512"
    phased = job(BERT, amount + ", phases: [{share: 0.9, sequence_length: 128}, {share: 0.1}]")
    assert phased.data_gb == pytest.approx(job(BERT, amount).data_gb, rel=1e-3)


def test_one_network_runs_twice_for_a_pair() -> None:
    plain = "samples: 1e6, global_batch: 256, sequence_length: 128"
    pair = job(BERT, f"{plain}, objective: contrastive, contrastive: {{width: 1024}}")
    single = job(f"{BERT}, predicted_share: 0", plain)  # pairs predict no words
    assert flops_per_step(pair.model, pair.training) == pytest.approx(
        2.0 * flops_per_step(single.model, single.training)
    )


@pytest.mark.parametrize(
    ("training", "more", "message"),
    [
        ("tokens: 1e9, phases: [{share: 0.5}]", "", "training.phases: shares add up to 0.5"),
        ("tokens: 1e9, phases: []", "", "training.phases: is an empty list"),
        ("steps: 100, phases: [{share: 1}]", "", "training.phases: share an amount of work: give tokens"),
        (
            "tokens: 1e9, phases: [{share: 1, image_size: 64}]",
            "",
            "image_size: the model states no image size",
        ),
        ("tokens: 1e9, phases: [{share: 1}], lengths: {mean: 99}", "", "cannot be joined with lengths"),
        (
            "tokens: 1e9, phases: [{share: 1}]",
            "constraints: {min_throughput: {samples_per_s: 5}}",
            "constraints.min_throughput: the speed differs by phase",
        ),
        (
            "tokens: 1e9, phases: [{share: 1}]",
            "measured: 12 tokens/s on 8 x a100-80gb-sxm",
            "measured: .*of one batch",
        ),
        ("tokens: 1e9, objective: contrastive", "", "contrastive needs a section 'training.contrastive'"),
        ("tokens: 1e9, contrastive: {width: 8}", "", "training.contrastive: objective pretrain has no"),
    ],
)
def test_faults_name_the_place_and_the_remedy(training: str, more: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        job(BERT, f"global_batch: 32, sequence_length: 512, {training}", more)


COVERED = parse_yaml((FIXTURES / "coverage.yaml").read_text(encoding="utf-8"), "coverage.yaml").data


@pytest.mark.parametrize("name", COVERED)
def test_what_real_workloads_need_can_be_written_and_estimated(name: str) -> None:
    workload, faults = validate({"version": 1, "name": name, **COVERED[name]})
    assert faults == [] and workload is not None
    asked = resolve_job(workload, date(2026, 11, 20))
    machines = Table({**{name: [value] * 2 for name, value in A100.items()}, "accelerator_count": [1, 8]})
    table = estimate_shapes(asked.model, asked.training, machines, [1, 32])
    assert any(table["fits"]), [table.row(row)["reason"] for row in range(table.n_rows)]
    step = table["step_time_s"][table["fits"]]
    assert (step > 0.0).all() and asked.total_steps > 0


def test_a_fleet_whose_runs_stop_early_does_their_mean_share() -> None:
    whole, less = (
        job("preset: resnet-50", "samples: 1e6, global_batch: 100", f"kind: fleet\nfleet: {{runs: 9{more}}}")
        for more in ("", ", mean_share: 0.4")
    )
    assert less.total_steps == pytest.approx(0.4 * whole.total_steps)


def test_a_run_that_stops_early_does_its_mean_share_on_all_of_the_data() -> None:
    text = "epochs: 10, global_batch: 100"
    more = "data: {samples: 1e6, sample_size: 100KB}"
    whole, less = (
        job("preset: resnet-50", text + stop, more) for stop in ("", ", early_stop: {mean_share: 0.4}")
    )
    assert less.total_steps == pytest.approx(0.4 * whole.total_steps) and less.data_gb == whole.data_gb
    # nine of ten runs have stopped at the whole: ln(1 / 0.4) is 1.28 standard deviations
    assert (whole.stop_log_sd, less.stop_log_sd) == (0.0, pytest.approx(0.715, abs=0.001))
    noted = {item.key: item.value for item in less.assumptions}
    assert noted["training.early_stop.mean_share"] == "0.4"


@pytest.mark.parametrize(
    ("stop", "more", "message"),
    [
        ("{mean_share: 0.4, p90_share: 0.3}", "", "p90_share: is below mean_share 0.4"),
        ("{mean_share: 0.4}", "kind: fleet\nfleet: {runs: 4}", "of a fleet's runs give fleet.mean_share"),
        ("{mean_share: 0.4}, phases: [{share: 1}]", "", "cannot be joined with phases"),
        ("{mean_share: 40}", "", "mean_share"),
    ],
)
def test_what_an_early_stop_cannot_be_is_said(stop: str, more: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        job("preset: resnet-50", f"samples: 1e6, global_batch: 100, early_stop: {stop}", more)


def test_a_checkpoint_to_start_from_is_copied_with_the_data() -> None:
    plain = "samples: 1e6, global_batch: 256, sequence_length: 128"
    without, with_it = job(BERT, plain), job(BERT, plain, "checkpoint: {initial: 5GB}")
    assert with_it.data_gb == pytest.approx((without.data_gb or 0.0) + 5.0)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "data: {access: stream}\ncheckpoint: {initial: 5GB}",
            "checkpoint.initial: is copied before the run",
        ),
        ("recurrence: {every: 1d, times: 9}", "recurrence: needs constraints.deadline"),
        (
            "recurrence: {every: 1d, times: 9}\nconstraints: {deadline: 2d}",
            "recurrence: needs constraints.deadline",
        ),
    ],
)
def test_starts_and_recurrence_say_what_they_need(more: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        job(BERT, "samples: 1e6, global_batch: 256, sequence_length: 128", more)
