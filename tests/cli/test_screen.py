"""Every example is planned once: its plan is complete, holds, fits a screen, and is exported; the rest is behind
`--details`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest

from catalogs.offers.flags import load_flags
from planner.asked.options import Options
from planner.cli import root
from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.frameworks.model import parallel_of
from planner.export.frameworks.registry import FRAMEWORKS, part_of, writer_of
from planner.export.launch import launch_of
from planner.export.registry import TARGETS, export
from planner.export.registry import Options as Chosen
from planner.export.view import Launch
from planner.inputs.load import load_workload
from planner.plan.details import DETAILS
from planner.plan.report import plan_answer
from planner.plan.starters import starter_of
from planner.render import render_answer
from planner.render.text import display_width
from planner.workloads.answer import optimize
from tests.conftest import ROOT, Run
from tests.planned_examples import DAY, plan_of
from tests.planner.export.checks import CHECKS, Exports
from tests.planner.export.test_frameworks import part_in

# Lines at so many columns: an answer is read without scrolling.
MOST_LINES = {100: 34, 80: 45}
OF_OTHER_COMMANDS = {
    "budgets", "commit", "onprem-machines", "pipeline", "portfolio", "robust", "rolling", "schedule", "serving",
    "serving-llama-8b", "showback", "spot-sweep", "sweep", "tco-2x4090", "tco-4xa100", "tco-8xh100",
}  # fmt: skip
EXAMPLES = sorted({path.stem for path in (ROOT / "examples").glob("*.yaml")} - OF_OTHER_COMMANDS)
KUBEFLOW = [("kubernetes", {"kind": kind, "queue": "none"}) for kind in ("pytorchjob", "trainjob")]
BERT = str(ROOT / "examples" / "bert-large.yaml")


def saved(name: str) -> dict[str, Any]:
    """What `-o json` writes."""
    content: dict[str, Any] = json.loads(str(render_answer(plan_answer(plan_of(name)), "json")))
    return content


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_planned(name: str) -> None:
    plan = saved(name)
    assert plan["status"] == "planned"
    assert plan["schema_version"] == 2
    assert plan["currency"] == "USD"
    assert plan["proof"]["verified"] is True
    assert all(len(source["sha256"]) == 64 and source["newest_as_of"] for source in plan["catalog"])
    assert {source["provider"] for source in plan["catalog"]} >= {"aws", "gcp", "azure", "alibaba", "lambda"}
    total = sum(Decimal(cost["amount_usd"]) for line in plan["lines"] for cost in line["costs"])
    assert total == Decimal(plan["total_usd"]) > 0
    assert plan["assumptions"]
    assert plan["excluded"]


def test_the_page_states_how_many_lines_each_example_takes() -> None:
    page = (ROOT / "docs" / "optimisation" / "choices.md").read_text(encoding="utf-8")
    stated = {
        cells[0]: cells[3:5]
        for cells in re.findall(r"(?m)^\| (\S+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page)
    }
    screens = ROOT / "tests" / "fixtures" / "golden" / "screen"
    counted = {
        name: tuple(
            str(len((screens / f"{name}.{width}.txt").read_text(encoding="utf-8").splitlines()))
            for width in (100, 80)
        )
        for name in EXAMPLES
    }
    assert stated == counted


def test_gpt3_is_planned_on_the_machines_that_its_title_names() -> None:
    lines = plan_of("gpt3-175b").lines
    assert sum(line.accelerators for line in lines) == 1024
    assert {line.accelerator for line in lines} == {"a100-80gb-sxm"}


@pytest.mark.parametrize(
    "name",
    [
        "bert-large",
        "batch-inference-70b",
        "grpo-8b",
        "images-100gb",
        "low-carbon",
        "mixtral-eu",
        "owned-top-up",
    ],
)
def test_a_milp_chooses_the_same_plan(name: str) -> None:
    """Of each kind of job and of place; fleets are MILPs as they are."""
    options = Options(DAY, as_of=DAY.date(), solver="both")
    both, one = optimize(load_workload(ROOT / "examples" / f"{name}.yaml"), options).plan, plan_of(name)
    assert both.proof is not None and "which agree" in both.proof.method
    assert (both.total_usd, both.run_id) == (one.total_usd, one.run_id)


@pytest.mark.parametrize(
    "name",
    ["hpo-fleet", "mixtral-eu", "images-100gb", "onprem-comparison", "grpo-8b", "batch-inference-70b"],
)
def test_the_plan_of_an_example_holds(run_cli: Run, tmp_path: Path, name: str) -> None:
    target = tmp_path / "plan.json"
    target.write_text(json.dumps(saved(name)), encoding="utf-8")
    done = run_cli("verify", str(target), "--workload", str(ROOT / "examples" / f"{name}.yaml"))
    assert (done.code, done.stderr) == (0, "")
    assert "holds" in done.stdout


def test_no_plan_uses_a_refused_price() -> None:
    refusing = {flag for flag, row in load_flags().items() if row.severity == "refuse"}
    for name in EXAMPLES:
        plan = plan_of(name)
        used = {flag for line in (*plan.lines, *plan.alternatives) for flag in line.flags}
        assert not used & refusing, name


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_fits_a_screen(name: str, check_golden: Callable[[str, str], None]) -> None:
    answer = plan_answer(plan_of(name))
    for width, most in MOST_LINES.items():
        text = str(render_answer(answer, "table", width=width))
        check_golden(f"screen/{name}.{width}.txt", text)
        lines = text.splitlines()
        assert len(lines) <= most, text
        assert max(map(display_width, lines)) <= width


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_screen_has_the_same_order_and_digits_for_every_kind_of_plan(name: str) -> None:
    plan = plan_of(name)
    text = str(render_answer(plan_answer(plan), "table"))
    marks = [
        "PLAN ",
        "COST ",
        "DONE ",
        "SPEED ",
        "CHOICES ",
        "BEFORE YOU BUY",
        " candidates compared",
        "next: ",
    ]
    places = [text.index(mark) for mark in marks if mark != "BEFORE YOU BUY" or mark in text]
    assert places == sorted(places)
    assert "100 %" not in text
    # an expected cost, its quote and its interval: no cents on a plan that may cost a third more
    amounts = re.findall(r"\$([0-9,.]+[0-9])", text[text.index("COST ") : text.index("SPEED ")])
    assert amounts and all(
        len(amount.replace(",", "").replace(".", "").strip("0")) <= 4 for amount in amounts
    )


def test_a_finish_on_the_last_day_says_why_it_is_in_time() -> None:
    """Its 90 % end is the deadline, and it is kept all the same: on-demand takes over in time."""
    late, early = (
        " ".join(str(render_answer(plan_answer(plan_of(name)), "table")).split())
        for name in ("low-carbon", "llama-3-8b")
    )
    needed = plan_of("low-carbon").launch
    assert needed is not None
    share = f"{100 * needed.p_on_demand_needed_ratio:.0f} %"
    assert re.search(f"in time with 96 %: in {share} of runs on-demand takes over at the last moment", late)
    assert "at the last moment" not in early
    often = replace(needed, p_on_demand_needed_ratio=0.47, finish_p90=needed.finish_p10)
    paid = render_answer(plan_answer(replace(plan_of("low-carbon"), launch=often)), "table")
    assert "in 47 % of runs on-demand takes over" in " ".join(
        str(paid).split()
    )  # most of the cost may be its


@pytest.mark.parametrize("name", ["llama-3-8b", "hpo-fleet"])
def test_a_page_has_what_a_buyer_asks_for_with_dates_and_sources(name: str) -> None:
    plan = plan_of(name)
    page = str(render_answer(plan_answer(plan), "html"))
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page, re.DOTALL)
    wanted = {
        "Choices",
        "Before you buy",
        "Cost",
        "Time",
        "Risk",
        "Storage",
        "Quotas to ask for",
        "Assumptions",
        "Prices",
    }
    assert wanted <= {re.sub(r"<[^>]*>", "", heading).strip() for heading in headings}
    for line in plan.lines:
        assert line.quota.name.partition(" (")[0] in page and line.price_as_of in page
    assert all(source.sha256[:12] in page for source in plan.catalog) and "transfer" in page


def test_details_show_what_they_name_and_nothing_else(
    run_cli: Run, asked_once: Callable[[str], None]
) -> None:
    asked_once("planner.workloads.answer.optimize")
    asked = ("optimize", BERT, "--as-of", "2026-11-20")
    whole = run_cli(*asked, "--details", "all").stdout
    part = run_cli(*asked, "--details", "cost", "--details", "proof").stdout
    assert "\nCost\n" in part and "\nProof\n" in part and "\nRisk\n" not in part
    sections = ("Warnings", "Plan", "Cost", "Time", "Risk", "Baseline", "Alternatives", "Cash", "Proof")
    assert all(f"\n{name}\n" in whole for name in sections)
    verbose = run_cli(*asked, "-v").stdout
    assert "\nCost\n" in verbose and len(verbose) > len(whole)
    wrong = run_cli(*asked, "--details", "costs")
    assert wrong.code == 2 and all(name in wrong.stderr for name in DETAILS)


def test_a_section_names_sections_that_plans_have() -> None:
    plan = plan_of("bert-large")
    sections = {section.key for section in plan_answer(plan, details=("all",)).sections}
    named = {key for keys in DETAILS.values() for key in keys}
    assert sections <= named
    # those of an answer without a plan, of -v, and of samples that are decoded
    assert named - sections <= {"relaxations", "filter_pairs", "loading"}


def test_a_terminal_without_colour_gets_none(run_cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run_cli("optimize", BERT, "--as-of", "2026-11-20").stdout
    assert "\x1b[1m" in str(render_answer(plan_answer(plan_of("bert-large")), "table", color=True))


def test_a_task_shows_every_rung_and_its_low_confidence_in_every_format() -> None:
    answer = plan_answer(plan_of("images-100gb"))
    for fmt in ("table", "md", "html", "json", "yaml"):
        text = str(render_answer(answer, fmt))
        assert re.search(r"low confidence|confidence\"?: \"?low", text), fmt
        for rung in ("small", "medium", "large"):
            named = f"image_classification/{rung}" if fmt in ("json", "yaml") else rung
            # a row of the table: the rung, what is between cells, the plan
            of_the_plan = "" if fmt in ("json", "yaml") else r"(\W|<[^>]+>)+\d+ x "
            assert re.search(rf"{named}\b{of_the_plan}", text), (fmt, rung)
    flat = str(render_answer(answer, "csv"))
    assert flat.count("\nrung,") == 3 and ",low" in flat


@pytest.mark.parametrize("name", ["bert-large", "hpo-fleet"])
def test_the_next_steps_are_commands_as_they_are_typed(name: str) -> None:
    text = " ".join(str(render_answer(plan_answer(plan_of(name)), "table", width=300)).split())
    steps = text[text.index("next: planner ") + len("next: planner ") :].partition(";")[0].split(", ")
    for step in steps:
        command, *words = step.replace("KEY=VALUE", "constraints.deadline=10d").split()
        found = root.get_command(click.Context(root), command)
        assert found is not None
        found.make_context(command, words)
    of_one_job = ["frontier", "compare"] if name == "bert-large" else []
    assert [step.split()[0] for step in steps] == ["explain", *of_one_job, "whatif", "export"]


def test_what_moves_from_place_to_place_is_started_at_one_of_them() -> None:
    moving = {name: plan for name in EXAMPLES if (plan := plan_of(name)).launch and plan.launch.in_turn}
    assert {plan.kind for plan in moving.values()} == {"training", "inference"}
    for name, plan in moving.items():
        assert launch_of(plan).instances == plan.lines[0].nodes, name


def exported(
    target: str, **values: str
) -> tuple[dict[str, Launch], dict[str, tuple[ExportFile, ...]], dict[str, str]]:
    """Every example as it is launched, the files of those that a target takes, and what it says against the others."""
    launches = {name: launch_of(plan_of(name)) for name in EXAMPLES}
    files, refused = {}, {}
    for name, launch in launches.items():
        try:
            files[name] = export(launch, target, Chosen(values=values))
        except InputError as error:
            refused[name] = str(error)
    return launches, files, refused


@pytest.mark.parametrize(("target", "values"), [*((name, {}) for name in TARGETS), *KUBEFLOW])
def test_the_real_program_takes_the_export_of_every_example(
    target: str, values: dict[str, str], tmp_path: Path
) -> None:
    launches, files, _ = exported(target, **values)
    assert files
    assert CHECKS[target](Exports(launches, files, tmp_path)) == ""


def test_what_a_target_cannot_start_it_refuses_by_name(check_golden: Callable[[str, str], None]) -> None:
    lines = []
    for target in TARGETS:
        _, files, refused = exported(target)
        assert all(said.startswith(f"--to {target}: ") for said in refused.values())
        lines += [f"{target}: {len(files)} of {len(EXAMPLES)} examples"]
        for said in dict.fromkeys(refused.values()):
            lines += [f"  not {', '.join(name for name, why in refused.items() if why == said)}: {said}"]
    check_golden("export/examples.txt", "\n".join(lines) + "\n")


def test_the_target_that_an_answer_names_starts_its_plan() -> None:
    named = {name: starter_of(plan_of(name)) for name in EXAMPLES}
    assert set(named.values()) == {"skypilot", "slurm"}
    for target in set(named.values()):
        _, _, refused = exported(target)
        assert not [name for name in refused if named[name] == target]
        if target == "skypilot":
            assert {name for name in named if named[name] == "slurm"} == set(refused)


def test_the_target_named_for_a_capacity_block_buys_it(run_cli: Run, tmp_path: Path) -> None:
    asked = [
        str(ROOT / "examples" / "llama-3-8b.yaml"),
        "--set",
        "preferences.prices=firm",
        "--as-of",
        "2026-11-20",
    ]
    said = run_cli("optimize", *asked).stdout
    assert "capacity_block" in said.split("CHOICES")[0]
    plan = tmp_path / "plan.json"
    assert run_cli("optimize", *asked, "-o", "json", "--out", str(plan)).code == 0
    target = re.findall(r"PLAN\.json\s+--to\s+(\w+)", said)[0]
    assert run_cli("export", str(plan), "--to", target, "--out", str(tmp_path / "launch")).code == 0
    written = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "launch").iterdir())
    assert "capacity_block" in written


def test_the_layout_of_every_example_is_read_back_from_its_script() -> None:
    read_back = set()
    launches, _, _ = exported("torchrun")
    for name, launch in launches.items():
        for framework in FRAMEWORKS if launch.layout else ():
            try:
                part = part_of(framework, launch)
            except InputError as error:
                assert str(error).startswith(f"--framework {framework}: ")
                continue
            script = export(launch, "torchrun", Chosen(framework))[0].text
            found, nodes, gpus = part_in(script, part)
            assert (nodes, gpus) == (launch.nodes, launch.gpus), name
            assert writer_of(framework).parse(found, nodes, gpus) == parallel_of(launch), (name, framework)
            read_back.add(framework)
    assert read_back == set(FRAMEWORKS)
