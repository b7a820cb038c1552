"""The extensive form as a readable LP file. `UPDATE_GOLDENS=1 pytest ...` rewrites it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from benchmarks.instances.commit_extensive import build_extensive
from planner.commitments.model import CommitColumn, CommitModel, Hours
from tests.lp_text import lp_text

GOLDEN = Path(__file__).parents[2] / "fixtures" / "lp" / "commit" / "extensive.lp"


def model() -> CommitModel:
    """Two pools, one savings plan, spot, two scenarios with CVaR, an upfront limit and an owned plan."""
    spot_usd = np.array([[1.75, 1.5]])
    two = np.array([4380.0, 4380.0])
    return CommitModel(
        on_demand_usd=np.array([5.0, 1.5]),
        plan_rate_usd=np.array([[3.5, 1.0]]),
        columns=(
            CommitColumn("reserved_a", 26280.0, 8.0, pool=0, upfront_usd=13140.0, whole=True),
            CommitColumn("plan_1y", 8760.0, 30.0, plan=0),
            CommitColumn("plan_3y", 9000.0, 30.0, plan=0, capacity=1.25),
        ),
        hours=(
            Hours(0, 0, two, np.array([[4.0, 2.0], [6.0, 0.0]]), np.array([[1.0, 0.0], [2.0, 0.0]]), spot_usd),
            Hours(1, 0, two, np.array([[2.0, 2.0], [1.0, 3.0]]), owned_plan_usd=np.array([[2.0], [0.0]])),
        ),
        probability=np.array([0.75, 0.25]),
        risk_weight=0.4,
        risk_level=0.5,
        upfront_limit_usd=60000.0,
    )  # fmt: skip


def test_golden() -> None:
    text = lp_text(build_extensive(model()))
    if os.environ.get("UPDATE_GOLDENS"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
