"""Errors that leave the Python API: one class to catch for whatever its user can mend."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import planner
from catalogs.errors import CatalogError as StoreError
from catalogs.errors import CatalogInputError
from planner.asked.calls import CHOICES, NUMBERS, as_planner_error, question
from planner.cli import COMMANDS, root
from planner.commands.options import USD
from planner.errors import CatalogError, InputError, OutputError
from solvers.problem.errors import BackendError, ModelError, SpreadError
from tests.conftest import ROOT

pytestmark = pytest.mark.catalog("small")
BERT = str(ROOT / "examples" / "bert-large.yaml")
SERVING = str(ROOT / "examples" / "serving.yaml")
DAILY = str(ROOT / "examples" / "daily-costs.csv")
DAY = "2026-11-20"
FUNCTIONS = {
    name: getattr(planner, name) for name in planner.__all__ if inspect.isfunction(getattr(planner, name))
}
NAMED_OTHERWISE = {"horizon": "horizon_days", "budget": "budget_usd"}  # options by their argument


def test_every_function_states_its_errors() -> None:
    """Each is checked and its errors are made one class; pickled as before, for pools of processes."""
    assert len(FUNCTIONS) > 20
    for name, function in FUNCTIONS.items():
        assert hasattr(function, "__wrapped__"), name
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    ("raised", "said", "code"),
    [
        (StoreError("no snapshot"), CatalogError, 4),
        (CatalogInputError("row 3"), InputError, 2),
        (SpreadError("too far apart"), InputError, 2),
        (BackendError("unknown solver"), InputError, 2),
        (ModuleNotFoundError("no module", name="xlsxwriter"), InputError, 2),
        (OSError(28, "No space left on device", "/x/plan.json"), OutputError, 7),
    ],
)  # fmt: skip
def test_what_users_can_mend_is_one_class(raised: Exception, said: type[Exception], code: int) -> None:
    @question
    def ask() -> None:
        raise raised

    with pytest.raises(planner.PlannerError) as caught:
        ask()
    assert type(caught.value) is said and caught.value.exit_code == code and caught.value.__cause__ is raised


@pytest.mark.parametrize(
    "defect", [ValueError("x"), ModelError("shape"), ModuleNotFoundError("x", name="numpy")]
)
def test_a_defect_stays_what_it_is(defect: Exception) -> None:
    assert as_planner_error(defect) is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda folder: planner.optimize(BERT, catalog_dir=folder),
        lambda folder: planner.optimize(BERT, as_of="someday"),
        lambda folder: planner.serve(SERVING, catalog_dir=folder / "none"),
        lambda folder: planner.serve(SERVING, backend="simplex"),
        lambda folder: planner.diff_days(BERT, "2026-11-01", None),  # type: ignore[arg-type]
        lambda folder: planner.optimize(BERT, settings={"training.samples": object()}),
        lambda folder: planner.optimize(planner.load(ROOT / "examples" / "portfolio.yaml")),  # type: ignore[arg-type]
        lambda folder: planner.diagnose(folder / "none.csv"),
    ],
)  # fmt: skip
def test_wrong_input_is_caught_by_one_class(ask: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(planner.PlannerError):
        ask(tmp_path)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("optimize", {"objective": "speed"}, "objective 'speed': must be one of cost, time, carbon"),
        ("optimize", {"max_results": 0}, "max_results 0: must be a whole number at least 1"),
        ("optimize", {"best_within": float("nan")}, "best_within nan: must be a number above 0"),
        ("optimize", {"best_within": Decimal("NaN")}, "best_within .*NaN.*: must be a number above 0"),
        ("optimize", {"replays": 10**400}, "replays [10.]+: must be a whole number at least 0 and at most 100000"),
        ("optimize", {"replays": 10**5000}, "replays with so many digits: must be a whole number at least 0"),
        ("optimize", {"best_within": 10**400}, "best_within [10.]+: must be a number above 0"),
        ("optimize", {"best_within": Decimal("sNaN")}, "best_within .*sNaN.*: must be a number above 0"),
        ("optimize", {"max_results": 1.5}, "max_results 1.5: must be a whole number at least 1"),
        ("estimate", {"instance_type": "p4d.24xlarge", "nodes": 1.5}, "nodes 1.5: must be a whole number"),
        ("explain", {"seed": 0.5}, "seed 0.5: must be a whole number at least 0"),
        ("optimize", {"gap": 1.0}, "gap 1.0: must be a number at least 0 and below 1"),
        ("frontier", {"deadlines_hours": [10, -1]}, "deadlines_hours -1: .*above 0 and at most"),
        ("frontier", {"deadlines_hours": [True, "10h"]}, "deadlines_hours '10h': must be a number"),
        ("compare", {"over": "colour"}, "over 'colour': must be one of region"),
        ("forecast", {"periods": 25}, "periods 25: must be a whole number at least 1 and at most 24"),
        ("diagnose", {"kind": "pdf"}, "kind 'pdf': must be one of auto, csv"),
    ],
)  # fmt: skip
def test_a_value_out_of_bounds_is_named(name: str, given: dict[str, Any], message: str) -> None:
    file = {"forecast": {"daily": DAILY}, "diagnose": {"log": DAILY}}.get(name, {"workload": BERT})
    with pytest.raises(InputError, match=message):
        FUNCTIONS[name](**file, **given)


def test_numbers_of_numpy_are_numbers() -> None:
    made = planner.estimate(
        BERT,
        "p4d.24xlarge",
        nodes=[np.int64(1)],  # type: ignore[list-item]
        as_of=DAY,
    )
    assert made.to_dict()


def test_more_results_than_there_are_lists_all() -> None:
    some, all_of = (planner.optimize(BERT, max_results=count, as_of=DAY) for count in (1_000, 10**20))
    assert len(some.alternatives) > 5
    assert some.alternatives == all_of.alternatives


def test_bounds_and_choices_are_those_of_the_commands() -> None:
    """An option of a command and the argument of the function of that name take the same values."""
    held = set()
    for name, function in FUNCTIONS.items():
        command = root.get_command(click.Context(root), "serving" if name == "serve" else name)
        for option in command.params if command is not None and name in {*COMMANDS, "serve"} else []:
            argument = NAMED_OTHERWISE.get(str(option.name), str(option.name))
            if argument not in inspect.signature(function).parameters:
                continue
            kind = option.type
            if isinstance(kind, click.IntRange | click.FloatRange) and argument in NUMBERS:
                bounds = NUMBERS[argument]
                assert (kind.min, kind.max, kind.min_open) == (bounds.low, bounds.high, bounds.above), (
                    name,
                    argument,
                )
                assert bounds.whole is isinstance(kind, click.IntRange), (name, argument)
                held.add(argument)
            elif kind is USD:
                bounds = NUMBERS[argument]
                assert (bounds.low, bounds.high, bounds.above) == (0, None, True), (name, argument)
                for refused in ("0", "-5"):
                    with pytest.raises(click.BadParameter, match="more than zero"):
                        kind.convert(refused, option, None)
                held.add(argument)
            elif isinstance(kind, click.Choice):
                if argument == "solver" and name == "pipeline":
                    continue
                assert tuple(kind.choices) == CHOICES[argument], (name, argument)
                held.add(argument)
    assert held >= {
        "max_results",
        "replays",
        "draws",
        "seed",
        "nodes",
        "skip",
        "periods",
        "horizon_days",
        "drop_days",
    }
    assert held >= {"objective", "solver", "over", "kind", "cost", "period", "effort", "mode", "budget_usd"}
