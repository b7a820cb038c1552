"""One golden LP file per constraint family: the mathematics, readable. `UPDATE_GOLDENS=1 pytest ...` rewrites them.

Files of other models (`MODEL_*.lp`) lie beside them; every row that a formulation adds is in one of them.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import numpy as np
import pytest

import planner
from planner.candidates.constraints.base import Use
from planner.fleet.model.build import build_fleet
from planner.fleet.model.families import FAMILIES
from planner.fleet.model.prepared import prepare
from planner.fleet.question import FleetInput
from planner.job.model import SingleInput, build_single
from solvers.problem.milp import Milp
from tests.lp_text import lp_text

FOLDER = Path(__file__).parents[2] / "fixtures" / "lp"
LIMITS: dict[str, dict[str, object]] = {
    "throughput": {},
    "regions": {
        "max_regions": 1,
        "max_share_per_region": 0.75,
        "region_cost_usd": np.array([0.5, 3.0]),
    },
    "part_time": {
        "fixed_cost_usd": np.array([1.5, 0.75, 1.25, 0.25]),
        "budget_usd": 120.0,
        "min_total_memory_gib": 640.0,  # idle workers count for it, in open regions
        "region_cost_usd": np.array([0.5, 3.0]),
        "max_share_per_offer": 0.6,  # below the whole workers that it takes
    },
    "memory": {"min_total_memory_gib": 640.0},
    "quota": {"quota_limit": np.array([384.0, np.nan])},
    "uses": {  # an offer may be in several, and its work may count too
        "uses": (
            Use("quota", "P", np.array([96.0, 96.0, 0.0, 0.0]), 384.0),
            Use("quota", "A100", np.array([8.0, 8.0, 8.0, 0.0]), 40.0),
            Use("carbon", "", np.zeros(4), 30.0, per_busy=np.array([9.0, 7.0, 2.0, 0.5])),
        ),
        "region_cost_usd": np.array([0.5, 3.0]),
    },
    "capacity": {"capacity_limit": np.array([3.0]), "max_total_units": 5},
    "spot_share": {"max_spot_share": 0.5},
    "diversification": {"max_share_per_offer": 0.6, "max_share_per_provider": 0.8},
    "budget": {"budget_usd": 120.0},
}


def fleet(**limits: object) -> FleetInput:
    values: dict[str, object] = {
        "keys": ("aws/p4d/od", "aws/p4d/spot", "gcp/a2/od", "gcp/g2/od"),
        "cost_usd": np.array([32.5, 12.25, 29.0, 2.0]),
        "throughput": np.array([200.0, 180.0, 190.0, 20.0]),
        "required_throughput": 400.0,
        "max_units": np.array([4.0, 4.0, 4.0, 8.0]),
        "region": np.array([0, 0, 1, 1]),
        "provider": np.array([0, 0, 1, 1]),
        "is_spot": np.array([False, True, False, False]),
        "memory_gib": np.array([320.0, 320.0, 320.0, 24.0]),
        "quota_group": np.array([0, 0, 1, -1]),
        "quota_units": np.array([96.0, 96.0, 96.0, 8.0]),
    }
    if "capacity_limit" in limits:
        values["capacity_group"] = np.array([0, 0, -1, -1])
    return FleetInput(**{**values, **limits})  # type: ignore[arg-type]


def model(family: str) -> Milp:
    if family == "single":
        keys = (("p4d", 1), ("p4d", 2), ("a2", 1))
        group, units = np.array([0, 0, -1]), np.array([96.0, 192.0, 0.0])
        job = SingleInput(keys, np.array([900.0, 950.0, 980.0]), np.ones(3), group, units, np.array([96.0]))
        return build_single(job)
    question = fleet(**LIMITS[family])
    links = np.array([0]) if family in ("regions", "part_time") else None
    return build_fleet(question, prepared=prepare(question), links=links)


@pytest.mark.parametrize("family", [*LIMITS, "single"])
def test_golden(family: str) -> None:
    path = FOLDER / f"{family}.lp"
    text = lp_text(model(family))
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_family_has_its_golden() -> None:
    names = {module.NAME for module in FAMILIES}
    assert names == set(LIMITS), "add the new family's limits to LIMITS and its golden to tests/fixtures/lp"
    assert {path.stem for path in FOLDER.glob("*.lp")} >= names | {"single"}


ADDERS = ("add_rows", "group_rows", "share_rows")


def row_names(path: Path) -> list[str]:
    """The row blocks that a formulation file adds by a name of its own: literals, `NAME`, starts of f-strings."""
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in ADDERS):  # parsing all modules took a tenth of the collection
        return []
    tree = ast.parse(text)
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    found = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if node.func.attr not in ADDERS:
            continue
        name = node.args[0]
        if isinstance(name, ast.JoinedStr):
            name = name.values[0]
        value = name.value if isinstance(name, ast.Constant) else constants.get(getattr(name, "id", ""))
        if isinstance(value, str):
            found.append(value)
    return found


SOURCE = Path(planner.__file__).parent
FORMULATIONS = {
    path.relative_to(SOURCE).as_posix(): rows
    for path in sorted(SOURCE.rglob("*.py"))
    if (rows := row_names(path))
}


@pytest.mark.parametrize("name", FORMULATIONS)
def test_every_row_of_every_formulation_is_in_a_golden(name: str) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.rglob("*.lp")))
    missing = [row for row in FORMULATIONS[name] if not re.search(rf"^ {re.escape(row)}", text, re.MULTILINE)]
    assert not missing, f"planner/{name}: no LP file in tests/fixtures/lp shows {missing}"


@pytest.mark.parametrize("module", FAMILIES)
def test_every_family_adds_its_rows_and_states_its_mathematics(module: object) -> None:
    name, text = module.NAME, module.__doc__  # type: ignore[attr-defined]
    added = {block.name for block in model(name).row_blocks} - {"throughput"}
    bare = {block.name for block in model("throughput").row_blocks}
    assert name == "throughput" or added - bare or any(len(model(name).row_block(row) or ()) for row in added)
    assert text and ("<=" in text or ">=" in text)
