"""`planner optimize` with the examples, as a user types it: on real prices, of the whole catalog where they matter."""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.asked.options import Options
from planner.inputs.load import LoadedWorkload
from planner.plan.report import plan_answer
from planner.render import render_answer
from planner.workloads.answer import optimize
from tests.conftest import ROOT, CliResult, Run
from tests.planned_examples import plan_of

DAY = ("--as-of", "2026-11-20")
BERT = ROOT / "examples" / "bert-large.yaml"
# Units that a number's key must name; shares of one and counts need none.
UNITS = (
    "_usd",
    "_hours",
    "_ratio",
    "_gib",
    "_gb",
    "_mb",
    "_per_s",
    "_s",
    "_per_hour",
    "_per_currency",
    "_days",
    "_kwh",
    "_kgco2e",
    "_w",
)
PLAIN = {
    "kept",
    "line",
    "requests",
    "schema_version", "hours", "nodes", "accelerators", "accelerators_per_node", "vcpus_per_node", "mfu",
    "p_meet_deadline", "needed",
    "limit", "removed", "removed_only_by_this", "candidates", "offers", "shapes", "seconds", "near_ties", "n_offers",
    "n_results", "n_feasible", "expected_interruptions", "tensor_parallel", "pipeline_parallel", "context_parallel",
    "data_parallel", "zero_stage", "micro_batch", "grad_accumulation", "quantity", "unit_price", "expert_parallel",
    "interleave", "rank", "count", "units", "samples_per_s_per_accelerator", "decode_samples_per_s_per_core",
    "cores_per_accelerator", "cores_needed_per_accelerator", "grid_year", "hours_in_use", "runs", "nodes_per_run",
}  # fmt: skip
pytestmark = pytest.mark.catalog("small")


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, ...], CliResult]:
    """Answers already computed in this module: the same question is asked once."""
    return {}


@pytest.fixture
def ask(answers: dict[tuple[str, ...], CliResult], run_cli: Run, asked_once: Callable[[str], None]) -> Run:
    asked_once("planner.workloads.answer.optimize")

    def ask(*args: str) -> CliResult:
        key = (os.environ.get("PLANNER_CATALOG_DIR", ""), *args)
        if key not in answers:
            answers[key] = run_cli("optimize", *args, *DAY)
        return answers[key]

    return ask


def example(name: str) -> str:
    return str(ROOT / "examples" / f"{name}.yaml")


def write(folder: Path, **changes: Any) -> str:
    """A small workload file; sections replace those of the base."""
    base: dict[str, Any] = {
        "version": 1,
        "name": "small",
        "model": {"preset": "bert-base"},
        "training": {"samples": 5_000_000, "global_batch": 256, "sequence_length": 128, "precision": "fp16"},
    }
    path = folder / "w.yaml"
    path.write_text(json.dumps({**base, **changes}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["bert-large", "gpt3-175b", "onprem-comparison"])
def test_the_table_fits_a_terminal(ask: Run, name: str) -> None:
    done = ask(example(name))
    assert done.code == 0
    assert max(len(line) for line in done.stdout.splitlines()) <= 100
    assert "$" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def numbers(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            # free-form maps carry their unit in the map's own name
            yield from numbers(item, key if key.endswith(UNITS) else name)
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key


def test_every_number_in_json_has_a_unit_in_its_key(ask: Run) -> None:
    for name in ("bert-large", "embed-images-fleet", "images-100gb"):
        assert not unnamed(json.loads(ask(example(name), "-o", "json").stdout))


@pytest.mark.catalog("whole")
def test_every_number_of_a_fleet_of_runs_has_a_unit_in_its_key() -> None:
    """Whole runs on several offers, with shared places and spot: sections that no other example has together."""
    plan = json.loads(str(render_answer(plan_answer(plan_of("hpo-fleet")), "json")))
    assert len(plan["lines"]) > 1
    assert not unnamed(plan)


def unnamed(plan: Any) -> set[str]:
    """Keys of numbers that name no unit."""
    return {key for key in numbers(plan) if not key.endswith(UNITS) and key not in PLAIN}


def test_the_formats_agree(ask: Run) -> None:
    plan = json.loads(ask(str(BERT), "-o", "json").stdout)
    again = yaml.safe_load(ask(str(BERT), "-o", "yaml").stdout)
    assert (again["total_usd"], again["lines"][0]["offer_id"]) == (
        plan["total_usd"],
        plan["lines"][0]["offer_id"],
    )
    rows = list(csv.DictReader(io.StringIO(ask(str(BERT), "-o", "csv").stdout)))
    assert rows[0]["row"] == "line"
    assert rows[0]["offer_id"] == plan["lines"][0]["offer_id"]
    lines = [Decimal(row["cost_usd"]) for row in rows if row["row"] == "line"]
    assert sum(lines) == Decimal(plan["total_usd"])
    assert plan["lines"][0]["instance_type"] in ask(str(BERT), "-o", "md").stdout
    for output in ("json", "yaml", "csv", "md"):
        assert ask(str(BERT), "-o", output).stderr == ""


def test_the_answer_goes_where_it_is_sent(run_cli: Run, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    done = run_cli("optimize", write(tmp_path), "-o", "json", "--out", str(target), *DAY)
    assert (done.code, done.stdout) == (0, "")
    assert json.loads(target.read_text(encoding="utf-8"))["status"] == "planned"


@pytest.mark.catalog("whole")
def test_a_date_fixes_the_answer(run_cli: Run, tmp_path: Path) -> None:
    path = write(tmp_path)
    first, second = (json.loads(run_cli("optimize", path, "-o", "json", *DAY).stdout) for _ in range(2))
    for plan in (first, second):
        plan["proof"].pop("seconds")
    assert first == second
    assert first["start"].startswith("2026-11-20T00:00")


def test_the_reason_against_a_type_follows_the_table(ask: Run) -> None:
    done = ask(str(BERT), "--why-not", "p4d.24xlarge", "--why-not", "p9.metal")
    assert done.code == 0
    assert "p4d.24xlarge: " in done.stdout
    against = re.search(
        r"(\$[\d,]+) \(\+\$[\d,]+\), [\d.]+ h \(\+[\d.]+ h against the plan\)", done.unwrapped
    )
    assert against and against[1].endswith("0"), done.stdout  # no digits beyond those on the screen
    assert "p9.metal: not in the catalog" in done.stdout
    to_json = ask(str(BERT), "--why-not", "p4d.24xlarge", "-o", "json")
    json.loads(to_json.stdout)  # the answer stays machine-readable
    assert "p4d.24xlarge" in to_json.stderr


def test_why_not_breaks_no_line_within_a_region(
    ask: Run, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (str(BERT), "--why-not", "p4d.24xlarge")
    region = re.search(r"feasible: .*? (\w+/\w+-)[\w-]+", ask(*asked).unwrapped)
    assert region is not None
    monkeypatch.setenv("COLUMNS", str(region.end(1) - region.start()))  # room for the first half of its name
    against = run_cli("optimize", *asked, *DAY).stdout.partition("feasible: ")[2]
    assert region[0].split()[-1] in against, against


@pytest.mark.catalog("whole")
def test_why_not_tells_what_removes_a_type(run_cli: Run, tmp_path: Path) -> None:
    path = write(tmp_path, constraints={"instance_types": {"deny": ["p4d.*"]}})
    done = run_cli("optimize", path, "--why-not", "p4d.24xlarge", "--why-not", "p3.2xlarge", *DAY)
    assert "instance_type: excludes" in done.stdout
    assert "price_refused: excludes" in done.stdout  # p3 is retired
    alone = write(tmp_path, constraints={"instance_types": {"allow": ["p4d.24xlarge"]}})
    plan = json.loads(run_cli("optimize", alone, "-o", "json", *DAY).stdout)
    said = re.search(r"without instance_type: (\d+) x p4d.24xlarge .*?, ([\d.]+) h", done.unwrapped)
    assert said and int(said[1]) == sum(line["nodes"] for line in plan["lines"]), done.stdout
    assert float(said[2]) == pytest.approx(plan["hours"], abs=0.06)
    big = write(tmp_path, model={"preset": "gpt-3-175b"}, training={"samples": 1000, "global_batch": 64})
    memory = run_cli("optimize", big, "--why-not", "g4dn.xlarge", *DAY)
    assert "does not run" in memory.stdout


@pytest.mark.catalog("whole")
def test_old_prices_can_be_refused(run_cli: Run) -> None:
    done = run_cli("optimize", str(BERT), "--max-age", "1", *DAY)
    assert (done.code, done.stdout) == (4, "")
    plan = json.loads(run_cli("optimize", str(BERT), "-o", "json", *DAY).stdout)
    line = plan["lines"][0]
    named = f"{line['instance_type']} ({line['price_as_of']})"
    assert f"the answer depends on prices older than 1 days: {named}" in done.stderr
    assert "--max-age" in done.stderr


def test_the_fastest_plan_is_faster_and_dearer(ask: Run) -> None:
    cheap = json.loads(ask(str(BERT), "-o", "json").stdout)
    fast = json.loads(ask(str(BERT), "-o", "json", "--objective", "time").stdout)
    assert fast["objective"] == "time"
    assert fast["hours"] < cheap["hours"]
    assert Decimal(fast["total_usd"]) > Decimal(cheap["total_usd"])
    assert Decimal(fast["total_usd"]) <= 6_000  # the file's budget still holds


def test_a_fleet_does_not_call_the_cheapest_plan_the_fastest(ask: Run) -> None:
    cheap = json.loads(ask(example("embed-images-fleet"), "-o", "json").stdout)
    done = ask(example("embed-images-fleet"), "-o", "json", "--objective", "time")
    assert done.code == 2 or json.loads(done.stdout)["hours"] < cheap["hours"]


@pytest.mark.catalog("whole")
def test_flagged_offers_are_admitted_only_on_demand(run_cli: Run, tmp_path: Path) -> None:
    path = write(tmp_path, constraints={"providers": ["aws"], "instance_types": {"allow": ["p3.*"]}})
    plain = run_cli("optimize", path, "-o", "json", *DAY)  # p3 is retired
    assert plain.code == 3
    assert {"price_refused"} <= {count["name"] for count in json.loads(plain.stdout)["filters"]}
    flagged = run_cli("optimize", path, "-o", "json", "--allow-flagged", *DAY)
    assert flagged.code == 0
    assert "retired" in json.loads(flagged.stdout)["lines"][0]["flags"]


@pytest.mark.catalog("whole")
def test_eight_a100_on_gcp_are_not_bought_at_a_dws_price(run_cli: Run, tmp_path: Path) -> None:
    kinds = {"allow": ["a2-highgpu-8g", "a2-ultragpu-8g"]}
    limits = {"providers": ["gcp"], "purchase_options": ["on_demand"], "instance_types": kinds}
    done = run_cli("optimize", write(tmp_path, constraints=limits), "-o", "json", *DAY)
    plan = json.loads(done.stdout)
    assert plan["lines"]
    for line in plan["lines"]:
        assert "dws_priced_as_on_demand" not in line["flags"]
        assert Decimal(line["price_per_hour"]) > 15  # eight A100 at list; the DWS price is about half of it


@pytest.mark.catalog("whole")
def test_derived_commitments_are_admitted_only_on_request(run_cli: Run, tmp_path: Path) -> None:
    path = write(tmp_path, constraints={"purchase_options": ["reserved_3y"]})
    plain = json.loads(run_cli("optimize", path, "-o", "json", *DAY).stdout)
    derived = json.loads(run_cli("optimize", path, "-o", "json", "--allow-derived", *DAY).stdout)
    assert derived["proof"]["offers"] > plain["proof"]["offers"]
    assert all(line["price_basis"] != "derived" for line in plain["lines"])


@pytest.mark.parametrize("name", ["gpt3-175b", "stable-diffusion-finetune"])
def test_the_milp_agrees_on_real_prices(ask: Run, name: str) -> None:
    exact = json.loads(ask(example(name), "-o", "json").stdout)
    done = ask(example(name), "-o", "json", "--solver", "milp", "--backend", "scipy")
    assert done.code == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["lines"] == exact["lines"]
    assert plan["total_usd"] == exact["total_usd"]
    assert plan["proof"]["solver"].startswith("scipy")


@pytest.mark.parametrize("name", ["bert-large", "hpo-fleet"])
def test_an_unknown_backend_is_a_usage_error(run_cli: Run, name: str) -> None:
    done = run_cli("optimize", example(name), "--solver", "milp", "--backend", "guroby", *DAY)
    assert done.code == 2
    assert "scipy" in done.stderr


@pytest.mark.parametrize(
    ("limits", "relaxed"),
    [
        ({"budget_usd": 0.01}, "budget"),
        ({"deadline": "10m"}, "deadline"),
        ({"min_throughput": {"tokens_per_s": 1e12}}, "throughput"),
        ({"providers": ["lambda"], "purchase_options": ["spot"]}, "purchase_option"),
    ],
)
def test_an_impossible_question_is_answered_in_every_format(
    run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, Any], relaxed: str
) -> None:
    # one answer, written in each format: to find what must give way takes seconds
    find_plan = functools.cache(lambda: optimize(*asked[-1]))
    asked: list[tuple[LoadedWorkload, Options]] = []
    monkeypatch.setattr(
        "planner.workloads.answer.optimize", lambda *question: asked.append(question) or find_plan()
    )
    path = write(tmp_path, constraints=limits)
    texts = {}
    for output in ("json", "yaml", "csv", "md", "table"):
        done = run_cli("optimize", path, "-o", output, *DAY)
        assert done.code == 3
        assert done.stderr == ""
        assert done.stdout
        texts[output] = done.stdout
    plan = json.loads(texts["json"])
    assert plan["status"] == "infeasible"
    assert plan["lines"] == []
    assert plan["filters"]
    assert relaxed in {item["constraint"] for item in plan["relaxations"]}
    assert yaml.safe_load(texts["yaml"])["status"] == "infeasible"
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert {row["status"] for row in rows} == {"infeasible"}
    assert "No feasible plan" in texts["table"]
    assert max(len(line) for line in texts["table"].splitlines()) <= 100


def test_a_fleet_without_an_answer_says_so(run_cli: Run, tmp_path: Path) -> None:
    path = write(tmp_path, kind="fleet", fleet={"runs": 500}, constraints={"deadline": "6h", "max_nodes": 2})
    done = run_cli("optimize", path, "-o", "json", *DAY)
    assert done.code == 3
    plan = json.loads(done.stdout)
    assert plan["status"] == "infeasible"
    assert plan["relaxations"]


def test_a_task_is_marked_as_unsure_with_its_neighbours(ask: Run) -> None:
    plan = json.loads(ask(example("images-100gb"), "-o", "json").stdout)
    assert plan["confidence"] == "low"
    assert len(plan["sensitivity"]) == 3
    costs = [Decimal(item["best"]["cost_usd"]) for item in plan["sensitivity"] if item["best"]]
    assert costs == sorted(costs)
    assert json.loads(ask(str(BERT), "-o", "json").stdout)["confidence"] == "normal"


@pytest.mark.catalog("whole")
def test_alternatives_cover_every_provider_that_can_do_it(ask: Run) -> None:
    plan = json.loads(ask(str(BERT), "-o", "json").stdout)
    assert {other["provider"] for other in plan["alternatives"]} >= {"aws", "gcp", "azure", "lambda"}
    more = json.loads(ask(str(BERT), "-o", "json", "--max-results", "12").stdout)
    assert len(more["alternatives"]) > len(plan["alternatives"])


def test_a_read_only_cache_changes_nothing(run_process: Run, tmp_path: Path) -> None:
    path = write(tmp_path)
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    for place in (locked, blocked):
        done = run_process(
            "optimize", path, "-o", "json", *DAY, env={"PLANNER_CACHE_DIR": str(place / "cache")}
        )
        assert done.code == 0
        assert done.stderr == ""
        assert json.loads(done.stdout)["status"] == "planned"
    if os.geteuid() != 0:
        assert not list(locked.iterdir())


def test_spot_alone_by_a_deadline_says_that_no_record_shows_it(run_cli: Run) -> None:
    warned = "no recorded spot availability there, and no fall-back"
    spot = ("optimize", str(BERT), "--set", "constraints.purchase_options=[spot]", *DAY)
    assert warned in run_cli(*spot).unwrapped
    why = run_cli(*spot, "--set", "spot.zones=single", "--details", "risk").unwrapped
    assert "spot alone meets the deadline with" in why and "no on-demand is needed" not in why
    assert warned not in run_cli("optimize", str(BERT), *DAY).unwrapped  # falls back
