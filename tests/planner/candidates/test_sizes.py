"""Which hardware is looked at in all sizes: none whose data alone costs more than the best plan, and none too few."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from catalogs.store.load import load_catalog
from planner.candidates.engine import Engine
from planner.candidates.finer import FinerShapes
from planner.candidates.model import Candidates
from planner.candidates.prepare import prepare
from planner.candidates.sizes import coarse_node_counts, estimate_hardware, hardware_of_offer
from planner.candidates.wanted import Wanted
from planner.inputs.load import load_workload
from tests.planner.candidates.test_cheapest import DAY, OPTIONS

IMAGES = """\
version: 1
kind: inference
name: embed-images
model: {preset: clip-vit-l-14}
inference: {items: 2e8}
data: {samples: 2e8, size: 8TB, location: aws/us-east-1}
constraints: {deadline: 3d, max_nodes: 20}
"""


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_data_that_costs_more_to_move_than_the_plan_leaves_hardware_out(
    tmp_path: Path, objective: str
) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(IMAGES + f"preferences: {{objective: {objective}}}\n")
    workload = load_workload(file)
    context = prepare(workload, workload.workload, load_catalog(as_of=DAY), OPTIONS)
    search = Engine(context).at(context.dates.deadline, Wanted(one_offer=True))
    every = Engine(context, sizes=range(1, 21)).at(context.dates.deadline, Wanted(one_offer=True))
    assert len(coarse_node_counts(20)) < 20  # else nothing is left out

    def best(candidates: Candidates) -> float:
        value = candidates.cost_usd if objective == "cost" else candidates.hours
        return float(value[candidates.bits == 0].min())

    assert best(search.candidates) == pytest.approx(best(every.candidates))
    market = context.market
    elsewhere = set(hardware_of_offer(market).tolist()) - set(
        hardware_of_offer(market)[np.flatnonzero(market.offer_set.offers.equals("provider", "aws"))].tolist()
    )
    between = ~np.isin(search.candidates.nodes, coarse_node_counts(20))
    refined = set(hardware_of_offer(market)[search.candidates.offer[between]].tolist())
    assert refined
    assert not (objective == "cost" and refined & elsewhere)


@pytest.mark.parametrize("expected", [(), (7, 1, 4)])
def test_shapes_that_are_asked_for_again_are_those_of_a_new_estimate(
    tmp_path: Path, expected: tuple[int, ...]
) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(IMAGES)
    workload = load_workload(file)
    context = prepare(workload, workload.workload, load_catalog(as_of=DAY), OPTIONS)
    asked, market = context.asked, context.market
    finer = FinerShapes(asked, market, (3, 5))
    finer.expect(np.asarray(expected, dtype=np.int64))
    for rows in ([4], [2, 4, 9], [1, 2], [9], [1, 2, 4, 9]):
        wanted = np.asarray(rows, dtype=np.int64)
        found, new = finer.of(wanted), estimate_hardware(asked, market, wanted, (3, 5))
        assert list(found) == list(new)
        for name in new:
            assert np.array_equal(found[name], new[name], equal_nan=new[name].dtype.kind == "f"), name
