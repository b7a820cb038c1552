"""The first screen of every question: verdict, one table, notes, proof, next step; the rest behind `--details`."""

from __future__ import annotations

import contextlib
import functools
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import click
import pytest

from planner.cli import root
from planner.commands.output import show_answer
from planner.render import render_answer
from planner.render.model import Answer, Section
from planner.render.screen import MOST_NOTES, Screen, on_screen
from planner.render.text import display_width
from tests.conftest import ROOT, Run
from tests.planned_examples import pools_of

MOST_LINES = {100: 34, 80: 45}
DAY = ("--as-of", "2026-11-20")
EXAMPLES = ROOT / "examples"
# each command as typed; labels of its verdict, in order; whether another run, or machine, shows the same text
COMMANDS = {
    "serving": ((str(EXAMPLES / "serving.yaml"), *DAY), ("PLAN", "COST", "LOAD"), True),
    "schedule": ((str(EXAMPLES / "schedule.yaml"), "--gap", "5%"), ("PLAN", "COST", "DONE"), False),
    "pipeline": ((str(EXAMPLES / "pipeline.yaml"), *DAY), ("PLAN", "COST", "DONE"), True),
    "pools": ((str(EXAMPLES / "grpo-8b.yaml"), *DAY), ("PLAN", "COST", "DONE", "STEP", "INSTEAD"), True),
    "commit": (
        (str(EXAMPLES / "commit.yaml"), "--gap", "10%", "--no-regret"),
        ("BUY", "COST", "WORST", "OWED"),
        False,
    ),
    "frontier": ((str(EXAMPLES / "bert-large.yaml"), *DAY), ("CHEAPEST", "BEST TRADE", "SOONEST"), True),
    "estimate": (
        (str(EXAMPLES / "bert-large.yaml"), "--instance-type", "p4d.24xlarge"),
        ("SPEED", "MEMORY"),
        True,
    ),
    "forecast": (("--daily", str(EXAMPLES / "daily-costs.csv")), ("LANDS", "THEN"), True),
    "budget": (
        (str(EXAMPLES / "budgets.yaml"), "--daily", str(EXAMPLES / "daily-costs.csv")),
        ("GATE", "DATA"),
        True,
    ),
    "portfolio": ((str(EXAMPLES / "portfolio.yaml"), *DAY), ("PLAN", "COST", "DONE"), True),
    "tco": (
        (str(EXAMPLES / "tco-4xa100.yaml"), *DAY),
        ("VERDICT", "OWN", "RENT", "NPV", "PAYS", "REVERSED BY"),
        True,
    ),
}


@functools.cache
def answer_of(command: str, *more: str) -> Answer:
    """What a command of the list shows, as it is before it is laid out."""
    return shown_by(command, *COMMANDS[command][0], *more)


@functools.cache
def shown_by(command: str, *words: str) -> Answer:
    """What a command line shows."""
    shown: list[Answer] = []
    target = f"planner.commands.{command}.show_answer"
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(SystemExit, click.exceptions.Exit))
        stack.enter_context(mock.patch(target, lambda answer, *_: shown.append(answer)))
        if command == "pools":  # other tests ask the same
            answer = pools_of(Path(words[0]).stem)
            stack.enter_context(mock.patch("planner.pipelines.pools.plan_pools", lambda *_: answer))
        root.main([command, *words], standalone_mode=False)
    return shown[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_example_fits_a_screen(command: str, check_golden: Callable[[str, str], None]) -> None:
    _, labels, same = COMMANDS[command]
    for width, most in MOST_LINES.items():
        text = str(render_answer(answer_of(command), "table", width=width))
        if same:
            check_golden(f"screen/{command}.{width}.txt", text)
        lines = text.splitlines()
        assert len(lines) <= most, text
        assert max(map(display_width, lines)) <= width
        places = [
            text.index(f"\n{mark}") for mark in (*labels, "BEFORE YOU ") if mark in labels or mark in text
        ]
        assert places == sorted(places) and places[-1] < text.index("next: planner ")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_answer_is_as_wide_as_columns_says(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    show_answer(answer_of(command), "table", None)
    widths = list(map(display_width, capsys.readouterr().out.splitlines()))
    assert 40 < max(widths) <= 64


def test_a_frontier_of_a_portfolio_fits_a_screen(check_golden: Callable[[str, str], None]) -> None:
    asked = ("portfolio", str(EXAMPLES / "portfolio.yaml"), *DAY, "--frontier")
    for points in ("5", "20"):
        for width, most in MOST_LINES.items():
            text = str(render_answer(shown_by(*asked, points), "table", width=width))
            lines = text.splitlines()
            assert len(lines) <= most and max(map(display_width, lines)) <= width, text
            places = [
                text.index(word) for word in ("CHEAPEST", "BEST TRADE", "SOONEST", "COST ", "BEFORE YOU BUY")
            ]
            assert places == sorted(places) and places[-1] < text.index("next: planner portfolio FILE, ")
    check_golden(
        "screen/portfolio-frontier.100.txt", str(render_answer(shown_by(*asked, "5"), "table", width=100))
    )
    assert "points between not shown" in text
    exact = shown_by(*asked, "5").values
    assert isinstance(exact, dict) and exact["points"][0]["cost_usd"] != round(
        exact["points"][0]["cost_usd"], 0
    )


def test_points_of_a_frontier_that_are_one_plan_are_one_row(tmp_path: Path) -> None:
    one = (
        "version: 1\nkind: portfolio\nname: one\nstart: 2026-12-01\njobs:\n- name: only\n  candidates:\n"
        "  - {provider: aws, region: us-east-2, instance_type: g5.xlarge, nodes: 1, hours: 2, cost_usd: 4}\n"
    )
    (tmp_path / "one.yaml").write_text(one, encoding="utf-8")
    text = str(
        render_answer(shown_by("portfolio", str(tmp_path / "one.yaml"), *DAY, "--frontier", "4"), "table")
    )
    assert "the least delay of 1 job" in text and "SOONEST" not in text
    assert len(re.findall(r"^ *\$4\b.*", text, re.MULTILINE)) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_the_next_steps_can_be_typed(command: str) -> None:
    text = " ".join(str(render_answer(answer_of(command), "table", width=400)).split())
    steps = text[text.index("next: planner ") + len("next: planner ") :].partition("; --details")[0]
    for step in steps.split(", "):
        name, *words = shlex.split(step)
        found = root.get_command(click.Context(root), name)
        assert found is not None, step
        found.make_context(name, words)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_section_can_be_asked_for(command: str) -> None:
    found = root.get_command(click.Context(root), command)
    assert found is not None
    (option,) = (one for one in found.params if one.name == "details")
    assert isinstance(option.type, click.Choice)
    answer = answer_of(command)
    told = answer.front[-1].sentences[-1].partition("--details ")[2].replace(" or ", ", ").split(", ")
    keys = {section.key for section in answer.sections} | {*told}
    assert keys - {"..."} <= {*option.type.choices}


def test_details_show_what_they_name_and_nothing_else(run_cli: Run, asked_once: Callable[..., None]) -> None:
    asked_once("planner.serving.answer.plan_serving")
    asked = ("serving", *COMMANDS["serving"][0])
    assert "\nMachines\n" in run_cli(*asked, "--details", "machines").stdout
    whole, part = (run_cli(*asked, "--details", name).stdout for name in ("all", "proof"))
    assert "\nProof\n" in part and "\nMachines\n" not in part and "\nMachines\n" in whole
    wrong = run_cli(*asked, "--details", "machine")
    assert wrong.code == 2 and "machines" in wrong.stderr


def test_pages_and_data_keep_everything() -> None:
    answer = answer_of("pipeline")
    for fmt in ("md", "html"):
        text = str(render_answer(answer, fmt))
        assert "Before you buy" in text and "Data between tasks" in text and "dropped exactly" in text, fmt
    values = answer.values
    assert isinstance(values, dict)
    low, high = float(values["cost_p10_usd"]), float(values["cost_p90_usd"])
    assert low < float(values["total_usd"]) < high and values["deadline_confidence"] == 0.9


def _answer(sections: int) -> Answer:
    behind = tuple(Section(f"s{at}", f"S{at}", ("said",)) for at in range(sections))
    return Answer("topic", "title", ("more",), behind, {})


def _screen(notes: int) -> Screen:
    rows = [("plan", "plan", "x", "text", "x")]
    return Screen("asked", rows, None, [f"note {at}" for at in range(notes)], "Proven.", ("size",))  # type: ignore[arg-type]


def test_a_screen_shows_the_first_notes_and_counts_the_others() -> None:
    shown = on_screen(_answer(2), _screen(MOST_NOTES + 3)).front
    notes = next(section for section in shown if section.key == "notes").sentences
    assert len(notes) == MOST_NOTES and notes[-1].endswith("(+ 3 more: --details all)")
    assert shown[-1].sentences == ("Proven.", "next: planner size; --details s0, s1 or all")


@pytest.fixture(scope="module")
def sections() -> Iterator[tuple[Section, ...]]:
    yield on_screen(_answer(3), _screen(0)).sections


def test_sections_support_the_screen(sections: tuple[Section, ...]) -> None:
    assert all(section.detail for section in sections)
    alone = on_screen(_answer(3), _screen(0), details=("s1",))
    assert [section.key for section in alone.sections] == ["s1"] and not alone.front
