"""The judge recomputes plans from their workload and the catalog: real ones hold, every forged leaf is caught."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forgeries import Forger, passes, put, steps, texts_of
from benchmarks.instances.answers import EXAMPLES, NOW, PLANS, Saved, changed, plans
from planner.asked.options import Options
from planner.errors import InputError
from planner.inputs.load import load_workload
from planner.inputs.settings import with_settings
from planner.judge.judge import judge_saved
from planner.judge.stated import PLAN
from planner.workloads.answer import optimize
from tests.planner.judge.tampering import changes_of, uncaught

NAMES = ("spot, else on-demand", "owned and more", "on-demand", "a fleet", "a fleet that falls back",
         "a fleet in two parts")  # fmt: skip
pytestmark = pytest.mark.catalog("small")


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, Saved]]:
    yield {saved.name: saved for saved in plans(NAMES)}


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_holds_and_every_leaf_is_checked_or_stated(answers: dict[str, Saved], name: str) -> None:
    assert answers[name].judge(answers[name].answer) == []


@pytest.mark.parametrize("name", ["on-demand", "a fleet"])
def test_a_plan_saved_before_it_stated_the_chance_of_its_memory_holds(
    answers: dict[str, Saved], name: str
) -> None:
    older = copy.deepcopy(answers[name].answer)
    del older["performance"]["memory_fits_ratio"]
    assert answers[name].judge(older) == []
    del older["performance"]["mfu"]
    assert not passes(answers[name], older)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_that_is_not_stated_is_caught_when_it_changes(
    answers: dict[str, Saved], name: str
) -> None:
    """One leaf of each field; `python -m benchmarks.forgeries --every-leaf` changes all of them."""
    saved = answers[name]
    assert uncaught(saved, changes_of(saved, texts_of(list(answers.values())), one_per_field=True)) == []


@pytest.mark.parametrize("name", NAMES)
def test_random_forgeries_are_caught(answers: dict[str, Saved], name: str) -> None:
    saved = answers[name]
    forger, rng = Forger(saved.answer, saved.stated, texts_of(list(answers.values()))), random.Random(7)
    drawn = [forger.draw(rng) for _ in range(20)]
    through = [one.where for one in drawn if one is not None and passes(saved, one.answer)]
    assert through == []


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_field_is_a_fault(answers: dict[str, Saved], name: str) -> None:
    for path in ("$.more", "$.lines[0].more", "$.proof.more"):
        forged = copy.deepcopy(answers[name].answer)
        put(forged, steps(path), 1)
        assert not passes(answers[name], forged)


def test_a_fleet_of_a_hundredth_of_an_hour_does_not_hold(answers: dict[str, Saved]) -> None:
    """Sums, totals and hours are consistent; the work and the billing rules are not."""
    saved = answers["a fleet"]
    forged = copy.deepcopy(saved.answer)
    whole = 0.0
    for line in forged["lines"]:
        line["billed_hours"] = "0.01"
        line["costs"] = [cost for cost in line["costs"] if cost["kind"] == "compute"]
        cost = line["costs"][0]
        cost["quantity"] = str(round(0.01 * line["nodes"], 9))
        usd = round(float(cost["quantity"]) * float(cost["unit_price"]) * float(cost["usd_per_currency"]), 12)
        cost["amount_usd"] = line["cost_usd"] = f"{usd:.12f}"
        whole += usd
    forged["total_usd"] = f"{whole:.12f}"
    assert not passes(saved, forged)


def test_what_is_stated_occurs_and_has_a_reason() -> None:
    assert all(reason for reason in PLAN.values())
    assert len(PLAN) < 40


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.catalog", 5), ("$.lines", {}), ("$.lines[0]", 3), ("$.hours", "long"), ("$.total_usd", "much"),
        ("$.lines[0].nodes", 1.5), ("$.alternatives[0].parts", 5), ("$.timeline[0].hours", None),
        ("$.created_at", "yesterday"), ("$.lines[0].costs[0].quantity", []),
    ],
)  # fmt: skip
def test_a_malformed_answer_names_the_json_path(answers: dict[str, Saved], path: str, value: Any) -> None:
    forged = copy.deepcopy(answers["on-demand"].answer)
    put(forged, steps(path), value)
    with pytest.raises(InputError) as caught:
        answers["on-demand"].judge(forged)
    assert path.split(".")[1].split("[")[0] in str(caught.value)


def test_plans_of_every_way_to_buy_are_in_the_benchmark() -> None:
    assert set(NAMES) <= set(PLANS)
    assert NOW.tzinfo is not None


@pytest.mark.catalog("whole")
def test_a_run_that_outlives_the_longest_block_has_a_worst_cost() -> None:
    """182 days is the longest block sold; the 90th percentile of the hours of the steps alone is 183.7 days."""
    steps_alone = ["assumptions.beside_steps_ratio=0", "assumptions.whole_run_log_sd=0"]
    loaded = with_settings(
        load_workload(EXAMPLES / "gpt3-175b.yaml"), ["constraints.deadline=null", *steps_alone]
    )
    made = json.loads(json.dumps(optimize(loaded, Options(NOW, as_of=NOW.date())).plan.to_dict()))
    assert made["lines"][0]["purchase_option"] == "capacity_block" and made["risk"]["worst_hours"] > 182 * 24
    assert (
        1.05 < float(made["risk"]["worst_cost_usd"]) / float(made["total_usd"]) < 1.15
    )  # as the hours: 1.09
    assert judge_saved(made, loaded).faults == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_choice_that_loses_one_of_its_kinds_is_caught(answers: dict[str, Saved], name: str) -> None:
    saved = answers[name]
    sizes = [len(row["kinds"]) for row in saved.answer["choices"]]
    assert sizes
    for row, size in enumerate(sizes):
        for kind in range(size):
            forged = copy.deepcopy(saved.answer)
            lost = forged["choices"][row]["kinds"].pop(kind)
            assert not passes(saved, forged), f"{lost} of choices[{row}]"


def test_zones_in_another_order_are_caught(answers: dict[str, Saved]) -> None:
    """Equal prices and the same evidence too: of those the first id comes first."""
    saved, swapped = answers["spot, else on-demand"], 0
    for number, one in enumerate(saved.answer["alternatives"]):
        zones = [at for at, part in enumerate(one["parts"]) if part["purchase_option"] == "spot"]
        if len(zones) < 2:
            continue
        forged = copy.deepcopy(saved.answer)
        alternative = forged["alternatives"][number]
        parts = alternative["parts"]
        parts[0], parts[1] = parts[1], parts[0]
        alternative |= {name: parts[0][name] for name in ("region", "zone")}
        assert not passes(saved, forged)
        swapped += 1
    assert swapped > 1


def test_a_plan_on_records_of_ones_own_names_what_is_not_recomputed(tmp_path: Path) -> None:
    (tmp_path / "seen.csv").write_text(
        "time,zone,provider,instance_type,gang,available\n"
        + "".join(f"2026-02-{day:02}T00:00Z,us-east-2a,aws,p3.2xlarge,2,1\n" for day in range(1, 15)),
        encoding="utf-8",
    )
    loaded = load_workload(changed("bert-large", {"spot": {"evidence": ["seen.csv"]}}, tmp_path))
    answer = json.loads(json.dumps(optimize(loaded, Options(now=NOW)).plan.to_dict()))
    verdict = judge_saved(answer, loaded)
    assert verdict.faults == () and "costs" not in verdict.checked
    reason = "it depends on the workload's spot records"
    left = {name for name, why in verdict.left_out.items() if why == reason}
    assert {"launch.p_meet_deadline", "lines[*].costs[*].amount_usd", "risk.worst_hours"} <= left
    for path, value in (
        ("$.lines[0].costs[0].unit_price", "1.0"),
        ("$.performance.step_time_s", 9.0),
        ("$.start", "x"),
    ):
        forged = copy.deepcopy(answer)
        put(forged, steps(path), value)
        with contextlib.suppress(InputError):
            assert judge_saved(forged, loaded).faults


def test_a_job_on_two_commitments_of_equal_terms_holds(tmp_path: Path) -> None:
    owned = {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "p4d.24xlarge",
        "purchase_option": "reserved_1y",
    }
    limits = {"deadline": "80h", "instance_types": {"allow": ["p4d*"]}}
    given = {"commitments": [{**owned, "nodes": 2}, {**owned, "nodes": 3}], "constraints": limits}
    loaded = load_workload(changed("bert-large", given, tmp_path))
    answer = json.loads(json.dumps(optimize(loaded, Options(now=NOW)).plan.to_dict()))
    assert [line["option_variant"] for line in answer["lines"]] == ["already_owned"] * 2
    assert judge_saved(answer, loaded).faults == ()
    forged = copy.deepcopy(answer)
    forged["lines"].append(forged["lines"][0])
    assert judge_saved(forged, loaded).faults


def test_a_plan_with_replays_holds_and_says_that_they_are_drawn() -> None:
    loaded = load_workload(EXAMPLES / "bert-large.yaml")
    answer = json.loads(json.dumps(optimize(loaded, Options(now=NOW, replays=20)).plan.to_dict()))
    verdict = judge_saved(answer, loaded)
    assert verdict.faults == ()
    assert "launch.replay.expected_cost_usd" in verdict.left_out
