"""`planner advise` as a launcher calls it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.plan.launch import SpotPlace, SpotRecords
from planner.plan.plain import plain
from planner.spot.hazards_cells import N_AGES
from planner.spot.hazards_evidence import model_from_files
from planner.spot.policy.job import SpotZone
from tests.conftest import ROOT, CliResult, Run
from tests.planner.advice.plans import assumed, line_values, plan_values, state_values, write
from tests.planner.render.render_plans import LAUNCH

Golden = Callable[[str, str], None]


def ask(run_cli: Run, folder: Path, *more: str, plan: Any = None, state: Any = None) -> CliResult:
    plan_file, state_file = write(folder, plan, state)
    return run_cli("advise", plan_file, "--state", state_file, *more)


def answer(run_cli: Run, folder: Path, *more: str, plan: Any = None, **changes: Any) -> dict[str, Any]:
    result = ask(run_cli, folder, "-o", "json", *more, plan=plan, state=state_values(**changes))
    assert result.code == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_spot_at_a_quarter_of_the_price_is_taken(tmp_path: Path, run_cli: Run) -> None:
    found = answer(run_cli, tmp_path)
    assert (found["action"], found["mode"], found["zone"]) == ("start spot", "spot", "us-east-2a")
    assert found["time_left_hours"] == 15.0 and found["work_left_hours"] == 8.0
    # 15 h less 8 h of work less a restart of 0.2 h
    assert found["point_of_no_return_hours"] == pytest.approx(6.8)
    assert found["point_of_no_return"] == "2026-03-02T19:48+00:00"
    assert found["p_on_demand_had_ratio"] <= found["p_finish_ratio"] < 1
    assert 0 < found["p_finish_spot_alone_ratio"] < found["p_finish_ratio"]
    assert found["prices"]["on_demand_usd_per_hour"] == 8.0  # of both nodes


def test_the_order_of_zones_changes_nothing_and_costs_have_the_digits_that_are_known(
    tmp_path: Path, run_cli: Run
) -> None:
    """A mean of 40 futures is not known to the cent, and the futures are those of the zones, not of their places."""
    zones = [
        {"name": "us-east-2a", "available": True, "since": 2, "usd_per_hour": 1.0},
        {"name": "us-east-2b", "available": False, "since": 1, "usd_per_hour": 0.8},
    ]
    few = ("--futures", "40")
    one, other = (answer(run_cli, tmp_path, *few, zones=each) for each in (zones, zones[::-1]))
    assert one["options"] == other["options"]
    cost = one["expected_cost_usd"]
    assert cost == other["expected_cost_usd"] and round(cost, 1) != cost
    text = ask(run_cli, tmp_path, *few, state=state_values(zones=zones)).unwrapped
    (shown,) = re.findall(r"expected cost from now \$([0-9.,]+)", text)
    assert len(shown.replace(".", "").rstrip("0")) <= 3 and float(shown) == pytest.approx(cost, rel=0.05)


def test_on_demand_comes_as_often_as_the_plan_states(tmp_path: Path, run_cli: Run) -> None:
    """An action that asks for on-demand is in time where it comes, and else as often as spot alone is."""
    chances = {}
    for had in (1.0, 0.6, 0.0):
        told = replace(LAUNCH, strategy="spot_with_fallback", p_on_demand_had_ratio=had)
        found = answer(run_cli, tmp_path, plan=plan_values(launch=plain(told)))
        assert found["p_on_demand_had_ratio"] == had
        chances[had] = {option["action"]: option["p_finish_ratio"] for option in found["options"]}
    for action, alone in chances[0.0].items():
        assert alone < 1.0
        assert chances[0.6][action] == pytest.approx(0.6 * chances[1.0][action] + 0.4 * alone)
    assert chances[1.0]["switch to on-demand"] == 1.0


def test_no_chance_is_shown_as_certain(tmp_path: Path, run_cli: Run) -> None:
    """On-demand that runs is not requested again, and still the work may fail: the text says more than 99 %."""
    state = state_values(mode="on_demand", done_hours=9.0)
    result = ask(run_cli, tmp_path, "--policy", "on_demand", state=state)
    assert result.code == 0, result.stderr
    assert ">99 %" in result.stdout and "100" not in result.stdout


def test_costs_lie_between_all_spot_and_all_on_demand_and_the_next_best_costs_no_less(
    tmp_path: Path, run_cli: Run
) -> None:
    found = answer(run_cli, tmp_path)
    assert 8.0 * 2 < found["expected_cost_usd"] < 8.2 * 8
    by_action = {option["action"]: option for option in found["options"]}
    assert set(by_action) == {"start spot", "wait", "switch to on-demand"}
    assert found["next_best"]["expected_cost_usd"] >= found["expected_cost_usd"] - 1.0
    assert by_action["switch to on-demand"]["more_than_chosen_usd"] > 0


def test_the_guard_stands_above_a_policy_that_would_wait(tmp_path: Path, run_cli: Run) -> None:
    """8.2 h are needed on-demand; with 8.2 h left a policy that only ever uses spot is overruled."""
    zones = [{"name": "us-east-2a", "available": False, "since": 3}]
    late = answer(run_cli, tmp_path, "--policy", "spot_only", now=11.8, zones=zones)
    assert late["action"] == "switch to on-demand" and late["decided_by"] == "guard"
    assert late["point_of_no_return_hours"] == pytest.approx(0.0, abs=1e-9)
    early = answer(run_cli, tmp_path, "--policy", "spot_only", now=11.6, zones=zones)
    assert early["action"] == "wait" and early["decided_by"] == "policy"


def test_time_to_obtain_on_demand_brings_the_guard_forward(tmp_path: Path, run_cli: Run) -> None:
    assumptions = plain(assumed(restart_time_s=720, on_demand_acquire_s=3600))
    zones = [{"name": "us-east-2a", "available": False, "since": 3}]
    plan = plan_values(assumptions=assumptions)
    found = answer(run_cli, tmp_path, "--policy", "spot_only", plan=plan, now=10.8, zones=zones)
    assert found["action"] == "switch to on-demand"
    assert (
        answer(run_cli, tmp_path, "--policy", "spot_only", plan=plan, now=10.6, zones=zones)["action"]
        == "wait"
    )


def test_a_margin_brings_the_deadline_forward(tmp_path: Path, run_cli: Run) -> None:
    found = answer(run_cli, tmp_path, "--margin", "1h")
    assert found["time_left_hours"] == 14.0 and found["point_of_no_return_hours"] == pytest.approx(5.8)


def test_a_margin_longer_than_the_run_has_is_named(tmp_path: Path, run_cli: Run) -> None:
    done = ask(run_cli, tmp_path, "--margin", "400h")
    assert done.code == 2
    assert "--margin: 400 h leave nothing" in done.stderr and "launched_at" not in done.stderr


@pytest.mark.parametrize(
    "policy", ["survival", "uniform_progress", "greedy", "margin", "on_demand", "spot_only"]
)
def test_every_policy_leaves_the_deadline_alone(policy: str, tmp_path: Path, run_cli: Run) -> None:
    """At the point of no return all of them go to on-demand, or stay where a tick of progress keeps it open."""
    found = answer(run_cli, tmp_path, "--policy", policy, now=11.8)
    # whatever spot does, the work is done in time where on-demand comes
    assert found["p_on_demand_had_ratio"] <= found["p_finish_ratio"] < 1.0
    assert found["mode"] == "on_demand"


def test_a_run_whose_zone_is_gone_counts_as_interrupted(tmp_path: Path, run_cli: Run) -> None:
    zones = [{"name": "us-east-2a", "available": False}, {"name": "us-east-2b", "available": True}]
    found = answer(run_cli, tmp_path, mode="spot", zone="us-east-2a", zones=zones)
    assert found["interrupted"] is True and found["action"] == "start spot" and found["zone"] == "us-east-2b"


def test_a_running_zone_is_kept_and_dear_spot_is_left(tmp_path: Path, run_cli: Run) -> None:
    running: dict[str, Any] = {"mode": "spot", "zone": "us-east-2a"}
    assert answer(run_cli, tmp_path, **running)["action"] == "stay"
    dear = [{"name": "us-east-2a", "available": True, "since": 1.5, "usd_per_hour": 4.5}]
    found = answer(run_cli, tmp_path, **running, zones=dear)
    assert found["mode"] != "spot" and "not a discount" in found["why"]


def test_finished(tmp_path: Path, run_cli: Run, check_golden: Golden) -> None:
    result = ask(run_cli, tmp_path, state=state_values(done_hours=10.0))
    assert result.code == 0
    check_golden("advise/finished.txt", result.stdout)


def test_after_the_deadline(tmp_path: Path, run_cli: Run, check_golden: Golden) -> None:
    result = ask(run_cli, tmp_path, state=state_values(now=21))
    assert result.code == 3
    check_golden("advise/missed.txt", result.stdout)


def test_a_deadline_out_of_reach_is_said_and_the_soonest_end_chosen(tmp_path: Path, run_cli: Run) -> None:
    result = ask(run_cli, tmp_path, "-o", "json", state=state_values(now=13))
    found = json.loads(result.stdout)
    assert result.code == 3 and found["status"] == "late" and found["action"] == "switch to on-demand"
    assert "1.2 h after the deadline" in found["why"]


def test_spot_that_still_makes_it_is_left_alone_when_on_demand_no_longer_can(
    tmp_path: Path, run_cli: Run
) -> None:
    """8 h of work, 8.1 h left: a switch needs 8.2 h, the running spot instance 8 h."""
    running = state_values(now=11.9, mode="spot", zone="us-east-2a")
    result = ask(run_cli, tmp_path, "-o", "json", state=running)
    found = json.loads(result.stdout)
    assert result.code == 3 and found["action"] == "stay" and 0 < found["p_finish_ratio"] < 1


@pytest.mark.parametrize("unit", [{"done_hours": 2.0}, {"done_ratio": 0.2}, {"done_steps": 2000}])
def test_work_done_in_three_units(unit: dict[str, float], tmp_path: Path, run_cli: Run) -> None:
    assert answer(run_cli, tmp_path, **{"done_hours": None, **unit})["work_left_hours"] == pytest.approx(8.0)


@pytest.mark.parametrize("now", ["5h", "2026-03-02T13:00Z", "2026-03-02T14:00+01:00"])
def test_the_present_as_duration_and_as_moment(now: str, tmp_path: Path, run_cli: Run) -> None:
    zones = [{"name": "us-east-2a", "available": True, "since": "2026-03-02T11:30Z"}]
    assert answer(run_cli, tmp_path, now=now, zones=zones)["time_left_hours"] == 15.0


def test_a_launch_later_than_planned_keeps_the_deadline(tmp_path: Path, run_cli: Run) -> None:
    found = answer(run_cli, tmp_path, launched_at="2026-03-02T10:00Z")
    assert found["time_left_hours"] == 13.0


def test_without_futures_the_action_is_the_same_and_costs_are_unknown(tmp_path: Path, run_cli: Run) -> None:
    quick, whole = answer(run_cli, tmp_path, "--futures", "0"), answer(run_cli, tmp_path)
    same = ("status", "action", "zone", "decided_by", "point_of_no_return_hours", "hazards")
    assert [quick[key] for key in same] == [whole[key] for key in same]
    unknown = ("expected_cost_usd", "p_finish_ratio", "p_finish_spot_alone_ratio", "next_best")
    assert [quick[key] for key in unknown] == [None] * 4 and len(quick["options"]) == 1
    table = ask(run_cli, tmp_path, "--futures", "0")
    assert table.code == 0 and "start spot" in table.stdout and "nan" not in table.stdout


def test_the_same_question_has_the_same_answer(tmp_path: Path, run_cli: Run) -> None:
    assert answer(run_cli, tmp_path) == answer(run_cli, tmp_path)


def test_rows_for_spreadsheets(tmp_path: Path, run_cli: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(ask(run_cli, tmp_path, "-o", "csv").stdout)))
    assert [row["rank"] for row in rows] == ["1", "2", "3"] and rows[0]["action"] == "start spot"


@pytest.mark.parametrize("fmt", ["table", "md", "yaml"])
def test_formats_for_people(fmt: str, tmp_path: Path, run_cli: Run) -> None:
    result = ask(run_cli, tmp_path, "-o", fmt)
    assert result.code == 0 and "us-east-2a" in result.stdout
    assert fmt != "table" or max(map(len, result.stdout.splitlines())) <= 100


def test_the_plans_own_fallback_and_places_are_read(tmp_path: Path, run_cli: Run) -> None:
    """Spot in two regions in turn and on-demand behind: prices come from the plan's lines."""
    west = line_values(region="us-west-2", zone="us-west-2b", price=0.9)
    steady = line_values(purchase_option="on_demand", price=3.0)
    launch = plain(replace(LAUNCH, strategy="spot_with_fallback"))
    plan = plan_values(lines=[line_values(), west, steady], launch=launch)
    zones = [{"name": "us-west-2b", "available": True, "since": 2}]
    found = answer(run_cli, tmp_path, plan=plan, on_demand_usd_per_hour=None, zones=zones)
    assert found["prices"]["on_demand_usd_per_hour"] == 6.0 and found["zone"] == "us-west-2b"


BAD_STATES: list[tuple[dict[str, Any], str]] = [
    ({"zone": "us-east-2z", "mode": "spot"}, "'us-east-2z' is not among the zones (did you mean 'us-east-2a'?)"),
    ({"zones": [{"name": "eu-west-1a", "available": True}]}, "'eu-west-1a' is not a zone of the plan's (us-east-2)"),
    ({"now": "2099-01-01T00:00Z"}, "in the future"),
    ({"now": "2026-03-01T00:00Z"}, "before the launch"),
    ({"now": -1}, "at least 0"),
    ({"now": float("nan")}, "now:"),
    ({"done_hours": float("nan")}, "done_hours"),
    ({"done_hours": 11.0}, "more than the whole plan has (10.00 h of work)"),
    ({"done_hours": None, "done_steps": 99_999}, "more than the whole plan has (10,000 steps)"),
    ({"done_ratio": 0.5}, "repeats done_hours"),
    ({"done_hours": None}, "give the work done as one of"),
    ({"mode": "spot"}, "name the zone it runs in"),
    ({"zone": "us-east-2a"}, "is only for mode spot"),
    ({"mode": "on-demand"}, "mode"),
    ({"restart_left_hours": 1.0}, "must be 0 while nothing runs"),
    ({"mode": "on_demand", "restart_left_hours": 50.0}, "far above the plan's restart"),
    ({"checkpoint_region": "us-est-2"}, "did you mean 'us-east-2'"),
    ({"launched_at": "2026-04-01"}, "after the plan's deadline"),
    ({"launched_at": 4}, "must be a moment"),
    ({"zones": []}, "zones"),
    ({"zones": [{"name": "us-east-2a", "available": True, "usd_per_hour": 0}]}, "usd_per_hour"),
    ({"zones": [{"name": "us-east-2a", "available": True, "since": "2026-03-02T14:00Z"}]}, "is after 'now'"),
    ({"zones": [{"name": "us-east-2a", "available": True, "since": 1767225600}]}, "moment as 2026-01-01T00:00:00Z"),
    ({"now": "1767225600"}, "1767225600 looks like Unix seconds"),
    ({"launched_at": 1767225600123}, "looks like Unix milliseconds: write the moment as 2026-01-01T00:00:00Z"),
    ({"now": 1e6}, "over a century"),
    ({"version": 2}, "version"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), BAD_STATES)
def test_bad_states_are_named_with_their_place(
    changes: dict[str, Any], message: str, tmp_path: Path, run_cli: Run
) -> None:
    result = ask(run_cli, tmp_path, state=state_values(**changes))
    assert result.code == 2 and message in result.stderr and "state.json:1:" in result.stderr
    assert "Traceback" not in result.stderr and result.stdout == ""


def test_a_clock_a_little_ahead_is_no_fault(tmp_path: Path, run_cli: Run) -> None:
    begun = datetime.now(UTC) - timedelta(hours=5)
    plan = plan_values(start=begun.isoformat(), deadline=(begun + timedelta(hours=20)).isoformat())
    ahead = (datetime.now(UTC) + timedelta(minutes=2)).isoformat()
    assert answer(run_cli, tmp_path, plan=plan, now=ahead)["status"] == "running"


def running_plan(hours: float) -> dict[str, Any]:
    """A plan that began so long ago."""
    begun = datetime.now(UTC) - timedelta(hours=hours)
    return plan_values(start=begun.isoformat(), deadline=(begun + timedelta(hours=20)).isoformat())


def test_a_state_older_than_twice_the_loop_is_refused_with_the_remedy(tmp_path: Path, run_cli: Run) -> None:
    old = state_values(now=(datetime.now(UTC) - timedelta(minutes=15)).isoformat())
    plan = running_plan(5)
    result = ask(run_cli, tmp_path, "--every", "6m", plan=plan, state=old)
    assert result.code == 2 and result.stdout == ""
    assert "now: the state is stale" in result.stderr and "write a fresh state" in result.stderr
    assert ask(run_cli, tmp_path, "--every", "10m", plan=plan, state=old).code == 0
    # without an interval nothing tells whether the state is late: the answer says how old it is
    assert re.search("the state is 1[5-9] min old", ask(run_cli, tmp_path, plan=plan, state=old).stdout)


def test_hours_since_a_launch_at_a_moment_can_be_stale_or_of_the_future(tmp_path: Path, run_cli: Run) -> None:
    launch = (datetime.now(UTC) - timedelta(hours=5)).isoformat()
    for now, message in ((4, "is stale"), (6, "1.0 h in the future")):
        state = state_values(now=now, launched_at=launch)
        result = ask(run_cli, tmp_path, "--every", "6m", plan=running_plan(5), state=state)
        assert result.code == 2 and message in result.stderr


BAD_PLANS: list[tuple[dict[str, Any], str]] = [
    ({"lines": [line_values(purchase_option="on_demand")]}, "no line of this plan is on spot"),
    ({"lines": [line_values()] * 2}, "in 2 parts that run side by side"),
    ({"kind": "fleet"}, "the workers of a fleet run one by one"),
    ({"deadline": None}, "has no deadline"),
    ({"status": "infeasible", "lines": []}, "there is no plan to follow"),
    ({"timeline": []}, "timeline: has no hours of work"),
    ({"start": "yesterday"}, "start: must be a moment"),
    ({"lines": [{**line_values(), "price_per_hour": "NaN"}]}, "lines[0].price_per_hour: must be a decimal number"),
    ({"lines": [line_values(price=0.0)]}, "lines[0].price_per_hour: must be more than 0"),
    ({"assumptions": plain(assumed(restart_time_s=-1))}, "assumptions[0].value: restart_time_s must be seconds"),
    ({"catalog": 5}, "catalog: must be a list, got 5"),
    ({"schema_version": 99}, "schema_version: 99, this planner reads 1 to 2"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), BAD_PLANS)
def test_plans_that_cannot_be_followed_say_why(
    changes: dict[str, Any], message: str, tmp_path: Path, run_cli: Run
) -> None:
    result = ask(run_cli, tmp_path, plan=plan_values(**changes))
    assert result.code == 2 and message in result.stderr and "Traceback" not in result.stderr


def test_files_that_are_no_plan_or_no_state(tmp_path: Path, run_cli: Run) -> None:
    plan_file, state_file = write(tmp_path)
    assert "not a plan" in run_cli("advise", state_file, "--state", state_file).stderr
    assert run_cli("advise", plan_file, "--state", plan_file).code == 2
    assert run_cli("advise", plan_file, "--state", str(tmp_path / "absent.json")).code == 2
    assert run_cli("advise", plan_file).code == 2


def test_an_unknown_type_asks_for_the_on_demand_price(tmp_path: Path, run_cli: Run) -> None:
    plan = plan_values(lines=[line_values(instance_type="own.machine")])
    result = ask(run_cli, tmp_path, plan=plan, state=state_values(on_demand_usd_per_hour=None))
    assert result.code == 2 and "add on_demand_usd_per_hour" in result.stderr


def test_the_catalog_gives_the_on_demand_price_of_a_known_type(tmp_path: Path, run_cli: Run) -> None:
    found = answer(run_cli, tmp_path, on_demand_usd_per_hour=None)
    assert 2 * 2.0 < found["prices"]["on_demand_usd_per_hour"] < 2 * 5.0
    assert any("no longer stored" in note for note in found["notes"])


def test_a_newcomer_can_run_the_example(tmp_path: Path, run_cli: Run) -> None:
    plan_file = str(tmp_path / "plan.json")
    workload = str(ROOT / "examples" / "resnet50-imagenet.yaml")
    planned = run_cli("optimize", workload, "-o", "json", "--out", plan_file)
    assert planned.code == 0, planned.stderr
    state_file = ROOT / "examples" / "spot-state.json"
    lines = json.loads(Path(plan_file).read_text(encoding="utf-8"))["lines"]
    places = {(line["region"], line["zone"]) for line in lines if line["purchase_option"] == "spot"}
    state = json.loads(state_file.read_text(encoding="utf-8"))
    assert {(zone["region"], zone["name"]) for zone in state["zones"]} <= places, (
        "the state is of another plan"
    )
    assert state["checkpoint_region"] in {region for region, _ in places}
    result = run_cli("advise", plan_file, "--state", str(state_file))
    assert result.code == 0 and "Zones" in result.stdout, result.stderr
    said = " ".join(result.stdout.split())
    names = ", ".join(zone["name"] for zone in state["zones"])
    assert f"record used for {names}: " in said and "RECORD USED" not in said  # once for all, not in a column


def test_the_users_own_record_counts(tmp_path: Path, run_cli: Run) -> None:
    """A zone seen up for two weeks without a break: its spell is expected to last, and spot alone to be enough."""
    rows = "\n".join(
        f"2026-02-{day:02}T{hour:02}:00Z,us-east-2a,aws,p3.2xlarge,2,1"
        for day in range(1, 15)
        for hour in range(24)
    )
    log = tmp_path / "seen.csv"
    log.write_text("time,zone,provider,instance_type,gang,available\n" + rows + "\n", encoding="utf-8")
    before = answer(run_cli, tmp_path)
    after = answer(run_cli, tmp_path, "--spot-evidence", str(log))
    assert after["p_finish_spot_alone_ratio"] > before["p_finish_spot_alone_ratio"]
    assert after["expected_cost_usd"] < before["expected_cost_usd"]


def banded_plan(
    evidence: str = "band: 5-10 % a month (2026-01)", records: SpotRecords | None = None
) -> dict[str, Any]:
    """A plan that expects a place to be up for 40 h at a time and down for 10."""
    place = SpotPlace(line_values()["offer_id"], 10.0, 40.0, 10.0, 0.8, None, evidence, records)
    return plan_values(launch=plain(replace(LAUNCH, places=(place,))))


def test_where_the_plan_rests_on_no_record_its_figures_are_the_hazards(tmp_path: Path, run_cli: Run) -> None:
    found = answer(run_cli, tmp_path, plan=banded_plan())
    assert found["hazards"] == {"us-east-2a": "the plan's figures: band: 5-10 % a month (2026-01)"}
    zones = ask(run_cli, tmp_path, "-o", "table", plan=banded_plan()).stdout
    assert "80%" in zones.replace(" %", "%")  # 40 h of 50, as the plan says
    recorded = answer(run_cli, tmp_path, plan=banded_plan("recorded: aws p3.2xlarge x1, zone us-east-2a"))
    assert recorded["hazards"]["us-east-2a"].startswith("aws p3.2xlarge x2, zone us-east-2a")
    assert recorded["notes"] == []


def test_evidence_of_the_workload_counts_and_a_difference_from_the_plan_is_named(
    tmp_path: Path, run_cli: Run
) -> None:
    (tmp_path / "seen.csv").write_text(
        "time,zone,provider,instance_type,gang,available\n"
        + "".join(f"2026-02-{day:02}T00:00Z,us-east-2a,aws,p3.2xlarge,2,0\n" for day in range(1, 9)),
        encoding="utf-8",
    )
    text = (ROOT / "examples" / "bert-large.yaml").read_text(encoding="utf-8")
    workload = tmp_path / "own.yaml"
    workload.write_text(text + "\nspot: {evidence: [seen.csv]}\n", encoding="utf-8")
    own = "your records beside public ones: aws p3.2xlarge x1, zone us-east-2a"
    plan = banded_plan(own) | {"workload_sha256": hashlib.sha256(workload.read_bytes()).hexdigest()}
    named = answer(run_cli, tmp_path, "--workload", str(workload), plan=plan)
    assert named["notes"] == []
    given = answer(run_cli, tmp_path, "--spot-evidence", str(tmp_path / "seen.csv"), plan=plan)
    assert named["hazards"] == given["hazards"] and named["options"] == given["options"]
    assert named["hazards"]["us-east-2a"].startswith("aws p3.2xlarge x2")
    # without the records the plan's own figures, and the difference said
    without = answer(run_cli, tmp_path, plan=plan)
    assert without["hazards"]["us-east-2a"] == f"the plan's figures: {own}"
    assert any("--workload FILE" in note for note in without["notes"])
    # a plan that holds the records decides as the records themselves do, without their files
    table = model_from_files([tmp_path / "seen.csv"]).table_for(
        SpotZone("us-east-2a", "us-east-2", "p3.2xlarge", 1.0, "aws", 2, accelerators=1)
    )
    records = SpotRecords(
        tuple(table.down_per_hour), tuple(table.up_per_hour), table.frailty_sd_down, table.frailty_sd_up,
        table.hours_seen, table.source,
    )  # fmt: skip
    held = banded_plan(own, records)
    alone = answer(run_cli, tmp_path, plan=held)
    assert alone["options"] == named["options"] and alone["notes"] == []
    assert alone["hazards"]["us-east-2a"] == f"{table.source} (as the plan has them)"
    held["launch"]["places"][0]["records"]["up_per_hour"].pop()
    short = ask(run_cli, tmp_path, plan=held)
    assert short.code == 2 and f"records.up_per_hour has {N_AGES - 1} values" in short.stderr
    other = answer(run_cli, tmp_path, "--workload", str(workload), plan=banded_plan())
    assert any("is not the workload file of this plan" in note for note in other["notes"])
    assert any("computed without your spot records" in note for note in other["notes"])


def test_the_table_is_written_beside_the_answer(tmp_path: Path, run_cli: Run) -> None:
    path = tmp_path / "table.json"
    result = ask(run_cli, tmp_path, "--every", "30m", "--table", str(path))
    assert result.code == 0 and "start spot" in result.stdout
    assert "table.json: the policy's own decision" in result.stderr
    found = json.loads(path.read_text(encoding="utf-8"))
    assert (
        found["kind"] == "decision_table" and found["zones"] == ["us-east-2a"] and found["tick_hours"] == 0.5
    )
    wrong = ask(run_cli, tmp_path, "--every", "30m", "--table", str(tmp_path / "table.xlsx"))
    assert wrong.code == 2 and "must end in .json or .csv" in wrong.stderr and wrong.stdout == ""
