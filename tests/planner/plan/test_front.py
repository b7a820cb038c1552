"""The screen says what the file asked to be compared, and what was assumed in its place."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.judge.judge import judge_plan
from planner.plan.front import front, headline, none_rows
from planner.plan.front_choices import changes, choices
from planner.plan.front_notes import verdict_lines
from planner.plan.model import FilterCount, Plan
from planner.plan.relaxation import Change, relaxation_of
from tests.planner.render.render_plans import INFEASIBLE
from tests.planner.spine_catalogs import A10G, L4, V100, Offer, loaded, make_catalog, plan_on, work

LIMITS = {"max_nodes": 4, "deadline": "90d", "deadline_confidence": 0.6}
TRAINING = {"samples": 2_000_000, "global_batch": 512, "sequence_length": 128, "precision": "bf16"}
OFFERS = [Offer(A10G, "us-east-1", "1.0"), Offer(L4, "us-central1", "9.0"), Offer(V100, "us-east-1", "3.0")]


def answer_with(baseline: dict[str, Any]) -> tuple[Plan, list[str]]:
    """The plan beside a baseline, and what is found wrong in it."""
    job = work(constraints=LIMITS, training=TRAINING, baseline=baseline)
    catalog = make_catalog(OFFERS)
    plan = plan_on(catalog, job).plan
    own = loaded(job)
    return plan, judge_plan(plan.to_dict(), own.workload, own.sha256, catalog, Path()).finish()


def rows_of(plan: Plan) -> dict[str, str]:
    return {row.label: row.words for row in front(plan)[0].figures}


def test_what_is_saved_against_the_cluster_that_the_file_names_is_on_the_screen() -> None:
    plan, faults = answer_with(
        {"provider": "gcp", "region": "us-central1", "instance_type": L4.instance_type, "nodes": 1}
    )
    assert faults == [] and plan.savings is not None and plan.savings.baseline is not None
    assert plan.savings.baseline.label == "your cluster"
    assert "against your cluster, 1 x" in rows_of(plan)["saves"]


def test_a_baseline_that_cannot_run_the_job_is_a_warning_with_the_reason() -> None:
    plan, faults = answer_with(
        {"provider": "aws", "region": "us-east-1", "instance_type": V100.instance_type, "nodes": 1}
    )
    assert faults == [] and "saves" not in rows_of(plan)
    (said,) = [text for text in plan.warnings if text.startswith("baseline")]
    assert said.endswith("cannot run the job: the accelerator does not support the required precision")


def test_a_baseline_that_the_catalog_has_otherwise_alone_says_how() -> None:
    named = {"provider": "gcp", "region": "us-central1", "instance_type": L4.instance_type, "nodes": 1}
    plan, _ = answer_with({**named, "purchase_option": "capacity_block"})
    (said,) = [text for text in plan.warnings if text.startswith("baseline")]
    assert said.endswith("in gcp/us-central1: not in the catalog; it has on_demand in gcp/us-central1")


def test_without_a_baseline_of_the_file_no_row_is_added() -> None:
    plan = plan_on(make_catalog(OFFERS), work(constraints=LIMITS, training=TRAINING)).plan
    assert plan.savings is not None and plan.savings.baseline is not None
    assert "saves" not in rows_of(plan)


@pytest.mark.parametrize(("preset", "said"), [("llama-3.1-8b", True), ("llama-2-7b", False)])
def test_a_long_context_that_nobody_stated_is_in_the_headline(preset: str, said: bool) -> None:
    training = {"objective": "sft", "samples": 1000, "global_batch": 8, "method": "lora"}
    plan = plan_on(make_catalog(OFFERS), work(model={"preset": preset}, training=training)).plan
    assert ("sequences of 8,192 tokens assumed (training.sequence_length)" in headline(plan)) == said


@pytest.mark.parametrize(
    ("training", "data", "said"),
    [
        ({}, {"samples": 500}, True), ({"sequence_length": 512}, {"samples": 500}, False),
        ({"lengths": {"mean": 300}}, {"samples": 500}, False), ({}, {"tokens": 1e6}, False),
    ],
)  # fmt: skip
def test_samples_that_count_as_whole_sequences_are_in_the_headline(
    training: dict[str, Any], data: dict[str, Any], said: bool
) -> None:
    asked = {"objective": "sft", "epochs": 2, "global_batch": 8, "method": "lora", **training}
    plan = plan_on(make_catalog(OFFERS), work(model={"preset": "llama-2-7b"}, training=asked, data=data)).plan
    assert ("samples of 4,096 tokens assumed (data.tokens)" in headline(plan)) == said


@pytest.mark.parametrize(
    ("training", "said"),
    [({"steps": 100}, True), ({"steps": 100, "sequence_length": 512}, False), ({"tokens": 1e9}, False)],
)
def test_a_length_by_which_steps_become_tokens_is_in_the_headline(
    training: dict[str, Any], said: bool
) -> None:
    asked = {"global_batch": 8, **training}
    plan = plan_on(make_catalog(OFFERS), work(model={"preset": "gpt-2-124m"}, training=asked)).plan
    assert ("sequences of 1,024 tokens assumed (training.sequence_length)" in headline(plan)) is said


@pytest.mark.parametrize(("preset", "seconds"), [("whisper-tiny", "30 s"), ("wav2vec2-base", "15.6 s")])
def test_pieces_of_sound_that_samples_are_counted_in_are_in_the_headline(preset: str, seconds: str) -> None:
    training = {"samples": 1e6, "global_batch": 64}
    plan = plan_on(make_catalog(OFFERS), work(model={"preset": preset}, training=training)).plan
    assert f"samples of {seconds} of sound" in headline(plan) and "(model.preset)" in headline(plan)


@pytest.mark.parametrize(("size", "said"), [(None, True), (256, False)])
def test_a_resolution_that_nobody_stated_is_in_the_headline(size: int | None, said: bool) -> None:
    model = {"preset": "dit-xl-2"} | ({} if size is None else {"image_size": size})
    plan = plan_on(
        make_catalog(OFFERS), work(model=model, training={"samples": 1e6, "global_batch": 64})
    ).plan
    assert ("images of 256 px assumed (model.image_size)" in headline(plan)) == said


@pytest.mark.parametrize("objective", ["carbon", "cost"])
def test_choices_say_what_they_emit_where_the_least_is_asked_for(objective: str) -> None:
    job = work(constraints=LIMITS, training=TRAINING, preferences={"objective": objective})
    plan = plan_on(make_catalog(OFFERS), job).plan
    (table,) = choices(plan)[0].tables
    keys = [column.key for column in table.columns]
    assert ("kgco2e" in keys) == (objective == "carbon")
    assert all(len(row) == len(keys) for row in table.rows)
    if objective == "carbon":
        assert plan.carbon is not None and plan.carbon.operational_kgco2e is not None
        assert table.rows[0][-1] == pytest.approx(plan.carbon.operational_kgco2e, rel=0.05)


@pytest.mark.parametrize(
    ("objective", "emits", "costs", "said"),
    [
        ("carbon", 1.0001, "0.5", True),
        ("carbon", 1.2, "0.5", False),  # more, in the digits that are known
        ("carbon", 1.0001, "1.0", False),
        ("cost", 1.0001, "0.5", False),
    ],
)
def test_a_choice_that_emits_as_much_for_less_is_named(
    objective: str, emits: float, costs: str, said: bool
) -> None:
    job = work(constraints=LIMITS, training=TRAINING, preferences={"objective": "carbon"})
    plan = plan_on(make_catalog(OFFERS), job).plan
    assert plan.carbon is not None and plan.carbon.operational_kgco2e is not None
    other = next(choice for choice in plan.choices if choice.best is not None)
    assert other.best is not None
    best = replace(
        other.best,
        operational_kgco2e=emits * plan.carbon.operational_kgco2e,
        cost_usd=Decimal(costs) * plan.total_usd,
    )
    both = (plan.choices[0], replace(other, best=best))
    (section,) = choices(replace(plan, objective=objective, choices=both))
    assert ("emits as much in the digits that are known, for $" in str(section)) is said


def test_limits_that_can_be_moved_come_before_what_machines_cannot_do() -> None:
    filters = tuple(
        FilterCount(name, "", 10 * removed, removed)
        for name, removed in (("memory", 900), ("deadline", 70), ("network", 5), ("budget", 80))
    )
    (section,) = none_rows(replace(INFEASIBLE, filters=filters))
    assert "a single limit: budget 80, deadline 70; what machines cannot do: memory 900, network 5" in str(
        section
    )


def test_ends_that_plans_are_chosen_by_do_not_read_alike() -> None:
    training = {**TRAINING, "samples": 40 * TRAINING["samples"]}  # type: ignore[operator]
    job = work(constraints=LIMITS, training=training, preferences={"objective": "time"})
    plan = plan_on(make_catalog(OFFERS), job).plan
    first = plan.choices[0]
    later = (datetime.fromisoformat(first.finish_expected) + timedelta(minutes=1)).isoformat()
    other = replace(plan.choices[-1], finish_expected=later)
    both = replace(plan, choices=(first, other))
    ends = [row[3] for row in choices(both)[0].tables[0].rows]
    assert len(set(ends)) == 2 and all(re.search(r"\d\d:\d\d$", str(end)) for end in ends)
    cheap = [row[3] for row in choices(replace(both, objective="cost"))[0].tables[0].rows]
    assert len(set(cheap)) == 1


@pytest.mark.parametrize(("usd", "said"), [("1.50", "budget $1.50"), (2_000, "budget $2,000")])
def test_a_budget_reads_as_it_was_stated(usd: object, said: str) -> None:
    job = work(constraints={**LIMITS, "budget_usd": usd}, training=TRAINING)
    assert f", {said}" in headline(plan_on(make_catalog(OFFERS), job).plan)


def test_a_deadline_at_midnight_has_its_hour() -> None:
    job = work(constraints={**LIMITS, "deadline": "2026-12-31"}, training=TRAINING)
    assert "by Jan 1, 2027 00:00 (60 %)" in headline(plan_on(make_catalog(OFFERS), job).plan)


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"objective": "distill", "teacher": {"preset": "bert-large"}}, True),
        ({"objective": "pretrain"}, False),
    ],
)
def test_a_step_that_mostly_runs_other_networks_says_so_beside_its_mfu(
    training: dict[str, Any], said: bool
) -> None:
    plan = plan_on(make_catalog(OFFERS), work(constraints=LIMITS, training={**TRAINING, **training})).plan
    assert ("of the step is passes of other networks)" in rows_of(plan)["speed"]) is said


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"objective": "sft"}, True),
        ({"method": "lora"}, True),
        ({"objective": "sft", "packing": True}, False),
        ({"objective": "sft", "lengths": {"mean": 90}}, False),
        ({}, False),
    ],
)
def test_samples_of_a_fine_tuning_that_count_as_whole_sequences_are_in_the_headline(
    training: dict[str, Any], said: bool
) -> None:
    plan = plan_on(make_catalog(OFFERS), work(constraints=LIMITS, training={**TRAINING, **training})).plan
    assert ("samples of 128 tokens each assumed (training.lengths)" in headline(plan)) is said


def test_a_budget_that_is_enough_has_the_digits_of_a_cost_and_suffices() -> None:
    catalog = make_catalog(OFFERS)
    job = work(constraints={**LIMITS, "budget_usd": 1}, training=TRAINING)
    short = plan_on(catalog, job).plan
    exact = next(item.needed for item in short.relaxations if item.constraint == "budget")
    (section,) = changes(short)
    needed = str(section.tables[0].rows[0][0]).rpartition("$")[2].replace(",", "")
    assert len(needed.strip("0").replace(".", "")) <= 3
    more = Decimal(needed) - Decimal(exact.lstrip("$").replace(",", ""))
    assert 0 <= more < Decimal("0.01") * Decimal(needed)
    assert "explain FILE, optimize FILE --best-within 1; " in verdict_lines(short)[1]
    job["constraints"]["budget_usd"] = needed
    assert plan_on(catalog, job).plan.status == "planned"


@pytest.mark.parametrize(
    ("limit", "needed", "enough", "said"),
    [
        ("confidence", "0.694", 0.694, "0.69"), ("confidence", "0.29", 0.29, "0.29"),
        ("confidence", "0.004", 0.004, "0.004"), ("deadline", "57,994.2 h", 57_994.2, "58,000 h"),
        ("deadline", "1,200 (87 %)", None, "1,200 (87 %)"), ("deadline", "31.4 h", 31.4, "31.4 h"),
        ("budget", "$8,993.88", 8993.88, "$9,000"), ("max_nodes", "16", 16, "16"),
    ],
)  # fmt: skip
def test_what_would_be_enough_is_rounded_so_that_it_is(
    limit: str, needed: str, enough: float | None, said: str
) -> None:
    """Each limit of those that give way together."""
    change = Change(limit, "24 h", needed, 24.0, enough)
    region = Change("region", "excluded", "allow here")
    items = (relaxation_of((change,), None), relaxation_of((region, change), None))
    (section,) = changes(replace(INFEASIBLE, relaxations=items))
    alone, both = (str(row[0]).strip() for row in section.tables[0].rows)
    assert alone == f"{limit} 24 h -> {said}"
    assert both == f"region excluded -> allow here and {limit} 24 h -> {said}"


def test_what_would_be_enough_is_as_it_was_saved_where_no_numbers_were() -> None:
    item = replace(INFEASIBLE.relaxations[0], constraint="confidence", needed="0.694", changes=())
    (section,) = changes(replace(INFEASIBLE, relaxations=(item,)))
    assert str(section.tables[0].rows[0][0]).endswith(" -> 0.694")


@pytest.mark.parametrize(("usd", "said"), [("51.54", "51.5"), ("8994", "8990"), ("34852", "34900")])
def test_what_would_be_enough_costs_three_digits(usd: str, said: str) -> None:
    [first, *_] = [item for item in INFEASIBLE.relaxations if item.best is not None]
    assert first.best is not None
    item = replace(first, best=replace(first.best, cost_usd=Decimal(usd)))
    (section,) = changes(replace(INFEASIBLE, relaxations=(item,)))
    assert section.tables[0].rows[0][2] == Decimal(said)


@pytest.mark.parametrize("kind", ["job", "fleet"])
def test_each_of_several_changes_is_enough(kind: str) -> None:
    (section,) = changes(replace(INFEASIBLE, kind=kind))
    assert section.tables[0].columns[0].label == "each is enough"
