"""Rendered plans: goldens for the reader's eye, and what must hold for any plan, hostile ones included."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from planner.finops.focus_out import with_focus
from planner.job.other_limits_report import other_limits_sections
from planner.plan.model import Plan
from planner.plan.report import plan_answer
from planner.render import FORMATS, render_answer
from planner.render.formats import PLAN_FORMATS
from planner.render.text import clean, columns, display_width, wrap
from tests.draws import draws
from tests.planner.render.render_plans import (
    EVIL,
    FLEET,
    HOSTILE,
    INFEASIBLE,
    PLANS,
    SPOT,
    TRAINING,
    other_limits_of,
)

GOLDEN = Path(__file__).parents[2] / "fixtures" / "golden" / "render"
TEXTS = ["table", "md"]
WRITTEN = [
    name for name in PLAN_FORMATS if not FORMATS[name].complete
]  # pages and workbooks have tests of their own


def render_plan(
    plan: Plan,
    fmt: str,
    *,
    width: int = 100,
    color: bool = False,
    verbose: bool = False,
    screen: bool = False,
) -> str:
    """The whole answer, or with `screen` what is shown by default."""
    answer = plan_answer(plan, verbose=verbose, details=() if screen else ("all",))
    text = render_answer(
        with_focus(answer, plan) if fmt == "focus" else answer, fmt, width=width, color=color
    )
    assert isinstance(text, str)
    return text


ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("fmt", WRITTEN)
@pytest.mark.parametrize("name", PLANS)
def test_golden(name: str, fmt: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"render/{name}.{FORMATS[fmt].extension}", render_plan(PLANS[name], fmt, screen=True))


@pytest.mark.parametrize("name", PLANS)
def test_golden_details(name: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"render/{name}.details.txt", render_plan(PLANS[name], "table"))


@pytest.mark.parametrize("name", ["spot", "infeasible"])
def test_golden_verbose_table(name: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"render/{name}.verbose.txt", render_plan(PLANS[name], "table", verbose=True))


@pytest.mark.parametrize("name", PLANS)
def test_no_two_sections_of_a_page_have_one_title(name: str) -> None:
    """What the screen shows in brief and the page again with all of it is told apart."""
    page = render_plan(PLANS[name], "html", screen=True)
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page, re.DOTALL)
    assert len(titles) > 3 and len(set(titles)) == len(titles)


def test_every_format_has_a_golden_for_every_plan_and_no_golden_is_left_over() -> None:
    wanted = {f"{name}.{FORMATS[fmt].extension}" for name in PLANS for fmt in WRITTEN}
    wanted |= {f"{name}.details.txt" for name in PLANS} | {"spot.verbose.txt", "infeasible.verbose.txt"}
    assert {path.name for path in GOLDEN.iterdir()} == wanted


def test_formats_are_distinct_and_described() -> None:
    assert len({fmt.extension for fmt in FORMATS.values()}) == len(FORMATS)
    assert all(fmt.help for fmt in FORMATS.values())


def test_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="table, json, csv, yaml, md"):
        render_plan(TRAINING, "pdf")


@pytest.mark.parametrize("fmt", WRITTEN)
@pytest.mark.parametrize("name", PLANS)
def test_text_ends_in_one_newline_and_repeats_exactly(name: str, fmt: str) -> None:
    text = render_plan(PLANS[name], fmt)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert text == render_plan(PLANS[name], fmt)


@pytest.mark.parametrize("shown", [{"screen": True}, {}, {"verbose": True}], ids=str)
@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("name", PLANS)
def test_no_table_line_is_wider_than_asked(name: str, width: int, shown: dict[str, bool]) -> None:
    text = render_plan(PLANS[name], "table", width=width, **shown)
    widest = max(text.split("\n"), key=display_width)
    assert display_width(widest) <= width, widest


@pytest.mark.parametrize("fmt", WRITTEN)
def test_hostile_text_cannot_steer_a_terminal(fmt: str) -> None:
    text = render_plan(HOSTILE, fmt, verbose=True) + render_plan(HOSTILE, fmt, screen=True)
    assert not [c for c in text if not c.isprintable() and c != "\n"]


def test_colour_changes_no_character_that_is_read() -> None:
    for screen in (True, False):
        colored = render_plan(SPOT, "table", color=True, screen=screen)
        assert "\x1b[1m" in colored
        assert ANSI.sub("", colored) == render_plan(SPOT, "table", screen=screen)


def test_the_verdict_comes_first_and_is_complete() -> None:
    verdict = " ".join(render_plan(TRAINING, "table").split("\n\n")[0].split())
    assert verdict == (
        "Cheapest feasible plan: 4 x p4d.24xlarge (32 x a100-40gb-sxm) on_demand in aws/us-east-1: "
        "$8,993.88, 101.2 h (4.2 days), finishes 2026-11-24 17:15 UTC, deadline 2026-11-27 12:00 UTC"
    )


def test_derived_prices_are_marked_with_legend_and_date() -> None:
    text = render_plan(SPOT, "table")
    assert "~$8.1234" in text
    assert "derived price per node-hour of 2026-10-28" in " ".join(text.split())
    assert "~ derived:" in text
    assert "~" not in render_plan(TRAINING, "table")


def test_listing_price_is_not_called_availability_and_quota_says_not_checked() -> None:
    text = " ".join(render_plan(TRAINING, "table").split())
    assert "Running On-Demand P instances L-417A185B aws/us-east-1 384 vCPU not checked" in text
    assert "a listed price is not availability" in text


def test_what_is_left_out_is_said() -> None:
    assert "taxes; support plans" in render_plan(TRAINING, "table")
    assert "reserved_3y: no price published" in render_plan(TRAINING, "table")


def test_infeasible_says_what_emptied_the_set_and_the_smallest_change() -> None:
    text = render_plan(INFEASIBLE, "table")
    assert text.startswith("No feasible plan for llama-3-8b-pretraining: none of 15,321 candidates")
    assert "Smallest change that admits a candidate: deadline 24 h -> 31.4 h" in text
    assert "memory + deadline     2,210" in text


def test_verbose_shows_every_assumption_and_every_cost_line() -> None:
    for fmt in TEXTS:
        words = render_plan(TRAINING, fmt, verbose=True).split()
        for item in TRAINING.assumptions:
            assert item.key in words
        for line in TRAINING.lines[0].costs:
            assert set(line.label.split()) <= set(words)


def test_brief_assumptions_show_the_doubtful_ones_first() -> None:
    section = render_plan(TRAINING, "table").partition("Assumptions\n")[2]
    assert section.index("(unknown)") < section.index("(model)") < section.index("(default)")


def test_a_fleet_lists_each_line_with_its_own_currency() -> None:
    text = render_plan(FLEET, "table")
    assert "3 offers, 20 nodes, 20 accelerators" in text
    assert "CNY 13.20" in text
    assert "1 CNY = $0.138" in text


def test_json_holds_the_whole_plan_with_sorted_keys_and_decimal_strings() -> None:
    text = render_plan(SPOT, "json")
    loaded = json.loads(text)
    assert list(loaded) == sorted(loaded)
    assert loaded == json.loads(json.dumps(SPOT.to_dict()))
    assert Decimal(loaded["total_usd"]) == SPOT.total_usd
    assert set(loaded) >= {"schema_version", "planner_version", "catalog", "currency"}


def test_json_and_yaml_never_hold_nan_or_infinity() -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    loaded = json.loads(render_plan(HOSTILE, "json"), parse_constant=refuse)
    assert loaded["hours"] is None
    assert yaml.safe_load(render_plan(HOSTILE, "yaml"))["hours"] is None


@pytest.mark.parametrize("name", [name for name in PLANS if name != "hostile"])
def test_yaml_and_json_hold_the_same_values(name: str) -> None:
    assert yaml.safe_load(render_plan(PLANS[name], "yaml")) == json.loads(render_plan(PLANS[name], "json"))


def test_csv_has_one_row_per_line_baseline_and_alternative() -> None:
    rows = list(csv.DictReader(io.StringIO(render_plan(SPOT, "csv"))))
    assert [row["row"] for row in rows] == ["line", "baseline", "alternative", "alternative", "launch"]
    assert Decimal(rows[0]["cost_usd"]) == SPOT.lines[0].cost_usd
    assert [row["rank"] for row in rows] == ["1", "", "2", "3", ""]
    assert (rows[4]["p_meet_deadline"], rows[4]["cost_p90_usd"]) == ("0.9342", "5230.40")
    assert rows[2]["delta_hours"] == "-20.25"  # a number, not text: a sign is no formula


def test_csv_of_an_infeasible_plan_still_says_so() -> None:
    rows = list(csv.DictReader(io.StringIO(render_plan(INFEASIBLE, "csv"))))
    assert {row["status"] for row in rows} == {"infeasible"}
    assert [row["row"] for row in rows] == ["relaxation", "relaxation"]
    bare = render_plan(replace(INFEASIBLE, relaxations=()), "csv")
    assert [row["row"] for row in csv.DictReader(io.StringIO(bare))] == ["infeasible"]


def _is_number(text: str) -> bool:
    try:
        return Decimal(text).is_finite()
    except ArithmeticError:
        return False


def test_csv_cells_cannot_become_formulas() -> None:
    rows = list(csv.reader(io.StringIO(render_plan(HOSTILE, "csv"))))
    dangerous = [
        c for row in rows for c in row if c.lstrip()[:1] in ("=", "+", "-", "@", "\t") and not _is_number(c)
    ]
    assert dangerous == []
    assert "'@SUM(1+1)*cmd|' /C calc'!A0" in rows[1]


def test_markdown_shows_hostile_text_as_it_is() -> None:
    text = render_plan(HOSTILE, "md", verbose=True)
    assert "<script>" not in text
    assert "<b>" not in text
    assert "@team" not in text
    assert "\\*\\*bold\\*\\* \\_it\\_ snake_case" in text
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    for table in tables:
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1, table


def test_markdown_folds_the_grounds_but_not_the_answer() -> None:
    text = render_plan(TRAINING, "md", screen=True)
    before, _, folded = text.partition("<details>")
    assert "- **cost**: $9,000 expected" in before
    assert "quota not checked: 384 vCPU" in before
    assert "#### Cost" in folded and "#### Cost" not in before
    assert "#### Proof" in folded
    assert text.count("<details>") == text.count("</details>") == 1


def test_a_plan_with_nothing_optional_renders_in_every_format() -> None:
    bare = replace(
        TRAINING,
        deadline=None,
        finish_expected=None,
        timeline=(),
        performance=None,
        risk=None,
        savings=None,
        cash=(),
        alternatives=(),
        assumptions=(),
        filters=(),
        unknown_options=(),
        proof=None,
        catalog=(),
        excluded=(),
    )
    for fmt in WRITTEN:
        assert render_plan(bare, fmt) and render_plan(bare, fmt, screen=True)
    assert "no deadline" in render_plan(bare, "table", screen=True)
    assert "no deadline" in render_plan(bare, "table")


@given(
    name=st.text(max_size=300),
    amount=st.decimals(allow_nan=True, allow_infinity=True),
    ratio=st.floats(),
    width=st.integers(min_value=40, max_value=100),
)
@draws(30)
def test_any_text_and_any_number_fits(name: str, amount: Decimal, ratio: float, width: int) -> None:
    line = replace(SPOT.lines[0], instance_type=name, region=name, throughput_per_s=ratio)
    plan: Plan = replace(
        SPOT,
        workload=name,
        lines=(line, line),
        total_usd=amount if amount.is_finite() and abs(amount.adjusted()) < 20 else Decimal(1),
        hours=ratio,
        warnings=(name,),
        unknown_options=(name,),
    )
    for fmt in WRITTEN:
        render_plan(plan, fmt, screen=True)
    whole, screen = (render_plan(plan, "table", width=width, screen=shown) for shown in (False, True))
    for row in (*whole.split("\n"), *screen.split("\n")):
        assert display_width(row) <= width or is_location(row)
        assert row.isprintable()


def is_location(row: str) -> bool:
    """Whether a row is a path or URL and nothing else: it stays whole, however wide it is."""
    return " " not in row.strip() and ("/" in row or "\\" in row)


@given(text=st.text(max_size=200), width=st.integers(min_value=4, max_value=80), whole=st.booleans())
@example(text=f"could not read /{'x' * 90}/y.json: not JSON", width=40, whole=True)
@example(text=f"could not read /{'x' * 90}/y.json: not JSON", width=40, whole=False)
def test_wrapping_loses_nothing_and_fits(text: str, width: int, whole: bool) -> None:
    cleaned = clean(text)
    lines = wrap(cleaned, width, whole_locations=whole)
    assert "".join("".join(lines).split()) == "".join(cleaned.split())
    assert all(display_width(line) <= width or (whole and is_location(line)) for line in lines)


@pytest.mark.parametrize("unit", ["%", "h", "min", "GiB", "%;", "GiB)"])
def test_no_line_ends_between_a_number_and_its_unit(unit: str) -> None:
    text = f"in time with 92 {unit} or 1,234.5 {unit} of it all, 7 {unit}"
    for width in range(20, 70):
        lines = wrap(text, width)
        assert " ".join(lines) == text and max(map(display_width, lines)) <= width
        assert not any(line[-1].isdigit() for line in lines)
    assert wrap("takes 12 hosts of it", 8) == ["takes 12", "hosts of", "it"]


@pytest.mark.parametrize("indent", ["", "    "])
@pytest.mark.parametrize(
    "location",
    [
        f"/{'tmp/' * 40}broken.json",
        f"https://example.org/{'a-b/' * 40}",
        f"C:\\{'x' * 99}",
        f"../{'a' * 99}:",
    ],
)
def test_a_location_wider_than_the_line_stays_whole(location: str, indent: str) -> None:
    lines = wrap(f"the calibration {location} cannot be read: not JSON", 40, indent=indent)
    assert indent + location in lines
    assert all(display_width(line) <= 40 for line in lines if location not in line)


@given(
    rows=st.lists(
        st.tuples(st.text(max_size=60), st.text(max_size=60), st.integers()), min_size=1, max_size=5
    ),
    width=st.integers(min_value=40, max_value=100),
)
@example(rows=[("", "~\x1b00000\x1b\x1b\U000105bd\U0002fa1e", -1_000_000_000_000_000_000_000)], width=40)
@settings(deadline=None)
def test_a_grid_fits_and_shows_every_number_whole(rows: list[tuple[str, str, int]], width: int) -> None:
    cells = [(clean(first), clean(second), str(number)) for first, second, number in rows]
    lines = columns(("first", "second", "number"), cells, "llr", width)
    assert all(display_width(line) <= width for line in lines)
    if lines[0].split() == ["first", "second", "number"]:
        assert all(any(line.endswith(number) for line in lines) for _, _, number in cells)


def test_only_a_page_with_a_slider_may_run_a_script_and_only_that_one() -> None:
    plain = render_plan(SPOT, "html")
    assert "script-src" not in plain and "<script" not in plain
    sections = other_limits_sections(other_limits_of(SPOT, EVIL), SPOT)
    page = render_answer(replace(plan_answer(HOSTILE), sections=sections), "html")
    assert isinstance(page, str)
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'; " in page and f"script-src 'sha256-{digest}'; " in page
    assert page.count("<script") == 1 and "<b>[link]" not in page
