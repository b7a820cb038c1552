"""The judge of buy or rent: closed forms against the months that the planner sums, and answers that were changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from planner.api.questions import tco
from planner.inputs.tco_load import LoadedTco, load_tco
from planner.judge.document import Node
from planner.judge.findings import is_stated
from planner.judge.judge import catalog_of, judge_tco
from planner.judge.stated import TCO
from planner.judge.tco_case import Case, Rented
from planner.owning.figures import figures_of
from planner.owning.model import OWN_SITE
from tests.conftest import ROOT
from tests.draws import draws
from tests.planner.owning.test_figures import CASES, FIXED

EXAMPLE = ROOT / "examples" / "tco-4xa100.yaml"
CLOUD = "  providers: [lambda]\n  options: [on_demand]\n"


@draws(40)
@given(CASES)
def test_closed_forms_are_the_sums_of_months(values: dict[str, float]) -> None:
    found = figures_of(values, FIXED)
    rents = tuple(Rented(r.option, r.accelerators, r.term_months, r.upfront_usd, r.spot) for r in FIXED.rents)
    case = Case(values, 8, 1, (OWN_SITE,), FIXED.accelerator_share, 0.0, FIXED.residual_after_years, rents)
    assert case.hours == pytest.approx(found.useful_hours_per_month)
    for way in (*found.own, *found.rent):
        assert case.npv(way.name) == pytest.approx(way.npv_usd, rel=1e-7, abs=1e-5)
        assert case.cash(way.name) == pytest.approx(way.cash_usd)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedTco, dict[str, Any]]:
    """The example with few offers, which are quick to price."""
    path = tmp_path_factory.mktemp("tco") / "question.yaml"
    path.write_text(EXAMPLE.read_text() + CLOUD)
    loaded = load_tco(path)
    return loaded, json.loads(json.dumps(tco(loaded, as_of="2026-11-20").to_dict()))


def test_an_answer_holds(answered: tuple[LoadedTco, dict[str, Any]]) -> None:
    loaded, answer = answered
    verdict = judge_tco(answer, loaded, catalog_of(Node(answer)))
    assert verdict.faults == ()


def numbers(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Paths of figures; of a list of figures its third alone."""
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in numbers(item, (*path, key))]
    if isinstance(value, list):
        some = value if not value or isinstance(value[0], dict) else value[2:3]
        start = 0 if some is value else 2
        return [leaf for at, item in enumerate(some, start) for leaf in numbers(item, (*path, at))]
    return [path] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_a_changed_figure_is_found_out(answered: tuple[LoadedTco, dict[str, Any]]) -> None:
    loaded, answer = answered
    catalog = catalog_of(Node(answer))
    checked = 0
    for path in numbers(answer)[::23]:
        name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
        if is_stated(f"${name}", TCO):
            continue
        changed = copy.deepcopy(answer)
        place: Any = changed
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = (
            place[path[-1]] * 1.01 + 1 if isinstance(place[path[-1]], float) else place[path[-1]] + 1
        )
        assert judge_tco(changed, loaded, catalog).faults, name
        checked += 1
    assert checked > 8


def test_another_file_and_another_offer_are_faults(
    answered: tuple[LoadedTco, dict[str, Any]], tmp_path: Path
) -> None:
    loaded, answer = answered
    catalog = catalog_of(Node(answer))
    other = tmp_path / "other.yaml"
    other.write_text((EXAMPLE.read_text() + CLOUD).replace("low: 15000", "low: 14000"))
    faults = judge_tco(answer, load_tco(other), catalog).faults
    assert any(fault.startswith("sha256") for fault in faults)
    assert any(fault.startswith("factors[0].low") for fault in faults)
    changed = copy.deepcopy(answer)
    changed["fixed"]["rents"][0]["offer_id"] = "aws/us-east-1/-/p5.48xlarge/on_demand/-"
    assert judge_tco(changed, loaded, catalog).faults
