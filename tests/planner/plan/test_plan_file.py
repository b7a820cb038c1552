"""Saved plans: what is written is read back equal, and what is malformed is named by its place in the JSON."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import operator
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.asked.options import Options, utc_now
from planner.errors import InputError
from planner.inputs.load import load_workload
from planner.plan.file import load_plan
from planner.plan.ids import CostId, TimePartId
from planner.plan.json_schema import plan_schema
from planner.plan.model import Plan
from planner.plan.read import REMEDY
from planner.plan.report import plan_answer
from planner.render import render_answer
from planner.workloads.answer import optimize
from tests.conftest import ROOT, CliResult
from tests.planned_examples import plan_of
from tests.planner.render.render_plans import FLEET, INFEASIBLE, LAUNCH, SPOT, TRAINING
from tests.saved_plans import plan_line, saved_plan
from tests.schema_check import schema_faults

HAND_MADE = {
    "training": TRAINING,
    "spot": SPOT,
    "fleet": FLEET,
    "infeasible": INFEASIBLE,
    "small": saved_plan(plan_line()),
    "nothing": saved_plan(),
    "named": replace(TRAINING, stated_run_id="run-of-the-team"),
    "unbounded": replace(SPOT, launch=replace(LAUNCH, p90_hours=math.inf)),
}
# one synchronous job; instances already owned beside others; spot with a fall-back; spot in turn; independent workers
EXAMPLES = ("resnet50-imagenet", "owned-top-up", "bert-large", "stable-diffusion-finetune", "hpo-fleet")


@pytest.fixture(scope="module", params=(*HAND_MADE, *EXAMPLES, "no-plan"))
def plan(request: pytest.FixtureRequest) -> Plan:
    name = str(request.param)
    if name in HAND_MADE:
        return HAND_MADE[name]
    if name in EXAMPLES:
        return plan_of(name)
    loaded = load_workload(ROOT / "examples" / "resnet50-imagenet.yaml")
    limits = loaded.workload.constraints.model_copy(update={"budget_usd": 0.01})
    loaded = replace(loaded, workload=loaded.workload.model_copy(update={"constraints": limits}))
    return optimize(loaded, Options(utc_now())).plan


def text_of(plan: Plan) -> str:
    return str(render_answer(plan_answer(plan), "json"))


def test_a_plan_is_read_back_equal(plan: Plan) -> None:
    again = Plan.from_dict(plan.to_dict())
    assert again == plan and again.run_id == plan.run_id
    assert Plan.from_dict(json.loads(text_of(plan))) == plan
    assert text_of(Plan.from_dict(json.loads(text_of(plan)))) == text_of(plan)


def test_a_plan_keeps_its_own_schema(plan: Plan) -> None:
    assert schema_faults(json.loads(text_of(plan)), plan_schema()) == []


def test_a_plan_of_version_1_is_read(plan: Plan) -> None:
    """Version 1 had no ids and no parts of summaries; the labels of its time line and costs are those of today."""
    if plan in HAND_MADE.values():
        pytest.skip("labels of hand-made plans are invented")
    old = json.loads(text_of(plan))
    old["schema_version"] = 1
    for part in (*old["timeline"], *(cost for line in old["lines"] for cost in line["costs"])):
        del part["id"]
    summaries = [*old["alternatives"], (old["savings"] or {}).get("baseline")]
    for summary in (*summaries, *(item["best"] for item in (*old["relaxations"], *old["sensitivity"]))):
        (summary or {}).pop("parts", None)
    read = Plan.from_dict(old)
    assert read.timeline == plan.timeline and read.lines == plan.lines and read.run_id == plan.run_id


def test_a_part_that_version_1_did_not_know_is_named() -> None:
    old = {**saved_plan(plan_line()).to_dict(), "schema_version": 1}
    old["lines"][0]["costs"][0] |= {"kind": "gold", "label": "bars"}
    with pytest.raises(
        InputError, match=r"plan: lines\[0\]\.costs\[0\]\.label: version 1 .* 'gold' called 'bars'"
    ):
        Plan.from_dict(old)


amounts = st.integers(0, 10**12).map(lambda millionths: millionths / 1e6)


@given(st.sampled_from(list(TimePartId)), amounts, st.integers(1, 10**6), st.text(), amounts)
def test_any_values_within_the_bounds_are_read_back(
    part: TimePartId, hours: float, nodes: int, text: str, price: float
) -> None:
    plan = saved_plan(plan_line(nodes, hours, price), workload=text, warnings=(text,))
    plan = replace(plan, timeline=(replace(TRAINING.timeline[0], id=part, name=text, hours=hours),))
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


CHANGES: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "a number for a list": (("catalog",), 5, "catalog: must be a list, got 5"),
    "a list for an object": (("risk",), [], "risk: must be an object, got a list"),
    "infinity": (("hours",), math.inf, "hours: must be a finite number, got inf"),
    "not a number": (("risk", "expected_hours"), math.nan, "risk.expected_hours: must be a finite number, got nan"),
    "a number as text": (("hours",), "12", "hours: must be a number, got '12'"),
    "true for a number": (("hours",), True, "hours: must be a number, got true"),
    "null": (("start",), None, "start: must be text, got null"),
    "no moment": (("start",), "yesterday", "start: must be a moment like"),
    "a moment before computers": (("start",), "0001-01-01T00:00+14:00", "start: must be a moment like"),
    "no month": (("cash", 0, "month"), "2026-13", "cash[0].month: must be a month like 2026-11, got '2026-13'"),
    "no nodes": (("lines", 0, "nodes"), 0, "lines[0].nodes: must be at least 1, got 0"),
    "half a node": (("lines", 0, "nodes"), 1.5, "lines[0].nodes: must be a whole number, got 1.5"),
    "too many nodes": (("lines", 0, "nodes"), 10**400, "lines[0].nodes: must be a whole number, got a number above"),
    "a price as number": (("lines", 0, "price_per_hour"), 1.5, "price_per_hour: must be a decimal number in quotes"),
    "a huge exponent": (("total_usd",), "1e999999999", "total_usd: must be a decimal number in quotes, without"),
    "a negative price": (("lines", 0, "price_per_hour"), "-1", "price_per_hour: must be at least 0, got '-1'"),
    "a chance above 1": (("risk", "p_meet_deadline"), 1.5, "risk.p_meet_deadline: must be at most 1, got 1.5"),
    "an unknown id": (("timeline", 0, "id"), "provisionin", "(did you mean 'provisioning'?)"),
    "a label for an id": (("timeline", 0, "id"), "training steps", "timeline[0].id: must be one of data_staging,"),
    "an unknown origin": (("timeline", 0, "origin"), "magic", "timeline[0].origin: must be one of workload, default,"),
    "an unknown key": (("hour",), 1, "hour: unknown key of a plan of this version (did you mean 'hours'?)"),
    "another sum": (("lines", 0, "cost_usd"), "1", "lines[0].cost_usd: is 1, but its parts give"),
    "another headroom": (("performance", "memory_headroom_gib"), 1.0, "memory_headroom_gib: is 1.0, but its parts"),
    "no lines": (("lines",), [], "lines: is empty though the status is planned"),
    "lines, yet infeasible": (("status",), "infeasible", "lines: has lines though infeasible"),
    "an empty run id": (("run_id",), "", "run_id: must have 1 to 200 characters"),
    "a newer version": (("schema_version",), 99, "schema_version: 99, this planner reads 1 to 2: read it with"),
    "a version as text": (("schema_version",), "2", "schema_version: '2', this planner reads 1 to 2: save the plan"),
}  # fmt: skip


@contextlib.contextmanager
def put(values: Any, path: tuple[str | int, ...], value: Any) -> Iterator[None]:
    """`values` with `value` at `path`, for a while."""
    at = functools.reduce(operator.getitem, path[:-1], values)
    missing = object()
    before = at.get(path[-1], missing) if isinstance(at, dict) else at[path[-1]]
    at[path[-1]] = value
    try:
        yield
    finally:
        if before is missing:
            del at[path[-1]]
        else:
            at[path[-1]] = before


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_wrong_is_named_by_its_place(name: str) -> None:
    path, value, said = CHANGES[name]
    with pytest.raises(InputError) as caught:
        values = TRAINING.to_dict()
        with put(values, path, value):
            Plan.from_dict(values, "saved.json")
    assert said in str(caught.value) and str(caught.value).startswith("saved.json: ")
    assert REMEDY in str(caught.value) or name == "a newer version"


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


@pytest.mark.parametrize("name", ["training", "spot", "fleet", "infeasible"])
def test_every_key_that_is_missing_or_of_a_wrong_type_is_an_input_error_or_read(name: str) -> None:
    """Each place in turn with a value of another type or none. Only InputError comes out."""
    values, draw = json.loads(text_of(HAND_MADE[name])), random.Random(name)
    wrong: list[Any] = [
        None,
        True,
        -1,
        1e308,
        math.inf,
        math.nan,
        10**400,
        "",
        "x",
        "1e9",
        [],
        {},
        [[]],
        {"a": {}},
    ]
    for path in places(values):
        for value in draw.sample(wrong, 1):  # `python -m benchmarks.malformed` tries more
            with put(values, path, value):
                try:
                    read = Plan.from_dict(values)
                except InputError as error:
                    assert any(
                        remedy in str(error)
                        for remedy in (REMEDY, "save one with", "read it with the planner")
                    )
                    continue
                assert Plan.from_dict(read.to_dict()) == read
    assert values == json.loads(text_of(HAND_MADE[name])), "reading changes nothing"


@pytest.mark.parametrize("key", sorted(TRAINING.to_dict()))
def test_a_missing_key_is_named_unless_it_has_a_default(key: str) -> None:
    values = {name: value for name, value in TRAINING.to_dict().items() if name != key}
    if key in plan_schema()["required"]:
        with pytest.raises(InputError, match=rf"schema_version: null|{key}: is missing"):
            Plan.from_dict(values)
    else:
        assert Plan.from_dict(values).lines == TRAINING.lines


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "not JSON"), ("{", "not JSON"), ("[]", "JSON, but not a plan"), ("5", "JSON, but not a plan"),
     ('{"a": 1}', "JSON, but not a plan"),
     ('{"kind": "portfolio", "schema_version": 1, "status": "optimal", "catalog": [], "created_at": "", "jobs": []}',
      "JSON, but not a plan: its kind is 'portfolio'; save"), ("[" * 10**5, "not JSON"),
     ('{"lines": NaN, "status": 1}', "schema_version: null"),
     ('{"hours": 1' + "0" * 5000 + "}", "not JSON")],
)  # fmt: skip
def test_files_that_are_no_plan(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said) as caught:
        load_plan(path)
    assert str(path) in str(caught.value) and "planner optimize" in str(caught.value)


def test_a_malformed_plan_ends_with_exit_code_2_and_no_traceback(
    tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**SPOT.to_dict(), "catalog": 5, "hours": math.inf}), encoding="utf-8")
    state = str(ROOT / "examples" / "spot-state.json")
    costs = str(ROOT / "examples" / "focus" / "bill-2026-10.csv.gz")
    for command in (
        ("advise", str(path), "--state", state),
        ("forecast", "--focus", costs, "--plans", str(path)),
        ("review", "--focus", costs, "--plans", str(path)),
    ):
        result = run_cli(*command)
        assert result.code == 2 and "Traceback" not in result.stderr, command
        told = " ".join(result.stderr.split())
        assert "catalog: must be a list, got 5" in told and "hours: must be a finite number" in told, command


def test_the_model_of_a_plan_is_light() -> None:
    code = "import sys, planner.plan.model; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "scipy", "pydantic", "yaml", "catalogs", "solvers"} & set(
        done.stdout.split()
    )


@pytest.mark.parametrize("member", [*TimePartId, *CostId])
def test_every_id_says_what_it_is(member: TimePartId | CostId) -> None:
    assert member.__doc__ and member.__doc__.endswith(".") and member == member.value
