"""`planner explain`: the verdict, what a limit is worth, the rivals, and what lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.asked.given import options_on
from planner.candidates.choose import best_where
from planner.inputs.load import load_workload
from planner.inputs.settings import with_settings
from planner.job.stays_best import stays_best
from planner.render import render_answer
from planner.render.text import display_width
from planner.workloads.answer import optimize
from planner.workloads.explain import Explanation
from planner.workloads.explain_report import explanation_report
from tests.cli.test_optimize import BERT, DAY, example, write
from tests.conftest import Run


@pytest.fixture(scope="module")
def why() -> Explanation:
    return planner.explain(BERT, as_of=DAY[1], draws=200)


@pytest.fixture(scope="module")
def found(why: Explanation) -> dict[str, Any]:
    return why.to_dict()


@pytest.mark.catalog("small")
def test_the_screen_begins_with_the_verdict_and_ends_with_the_next_step(run_cli: Run) -> None:
    done = run_cli(
        "explain", str(BERT), "--why-not", "p4d.24xlarge", "--why-not", "zzz", "--draws", "50", *DAY
    )
    assert (done.code, done.stderr) == (0, "")
    labels = [line.split()[0] for line in done.stdout.splitlines()[2:] if line[:1].isupper()]
    assert labels[:4] == ["PLAN", "WHY", "BINDS", "SURE"]
    assert "zzz: not in the catalog" in done.stdout and "seed 1" in done.unwrapped
    assert "next: planner " in done.stdout.splitlines()[-2] + done.stdout.splitlines()[-1]


def test_where_an_hour_more_saves_nothing_a_later_deadline_may(run_cli: Run) -> None:
    done = run_cli("explain", str(BERT), "--draws", "50", *DAY)  # by June it costs an eighth less
    assert "BINDS  no limit by one step" in done.stdout and "taken away" not in done.stdout
    assert "next: planner frontier FILE;" in done.stdout


@pytest.mark.parametrize(("width", "most"), [(100, 34), (80, 45)])
def test_it_fits_a_screen(
    why: Explanation, width: int, most: int, check_golden: Callable[[str, str], None]
) -> None:
    text = str(render_answer(explanation_report(why), "table", width=width))
    check_golden(f"screen/explain.{width}.txt", text)
    assert len(text.splitlines()) <= most and max(map(display_width, text.splitlines())) <= width


def test_details_keep_the_answer_to_why_not(why: Explanation) -> None:
    asked = replace(why, why_not=(("p4d.24xlarge", ("dearer",)),))
    assert [one.key for one in explanation_report(asked, ["lost"]).sections] == [
        "lost",
        "why_not_p4d.24xlarge",
    ]


@pytest.mark.catalog("small")
def test_details_show_layouts_and_filters(run_cli: Run) -> None:
    done = run_cli("explain", str(BERT), "--details", "layouts", "--details", "filters", "--draws", "0", *DAY)
    assert "splits of tensor" in done.stdout and "layout best: " in done.stdout
    assert "price_refused" in done.stdout and "LIMIT " not in done.stdout


@pytest.mark.catalog("small")
def test_details_show_the_layouts_of_each_phase(run_cli: Run) -> None:
    phases = "{share: 0.5, sequence_length: 128, global_batch: 512}, {share: 0.5, sequence_length: 512}"
    done = run_cli(
        "explain",
        str(BERT),
        "--set",
        f"training.phases=[{phases}]",
        "--details",
        "layouts",
        "--draws",
        "0",
        *DAY,
    )
    batches = [
        int(data) * int(micro) * int(accumulated)
        for data, micro, accumulated in re.findall(
            r"layout best: data (\d+), micro-batch (\d+) x (\d+)", done.unwrapped
        )
    ]
    assert re.findall(r"in phase (\d), ", done.unwrapped) == ["1", "2"] and batches == [512, 4096]


def test_what_the_draws_say_is_behind_the_screen(why: Explanation) -> None:
    text = str(render_answer(explanation_report(why, ["rivals"]), "table", width=100))
    assert "200 draws of prices, speed and interruptions" in text and "% confidence" in " ".join(text.split())
    assert text.count("\n") > len(why.rivals)


def test_each_limit_is_what_optimize_says_under_it(found: dict[str, Any]) -> None:
    limits = {(one["limit"], one["change"]): one["best"] for one in found["limits"]}
    assert {name for name, _ in limits} == {"deadline", "deadline_confidence", "budget_usd", "max_nodes"}
    loaded = load_workload(BERT)
    for key, text in ((("deadline", "1 h more"), "constraints.deadline=169h"),
                      (("max_nodes", "1 node more"), "constraints.max_nodes=9")):  # fmt: skip
        plan = planner.optimize(with_settings(loaded, [text]), as_of=DAY[1])
        assert limits[key]["cost_usd"] == str(plan.total_usd)
    assert all(float(one["best"]["delta_cost_usd"]) <= 0 for one in found["limits"] if one["relaxes"])


def test_the_same_seed_draws_the_same_worlds(found: dict[str, Any]) -> None:
    answer = optimize(load_workload(BERT), options_on(DAY[1]))
    assert answer.found is not None
    made = answer.found.candidates
    at = best_where(made, made.bits == 0, "cost")
    assert at is not None
    again, other = (stays_best(made, at, draws=200, seed=seed) for seed in (1, 2))
    assert again.best_ratio == found["stays_best"]["best_ratio"]
    assert [one.best_ratio for one in again.rivals[:12]] == [one["best_ratio"] for one in found["rivals"]]
    # fewer rivals: the same worlds, so the choice is the best at least as often
    assert stays_best(made, at, draws=200, rivals=10).best_ratio >= again.best_ratio
    assert other.rivals != again.rivals
    stays = found["stays_best"]
    assert stays["low_ratio"] < stays["best_ratio"] < stays["high_ratio"]
    assert sum(one["best_ratio"] for one in found["rivals"]) + stays["none_ratio"] <= 1.0 + 1e-9


def test_what_lost_is_counted_once_and_never_cheaper_and_feasible(found: dict[str, Any]) -> None:
    lost = {one["reason"]: one for one in found["lost"]}
    assert len(lost) == len(found["lost"]) and {"dearer", "derived_price", "price_refused"} <= lost.keys()
    assert float(lost["dearer"]["cost_usd"]) > float(found["total_usd"])


def test_a_refused_price_would_have_been_cheaper(tmp_path: Path) -> None:
    """With ten days for it; with seven, spot at that price would be left for on-demand too often."""
    file = tmp_path / "bert.yaml"
    file.write_text(Path(BERT).read_text(encoding="utf-8").replace("deadline: 7d", "deadline: 10d"), "utf-8")
    why = planner.explain(file, as_of=DAY[1], draws=0)
    (refused,) = [one for one in why.lost if one.reason == "price_refused"]
    assert refused.cost_usd is not None and float(refused.cost_usd) < float(why.plan.total_usd)


@pytest.mark.catalog("small")
def test_what_a_limit_keeps_out_costs_what_the_limit_is_worth() -> None:
    why = planner.explain(example("mixtral-eu"), as_of="2026-11-20", draws=0)
    (limit,) = [one for one in why.limits if one.limit == "residency"]
    (lost,) = [one for one in why.lost if one.reason == "residency"]
    assert limit.best is not None and lost.cost_usd is not None
    assert float(lost.cost_usd) == pytest.approx(float(limit.best.cost_usd), rel=1e-6)
    assert float(lost.cost_usd) < float(why.plan.total_usd)
    assert "else on_demand" in lost.cost_example


@pytest.mark.parametrize("form", ["csv", "yaml", "md", "html", "xlsx"])
def test_every_format_says_what_lost(form: str, why: Explanation) -> None:
    shown = why.render(form)
    words = next(one.words for one in why.lost if one.reason == "price_refused").encode()
    text = shown.encode() if isinstance(shown, str) else shown
    assert words.split(b" (")[0] in text or (form == "xlsx" and text[:2] == b"PK")
    assert b"<script src" not in text


@pytest.mark.catalog("small")
def test_it_names_the_limit_to_relax(run_cli: Run, tmp_path: Path) -> None:
    done = run_cli("explain", write(tmp_path, constraints={"budget_usd": 0.01}), *DAY)
    assert done.code == 3
    assert done.stdout.splitlines()[2].startswith("PLAN  none of the ")
    assert "budget" in done.stdout and "nan" not in done.stdout


@pytest.mark.catalog("small")
def test_a_fleet_is_explained_as_a_whole(run_cli: Run) -> None:
    done = run_cli("explain", example("embed-images-fleet"), "--why-not", "p4d.24xlarge", "-o", "json", *DAY)
    assert done.code == 0
    found = json.loads(done.stdout)
    assert found["limits"] == [] and found["stays_best"] is None and found["filters"]
    assert "the offers of a fleet are chosen together" in found["why_not"]["p4d.24xlarge"][0]
