"""What to do now: ways to go on from the present state, by the one engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import planner
from planner.errors import InputError
from planner.inputs.load import load_workload
from planner.inputs.settings import with_settings
from planner.tracking.answer import Tracked, track
from planner.tracking.model import Progress, Replan, Way
from planner.tracking.planned import planned_of
from planner.tracking.replan import STAY, _decide, _with_wait, replan, workload_of
from tests.conftest import ROOT

WORKLOAD = ROOT / "examples" / "bert-large.yaml"
pytestmark = pytest.mark.catalog("small")


@pytest.fixture(scope="module")
def plan() -> planner.Plan:
    return planner.optimize(WORKLOAD)


def tracked(plan: planner.Plan, pace: float, share: float = 0.3) -> Tracked:
    """The run of a plan, this much slower than planned, at a share of its steps."""
    planned = planned_of(plan, "plan")
    step = np.linspace(0.01, share, 200) * planned.steps
    begin = planned.start.timestamp() + 3600.0 * planned.lead_hours
    none = np.full(len(step), np.nan)
    seconds = begin + step * planned.step_s * (1.0 + planned.overhead_ratio) * pace
    return track(planned, Progress("x", "csv", seconds, True, step, none, none, {}, {}))


@pytest.fixture(scope="module")
def as_planned(plan: planner.Plan) -> Tracked:
    """The run as planned, with its ways to go on."""
    return replan(tracked(plan, 1.0), load_workload(WORKLOAD))


@pytest.fixture(scope="module")
def slow(plan: planner.Plan) -> Tracked:
    """A run too slow for its deadline, with its ways to go on."""
    return replan(tracked(plan, 9.0, 0.1), load_workload(WORKLOAD))


def ways_of(found: Tracked) -> dict[str, Way]:
    assert found.replan is not None
    return {way.action: way for way in found.replan.ways}


def test_a_run_as_planned_stays(plan: planner.Plan, as_planned: Tracked) -> None:
    found, ways = as_planned, ways_of(as_planned)
    assert list(ways) == [STAY, "add nodes", "change type", "go on-demand"]
    assert found.replan is not None and found.replan.decision == STAY
    for way in ways.values():
        assert way.reason or (way.usd and way.finish and datetime.fromisoformat(way.finish) > found.now)
    assert ways[STAY].change_usd == 0 and ways["change type"].change_usd > 0
    # the rest of the work, not the whole of it
    assert (ways["change type"].usd or 0.0) < 1.2 * float(plan.total_usd)


def test_the_age_of_the_prices_of_the_ways_is_said(as_planned: Tracked) -> None:
    replanned, dates = as_planned.replan, [way.price_as_of for way in ways_of(as_planned).values()]
    assert replanned is not None and not dates[0] and any(dates)
    (said,) = [note for note in replanned.notes if note.startswith("prices of ")]
    oldest = min(filter(None, dates))
    first = datetime.fromisoformat(f"{oldest}-01"[:10]).date()
    assert f"prices of {oldest}" in said and f"({(as_planned.now.date() - first).days:,} days old)" in said


def test_a_spot_run_is_told_what_advise_decides(plan: planner.Plan, as_planned: Tracked) -> None:
    """Stay while it runs, wait or take on-demand while it stands: `planner advise` at the state that the log shows."""
    assert plan.launch is not None and plan.launch.strategy == "spot_with_fallback"
    going = as_planned.replan
    assert going is not None and going.advised is not None
    assert going.advised.action == "stay" and (going.advised.p_finish or 0.0) > 0.9
    assert going.advised.supposed in going.notes
    # the price of doing so now and going back to spot later, not that of on-demand to the end (the way `go on-demand`)
    assert "to switch to on-demand for now instead" in going.advised.why
    run = tracked(plan, 1.0)
    stalled = replan(replace(run, stalled_hours=2.0), load_workload(WORKLOAD))
    assert stalled.replan is not None and stalled.replan.advised is not None
    assert stalled.replan.advised.action in ("wait", "switch to on-demand")
    assert any("no step for 2 h" in note for note in stalled.replan.notes)
    longer = replan(replace(run, stalled_hours=20.0), load_workload(WORKLOAD)).replan
    assert longer is not None and longer.advised is not None
    assert (longer.advised.p_finish or 0.0) < (stalled.replan.advised.p_finish or 0.0)
    assert not any("no step for" in note for note in going.notes)
    told = stalled.to_dict()["replan"]["advice"]
    assert told["action"] == stalled.replan.advised.action and told["why"] in str(stalled.render(width=400))


def test_a_wait_for_capacity_makes_the_same_capacity_later_and_less_sure(plan: planner.Plan) -> None:
    """A request for on-demand machines that has not been granted counts for the other options."""
    run = tracked(plan, 1.0)
    line = replace(run.planned.plan.lines[0], purchase_option="on_demand")
    place = f"{line.provider}/{line.region}"
    only = ["constraints.purchase_options=[on_demand]", f"constraints.regions=[{place}]"]
    bought = replace(run.planned, plan=replace(run.planned.plan, lines=(line,), launch=None))
    ends, chances = [], []
    for hours in (0.0, 3.0, 30.0):
        found = replan(
            replace(run, planned=bought, stalled_hours=hours), with_settings(load_workload(WORKLOAD), only)
        )
        assert found.replan is not None
        way = ways_of(found)["add nodes"]
        ends.append(way.finish or way.reason)
        chances.append(way.p_meet or 0.0)
        said = [note for note in found.replan.notes if "no step for" in note]
        assert ["request for the same capacity" in note for note in said] == [True] * bool(hours)
    assert ends[0] < ends[1] < ends[2] and chances[0] > chances[1] > chances[2]


def test_a_commitment_that_has_ended_by_now_is_no_way_to_go_on(plan: planner.Plan) -> None:
    """The rest begins now, whatever start the workload states and whatever the clock shows."""
    run = tracked(plan, 1.0)
    owned = "{provider: aws, region: us-east-1, instance_type: p4d.24xlarge, purchase_option: reserved_1y, nodes: 4"
    for hours, is_there in ((-1.0, False), (20_000.0, True)):
        ends = (run.now + timedelta(hours=hours)).isoformat(timespec="seconds")
        begin = (run.now - timedelta(days=2)).isoformat(timespec="seconds")
        settings = (f"commitments=[{owned}, expires: '{ends}'}}]", f"start={begin}")
        ways = ways_of(replan(run, with_settings(load_workload(WORKLOAD), settings)))
        assert any("already paid" in way.choice for way in ways.values()) is is_there


def test_a_run_in_phases_is_refused_by_name(plan: planner.Plan) -> None:
    phases = "training.phases=[{share: 0.9, sequence_length: 128}, {share: 0.1, sequence_length: 512}]"
    with pytest.raises(InputError, match=r"training\.phases: --replan takes no run in phases"):
        replan(tracked(plan, 1.0), with_settings(load_workload(WORKLOAD), [phases]))


@pytest.mark.parametrize(("bought", "is_request"), [("on_demand", True), ("spot", False), ("owned", False)])
def test_what_is_owned_or_spot_is_no_request_for_capacity(
    plan: planner.Plan, bought: str, is_request: bool
) -> None:
    run = tracked(plan, 1.0)
    line = replace(run.planned.plan.lines[0], purchase_option=bought)
    planned = replace(run.planned, plan=replace(run.planned.plan, lines=(line,), launch=None))
    rest, found = _with_wait(replace(run, planned=planned, stalled_hours=3.0), load_workload(WORKLOAD))
    assert (found, len(rest.workload.constraints.waited)) == (is_request, int(is_request))


def test_a_run_that_no_longer_has_time_to_wait_takes_on_demand(slow: Tracked) -> None:
    assert slow.replan is not None and slow.replan.advised is not None
    advised = slow.replan.advised
    assert advised.action == "switch to on-demand"
    assert advised.slack_hours is None or advised.slack_hours <= 0.0


def test_a_run_without_spot_has_nothing_to_ask(plan: planner.Plan) -> None:
    run = tracked(plan, 1.0)
    assert run.planned.plan.launch is not None
    alone = replace(run.planned.plan, launch=replace(run.planned.plan.launch, strategy="spot"))
    made = replan(replace(run, planned=replace(run.planned, plan=alone)), load_workload(WORKLOAD)).replan
    assert made is not None and made.advised is None


def test_a_run_too_slow_for_its_deadline_changes(slow: Tracked) -> None:
    made = slow
    assert made.p_late and made.p_late > 0.5
    assert made.replan is not None and made.replan.decision != STAY
    chosen = ways_of(made)[made.replan.decision]
    assert chosen.p_meet is None or chosen.p_meet >= 1.0 - made.p_late
    assert "What now" in made.render("md") and made.to_dict()["replan"]["decision"] == made.replan.decision


def test_the_cheapest_way_that_is_sure_enough_is_taken(plan: planner.Plan) -> None:
    found = tracked(plan, 1.0)

    def decided(*ways: tuple[str, float, float]) -> str:
        return _decide(found, tuple(Way(name, "", usd, 0.0, "", chance) for name, usd, chance in ways))[0]

    assert decided((STAY, 100, 0.99), ("add nodes", 99, 0.99)) == STAY  # too little to change for
    assert decided((STAY, 100, 0.99), ("add nodes", 80, 0.99)) == "add nodes"
    assert decided((STAY, 100, 0.2), ("add nodes", 150, 0.95), ("change type", 90, 0.5)) == "add nodes"
    assert decided((STAY, 100, 0.2), ("add nodes", 150, 0.6), ("change type", 90, 0.5)) == "add nodes"


def test_the_workload_is_found_by_its_content(plan: planner.Plan, tmp_path: Path) -> None:
    found = tracked(plan, 1.0)
    (tmp_path / "mine.yaml").write_bytes(WORKLOAD.read_bytes())
    assert workload_of(found, tmp_path / "plan.json", None).path == tmp_path / "mine.yaml"
    with pytest.raises(InputError, match="is not the workload file of this plan"):
        workload_of(found, None, ROOT / "examples" / "llama-3-8b.yaml")
    with pytest.raises(
        InputError, match="name its file with --workload; if values were given by --set, write"
    ):
        workload_of(found, tmp_path / "none" / "plan.json", None)


def test_a_finished_run_needs_no_way(plan: planner.Plan) -> None:
    done = replan(tracked(plan, 1.0, 1.0), load_workload(WORKLOAD))
    assert done.replan == Replan(STAY, "the work is done: stop the instances", ())
