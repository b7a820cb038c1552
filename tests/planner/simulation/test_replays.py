"""Cells are what the scalar replay says, launch by launch; groups are what overlaps."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from planner.advice.saved_plan import Place
from planner.simulation.groups import zone_groups
from planner.simulation.jobs import SimJob, drawn_note, with_changes
from planner.simulation.replays import OPTIMUM, Task, _spot_job, held_ticks, run_task, start_ticks
from planner.spot.policy.registry import make_policy
from planner.spot.trace import ZoneTrace
from planner.spot.zones import scarce_together
from tests.planner.advice.test_table import hazard_table
from tests.planner.simulation.traces import START, zone
from tests.planner.spot.reference_replay import replay

JOB = SimJob("j", 6.0, 9.0, 0.2, egress_usd=0.5)


def groups(*traces):  # type: ignore[no-untyped-def]
    return list(zone_groups(traces or (zone("a", 0), zone("b", 1))))


@pytest.mark.parametrize(
    "policy", ["survival", "uniform_progress", "greedy", "margin", "on_demand", "spot_only"]
)
@pytest.mark.parametrize("at", [0, 2], ids=["one zone", "two zones"])
def test_a_cell_is_the_mean_of_scalar_replays(policy: str, at: int) -> None:
    group = groups()[at]
    tables = {one.zone: hazard_table() for one in group.zones}
    (cell,) = run_task(Task((JOB,), group, tables, (policy,), 8, 5)).cells
    starts = start_ticks(JOB, group, 8, 5)
    job = _spot_job(JOB, group, group.usd_per_hour[:, starts].mean(axis=1))
    own = make_policy(policy, job, tables)
    found = [replay(job, own, group.up, group.usd_per_hour, int(tick)) for tick in starts]
    assert cell.starts == 8
    assert cell.cost_ratio == pytest.approx(np.mean([one.cost_usd for one in found]) / (6.0 * 3.0))
    assert cell.misses == sum(not one.finished for one in found)
    assert cell.interruptions == pytest.approx(np.mean([one.interruptions for one in found]))


def test_what_is_drawn_is_said_also_where_on_demand_always_comes() -> None:
    said = drawn_note(replace(JOB, work_log_sd=0.3))
    assert "hours of work spread by 30.0 % (1 sd)" in said and "is not the plan's chance" in said
    assert "on-demand comes" not in said
    assert drawn_note(JOB) == ""


def test_no_policy_beats_the_optimum() -> None:
    for group in groups():
        tables = {one.zone: hazard_table() for one in group.zones}
        names = (OPTIMUM, "survival", "greedy", "uniform_progress", "margin", "on_demand")
        best, *others = run_task(Task((JOB,), group, tables, names, 10, 1)).cells
        assert all(cell.cost_ratio >= best.cost_ratio - 1e-9 for cell in others)
        assert all(cell.misses == 0 for cell in others)


def test_launches_depend_on_the_seed_and_nothing_else() -> None:
    group = groups()[0]
    one = start_ticks(JOB, group, 20, 3)
    assert (one == start_ticks(replace(JOB, restart_hours=0.4), group, 20, 3)).all()
    assert not np.array_equal(one, start_ticks(JOB, group, 20, 4))
    assert one.min() >= 240 and one.max() <= 900 - 90 and len(set(one.tolist())) == 20
    assert len(start_ticks(JOB, groups(zone("a", 0, ticks=95))[0], 20, 3)) == 1  # a day before is not there


def test_what_cannot_be_replayed_is_told() -> None:
    group = groups(zone("a", 0, ticks=80))[0]
    tables = {"zz-1a": hazard_table()}
    near = replace(JOB, deadline_hours=6.1)
    reasons = [why for _, _, why in run_task(Task((JOB, near), group, tables, ("greedy",), 5, 0)).left_out]
    assert "record (8 h) is shorter" in reasons[0] and "even for on-demand" in reasons[1]
    priceless = replace(group.zones[0], on_demand_usd_per_hour=None)
    lone = groups(priceless)[0]
    short = replace(JOB, work_hours=2.0, deadline_hours=4.0)
    found = run_task(Task((short,), lone, tables, ("greedy",), 5, 0))
    assert found.left_out[0][2] == "no on-demand price is recorded"
    priced = replace(short, on_demand_usd_per_hour=6.0)
    assert run_task(Task((priced,), lone, tables, ("greedy",), 5, 0)).cells[0].cost_ratio < 0.6


def test_ages_at_launch() -> None:
    up = np.array([[1, 1, 0, 0, 0, 1]], dtype=bool)
    assert held_ticks(up, np.arange(6)).ravel().tolist() == [0, 1, 0, 1, 2, 0]


def test_groups_share_recording_type_gang_and_time() -> None:
    a, b = zone("a", 0), zone("b", 1)
    later = replace(b, start=b.start + timedelta(hours=10))
    names = [(group.kind, group.name, group.up.shape) for group in groups(a, later)]
    assert names == [
        ("single", "zz-1a", (1, 900)),
        ("single", "zz-1b", (1, 900)),
        ("several", "2 zones: zz-1a,b", (2, 800)),
    ]
    both = groups(a, later)[2]
    assert (both.up[0] == a.up[100:]).all() and (both.up[1] == later.up[:800]).all()
    other_gang, apart = zone("b", 1, gang=4), replace(b, start=b.start + timedelta(days=30))
    assert [group.kind for group in groups(a, other_gang)] == ["single", "single"]
    assert [group.kind for group in groups(a, apart)] == ["single", "single"]
    own_files = groups(replace(a, source="a.json"), replace(b, source="b.json"))
    assert [group.kind for group in own_files] == ["single", "single", "several"]


def test_a_gap_in_prices_takes_the_mean() -> None:
    a = zone("a", 0)
    price = a.spot_usd_per_hour.copy()
    price[10:20] = np.nan
    (group,) = groups(replace(a, spot_usd_per_hour=price))
    assert np.isfinite(group.usd_per_hour).all()
    assert group.usd_per_hour[0, 15] == pytest.approx(np.nanmean(price))


def scarce(name: str, seed: int) -> ZoneTrace:
    """A zone that is up for 2 h and away for 2 to 20."""
    rng = np.random.default_rng(seed)
    spells = np.column_stack([np.full(400, 20), rng.integers(20, 200, 400)]).ravel()
    up = np.repeat(np.arange(len(spells)) % 2 == 0, spells)
    price = np.full(len(up), 1.0)
    return ZoneTrace("aws", "zz-1", f"zz-1{name}", "m.big", 1, START, 0.1, up, price, 3.0, "made up")


@pytest.mark.parametrize(("link", "usual"), [(0.0, None), (0.43, None), (1.0, None), (0.43, 0.1)])
def test_launches_are_late_as_often_as_a_plan_says(link: float, usual: float | None) -> None:
    """Where on-demand does not come and spot alone is too late, correlated as in a plan; no policy can help that.

    Where spot is scarcer than usual, so is on-demand.
    """
    group = groups(scarce("a", 1))[0]
    tables = {one.zone: hazard_table() for one in group.zones}
    had = replace(
        JOB, deadline_hours=42.0, on_demand_had_ratio=0.6, scarce_together_ratio=link, spot_late_ratio=usual
    )
    asked = ("spot_only", "greedy", "uniform_progress")
    alone, *others = run_task(Task((had,), group, tables, asked, 800, 3)).cells
    late = alone.misses / alone.starts
    assert 0.2 < late < 0.8
    planned = float(scarce_together(0.4, usual or late, link)) * late / (usual or late)
    for cell in others:
        # two standard errors
        assert cell.misses / cell.starts == pytest.approx(planned, abs=2.0 * (planned / cell.starts) ** 0.5)
        assert cell.misses_out_of_reach == cell.misses
    sure = run_task(Task((replace(had, on_demand_had_ratio=1.0),), group, tables, ("greedy",), 100, 3)).cells[
        0
    ]
    assert sure.misses == 0


def test_a_zone_alone_and_a_changed_deadline_say_nothing_of_on_demand() -> None:
    """Spot is late more often than in the plan for want of zones or time; on-demand is no scarcer than planned."""
    group = groups(scarce("a", 1))[0]
    tables = {one.zone: hazard_table() for one in group.zones}
    planned = replace(JOB, deadline_hours=42.0, on_demand_had_ratio=0.9, scarce_together_ratio=0.43)
    often = replace(planned, spot_late_ratio=0.01)
    two = (Place("zz-1", "zz-1a", 1.0), Place("zz-1", "zz-1b", 1.0))

    def misses(sim: SimJob) -> int:
        (cell,) = run_task(Task((sim,), group, tables, ("greedy",), 400, 3)).cells
        return cell.misses

    assert misses(replace(often, places=two)) == misses(planned)
    assert misses(with_changes(often, {"deadline_hours": 42.0})) == misses(planned)
    assert misses(replace(often, places=two[:1])) > 2 * misses(planned)


def test_a_run_too_slow_for_on_demand_is_late_whatever_the_policy() -> None:
    group = groups(zone("a", 0))[0]
    tables = {one.zone: hazard_table() for one in group.zones}
    names = (OPTIMUM, "greedy", "on_demand")
    cells = run_task(Task((replace(JOB, work_log_sd=0.4),), group, tables, names, 200, 1)).cells
    assert 20 < cells[0].misses < 50  # P(6 h x e^(0.4 z) > 8.8 h) = 17 %
    assert (
        {cell.misses for cell in cells} == {cell.misses_out_of_reach for cell in cells} == {cells[0].misses}
    )
