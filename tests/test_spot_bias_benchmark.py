"""`benchmarks.spot_bias` replays many launches in one batch and says which of its errors follow from the days."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from benchmarks.spot_bias import KINDS, Launched, by_days, launches, shares_up
from planner.spot.hazards import load_hazards
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.replay_batch import replay_futures
from planner.spot.trace import ZoneTrace

DAY = 240
JOB = {
    "id": 3, "file": "made.json", "group": "both", "threshold": None,
    "regions": ["us-east-1", "us-west-2"], "od_price": 3.06, "egress_usd": 1.0,
}  # fmt: skip


def record(zone: str, region: str, seed: int, ticks: int) -> ZoneTrace:
    rng = np.random.default_rng(seed)
    spells = np.maximum(rng.exponential(20.0, 400).astype(int), 1)
    up = np.repeat(np.arange(400) % 2 == 0, spells)[:ticks]
    usd = 0.9 + 0.2 * rng.random(ticks)
    return ZoneTrace(
        "aws", region, zone, "p3.2xlarge", 1, datetime(2026, 1, 1, tzinfo=UTC), 0.1, up, usd, 3.06
    )


def test_a_launch_of_the_batch_costs_what_the_job_alone_costs() -> None:
    traces = [record("us-east-1a", "us-east-1", 1, 1400), record("us-west-2a", "us-west-2", 2, 1400)]
    model = load_hazards()
    found = launches(JOB, traces, lambda at: model, 400, 3)
    # launches at 240, 640, 1040 where the deadline fits into 1400 ticks: the short kind thrice, 60 h twice, 96 h once
    assert [sum(one.kind == kind for one in found) for kind in KINDS] == [2, 1, 3]
    zones = tuple(
        SpotZone(t.zone, t.region, t.instance_type, float(t.spot_usd_per_hour.mean()), t.provider)
        for t in traces
    )
    tables = {zone.name: model.table_for(zone) for zone in zones}
    up = np.stack([trace.up for trace in traces])
    for kind in KINDS:
        ticks, at = round(kind[1] * 10), DAY
        for one in (one for one in found if one.kind == kind):
            job = SpotJob(
                *kind, 3.06, zones, 1.0, history={t.zone: t.up[at - DAY : at] for t in traces}
            )  # fmt: skip
            alone = replay_futures(job, "survival", tables, up[None, :, at : at + ticks])
            assert one.was[0] == pytest.approx(float(alone.cost_usd[0]) / (kind[0] * 3.06))
            assert one.was[3] == alone.starts[0]
            at += 400


def test_what_follows_from_the_days_is_told_from_the_rest() -> None:
    """Costs are 0.9 - 0.5 x share of time up, and forecasts lie 0.03 below that; the real days are the scarcer ones."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(40):
        shares = np.column_stack([0.6 + 0.1 * rng.standard_normal(9), np.ones(9)])
        shares[0, 0] -= 0.2
        cost = 0.9 - 0.5 * shares[:, 0]
        said, was = np.zeros(5), np.zeros(5)
        said[0], was[0] = cost[1:].mean() - 0.03, cost[0]
        found.append(
            Launched("g", ("t", "f", 0), 2, 1, KINDS[0], 0.3, said, was, cost[0], cost[1:] - 0.03, shares)
        )
    error = np.asarray([one.said[0] - one.was[0] for one in found])
    days = by_days(found)
    assert days.mean() == pytest.approx(-0.1, abs=0.03)
    assert error - days == pytest.approx(np.full(40, -0.03))


def test_shares_up_are_of_all_zones_and_of_any() -> None:
    up = np.asarray([[[True, True, False, False], [True, False, True, False]]])
    assert shares_up(up)[0] == pytest.approx([0.5, 0.75])
