"""The limits that a serving fleet must change: the least, and enough, against enumeration of all counts."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

from planner.serving.change import least_change
from planner.serving.model import solve_serving
from planner.serving.question import ServingInput
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from tests.conftest import CliResult, Run

OPTIONS = SolveOptions(gap=1e-6, backend="auto")
MOST = 7  # machines of a kind that are enumerated


def _random(seed: int) -> ServingInput:
    draw = np.random.default_rng(seed)
    kinds, buckets = int(draw.integers(1, 4)), int(draw.integers(1, 3))
    speed = np.where(draw.random((kinds, buckets)) < 0.8, draw.uniform(1.0, 4.0, (kinds, buckets)), 0.0)
    speed[0] = np.maximum(speed[0], 1.0)  # each bucket has a machine
    limit = np.where(draw.random(kinds) < 0.7, draw.integers(1, 3, kinds), np.inf)
    most = float(draw.integers(1, 4)) if draw.random() < 0.5 else math.inf
    return ServingInput(
        tuple(f"b{at}" for at in range(buckets)), draw.uniform(1.0, 5.0, buckets),
        tuple(f"k{at}" for at in range(kinds)), draw.uniform(1.0, 9.0, kinds), speed, limit, most, 0.1,
    )  # fmt: skip


def _carries(question: ServingInput, counts: tuple[int, ...]) -> bool:
    """Whether these machines carry the load: a linear program of its own."""
    needed = question.machines
    kinds, buckets = needed.shape
    load = np.zeros((kinds, kinds * buckets))
    serve = np.zeros((buckets, kinds * buckets))
    bounds = []
    for kind, bucket in product(range(kinds), range(buckets)):
        column, can = kind * buckets + bucket, math.isfinite(needed[kind, bucket])
        load[kind, column] = needed[kind, bucket] if can else 0.0
        serve[bucket, column] = 1.0
        bounds.append((0.0, 1.0 if can else 0.0))
    found = linprog(
        np.zeros(kinds * buckets), A_ub=load, b_ub=np.array(counts) + 1e-9, A_eq=serve, b_eq=np.ones(buckets),
        bounds=bounds,
    )  # fmt: skip
    return bool(found.status == 0)


def _enough(question: ServingInput) -> list[tuple[int, ...]]:
    """All counts that carry the load; whoever carries it does so with one machine more of the last kind."""
    found: list[tuple[int, ...]] = []
    for others in product(range(MOST), repeat=len(question.keys) - 1):
        least = bisect_left(range(MOST), True, key=lambda last: _carries(question, (*others, last)))
        found += [(*others, last) for last in range(least, MOST)]
    return found


def test_the_change_is_the_least_and_enough() -> None:
    seen = {"kinds": 0, "all": 0}
    for seed in range(30):
        question = _random(seed)
        if solve_serving(question, OPTIONS).status is not Status.INFEASIBLE:
            continue
        found = least_change(question, OPTIONS)
        assert found is not None
        changes, changed, fleet = found
        enough = _enough(question)
        assert enough, seed
        beyond = min(float(np.maximum(np.array(counts) - question.limit, 0.0).sum()) for counts in enough)
        raised = np.where(np.isfinite(question.limit), changed.limit - np.minimum(question.limit, 1e9), 0.0)
        assert raised.sum() == beyond, seed
        within = [counts for counts in enough if (np.array(counts) <= changed.limit).all()]
        least = min(sum(counts) for counts in within)
        assert changed.max_nodes == max(question.max_nodes, least), seed
        allowed = [counts for counts in within if sum(counts) <= changed.max_nodes]
        cheapest = min(float(np.array(counts) @ question.usd_per_hour) for counts in allowed)
        assert math.isclose(fleet.usd_per_hour, cheapest, rel_tol=1e-6), seed
        seen["kinds"] += any(change.machine for change in changes)
        seen["all"] += any(not change.machine for change in changes)
        for change in changes:  # one machine less is not enough
            if not change.machine:
                less = replace(changed, max_nodes=changed.max_nodes - 1)
            else:
                at = question.keys.index(change.machine)
                less = replace(
                    changed, limit=np.where(np.arange(len(raised)) == at, changed.limit - 1, changed.limit)
                )
            assert solve_serving(less, OPTIONS).status is Status.INFEASIBLE, seed
    assert min(seen.values()) >= 3


FILE = """\
version: 1
kind: serving
name: short
max_nodes: {total}
buckets:
  - {{name: chat, requests_per_s: 40}}
machines:
  - {{name: own, usd_per_hour: 2, max_nodes: {own}, requests_per_s: {{chat: 6}}}}
  - {{name: large, usd_per_hour: 9, max_nodes: 1, requests_per_s: {{chat: 18}}}}
"""


def test_limits_changed_as_the_answer_says_carry_the_load(tmp_path: Path, run_cli: Run) -> None:
    file = tmp_path / "serving.yaml"

    def plan(total: int, own: int, *options: str) -> CliResult:
        file.write_text(FILE.format(total=total, own=own), encoding="utf-8")
        return run_cli("serving", str(file), "--as-of", "2026-11-20", *options)

    text = " ".join(plan(3, 3).stdout.split())
    assert (
        "max_nodes of own 3 -> 4 and max_nodes 3 -> 5: 1 x large + 4 x own carry it then, at $17.00" in text
    )
    assert json.loads(plan(3, 3, "-o", "json").stdout)["changes"] == [
        {"machine": "own", "now": 3, "needed": 4}, {"machine": "", "now": 3, "needed": 5},
    ]  # fmt: skip
    assert plan(5, 4).code == 0
    assert plan(4, 4).code == plan(5, 3).code == 3
