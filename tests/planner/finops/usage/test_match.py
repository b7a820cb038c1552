"""Charges beside usage: every paid hour has one state, and costs add up to the bill's."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.finops.review.inputs import Beside
from planner.finops.review.model import Figure, Section
from planner.finops.usage import Usage, load_usage
from planner.finops.usage.match import Charge, match
from planner.finops.usage.model import Allocated, Measured, UsageFile
from planner.finops.utilisation import load_utilisation
from tests.draws import draws
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill
from tests.planner.finops.usage.test_read import SACCT, gpu, prometheus, write

OCTOBER, END, DAY, THIRD = date(2026, 10, 1), date(2026, 11, 1), date(2026, 10, 5), date(2026, 10, 3)
EIGHT = '{"GpuCount":8,"CoreCount":96}'
NAMES = st.sampled_from(["a", "b", "c", ""])
TEAMS = st.sampled_from(["nlp", ""])
HOURS = st.floats(0, 500, allow_nan=False)


def of(resource: str, hours: float = 24.0, cost: float = 100.0) -> Charge:
    names = frozenset({resource} - {""})
    run = f"run-{resource}"
    return Charge(DAY, resource, names, names, frozenset(), frozenset({"acct"}), run, "ml", hours, cost)


def usage_of(*allocated: Allocated, measured: tuple[Measured, ...] = (), days: bool = True) -> Usage:
    window = frozenset({DAY} if days else ())
    return Usage((UsageFile("x", "k", allocated, measured, days=window),))


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    runs, places = st.sampled_from([(), ("run-c",)]), st.sampled_from([(), ("acct",)])
    rows = draw(st.lists(st.builds(Allocated, st.just(DAY), NAMES, TEAMS, runs, places, HOURS), max_size=5))
    seen = draw(st.lists(st.tuples(NAMES, TEAMS, HOURS, st.floats(0, 1)), max_size=5))
    measured = tuple(
        Measured(DAY, machine, team, (), hours, hours * duty) for machine, team, hours, duty in seen
    )
    return usage_of(*rows, measured=measured, days=draw(st.booleans()))


@given(st.lists(st.builds(of, NAMES, HOURS, st.floats(0, 1e6)), max_size=6), usages())
@draws(80)
def test_states_add_up_to_the_bill(charges: list[Charge], usage: Usage) -> None:
    found = match(charges, usage, OCTOBER, END)
    assert found.cost() == pytest.approx(math.fsum(one.cost for one in charges), abs=0.005)
    assert found.hours() == pytest.approx(math.fsum(one.hours for one in charges), abs=1e-6)
    assert all(one.hours >= -1e-6 and one.cost >= -0.005 for one in found.parts)
    assert sum(found.by_level.values()) + found.cost("unmatched") == pytest.approx(found.cost(), abs=0.005)
    assert -1e-9 <= found.stray_hours <= found.used_hours + 1e-6


def test_free_idle_and_busy_hours() -> None:
    """24 paid: 12 allocated, of them 6 busy; 12 free."""
    usage = usage_of(Allocated(DAY, "a", "nlp", (), (), 12), measured=(Measured(DAY, "a", "", (), 24, 6),))
    found = match([of("a")], usage, OCTOBER, END)
    assert {(one.team, one.state): one.cost for one in found.parts if one.cost > 1e-9} == {
        ("nlp", "busy"): pytest.approx(25), ("nlp", "idle"): pytest.approx(25), ("ml", "free"): pytest.approx(50)
    }  # fmt: skip


def test_what_was_not_watched_is_unknown_not_idle() -> None:
    usage = usage_of(measured=(Measured(DAY, "a", "", (), 6, 3),), days=False)
    found = match([of("a"), of("b")], usage, OCTOBER, END)
    assert found.cost("busy", "not_busy") == pytest.approx(25)
    assert (found.cost("unknown"), found.cost("unmatched")) == (pytest.approx(75), 100)


def bill(folder: Path) -> Path:
    """Three days of gpu01 to gpu03, 8 GPUs at 192 USD a day, known by id, name and tag; a fourth machine by nothing."""
    machines = [
        {"ResourceId": "arn:aws:ec2:x:1:instance/gpu01"},
        {"ResourceId": "i-2", "ResourceName": "gpu02.example.org"},
        {"ResourceId": "i-3", "Tags": '{"team":"vision","env":"x","Name":"GPU03"}'},
        {"ResourceId": "i-4", "Tags": '{"team":"web"}'},
    ]
    rows = [charge(OCTOBER, 10)]
    for own in machines:
        rows += each_day(OCTOBER, THIRD, 192, PricingQuantity=24, SkuPriceDetails=EIGHT, **own)
    return write_bill(folder / "bill.csv", rows)


def reviewed(folder: Path, *files: Path | str) -> Section:
    return section(review_of(bill(folder), only=("usage",), beside=Beside(usage=load_usage(files))), "usage")


def test_a_review_with_slurm(tmp_path: Path) -> None:
    made = review_of(
        bill(tmp_path), only=("usage",), beside=Beside(usage=load_usage([write(tmp_path, "jobs", SACCT)]))
    )
    found = figures(made)
    assert found["usage_matched_ratio"].value == pytest.approx(0.75)
    # of 9 machine-days (1,728 GPU-hours at 1 USD) 216 GPU-hours were allocated
    assert found["usage_free_money"].value == pytest.approx(1728 - 216)
    assert found["usage_busy_ratio"].status == "withheld"
    idle = found["usage_idle_money"]
    assert idle.status == "flagged" and "75.0 % of GPU cost" in idle.reason
    assert found["usage_ended_badly_hours"].value == pytest.approx(24)
    teams = rows_of(made, "usage", "usage_teams")
    unseen = [row for row in teams if row["unknown"] == row["cost"] > 0]
    assert unseen and all(row["idle_share"] is row["busy_hours"] is None for row in unseen)  # "0.0 %" idle
    teams = {row["team"]: row for row in rows_of(made, "usage", "usage_teams")}
    assert (teams["nlp"]["unknown"], teams["web"]["unknown"]) == (pytest.approx(192), pytest.approx(576))
    assert teams["ml"]["idle"] == pytest.approx(2 * 576 - 192)
    assert sum(row["cost"] for row in teams.values()) == pytest.approx(4 * 576)
    by = {row["by"]: row["cost"] for row in rows_of(made, "usage", "usage_matched")}
    assert by == {
        "machine id": 576,
        "machine name": 576,
        "a tag that names the machine": 576,
        "not matched": 576,
    }


def test_a_team_is_idle_by_what_is_known_of_all_its_gpus(tmp_path: Path) -> None:
    """Beside jobs whose work nobody watched, a few free hours were "100.0 %" idle, and 0 hours busy."""
    made = reviewed(tmp_path, write(tmp_path, "jobs", SACCT.replace("|nlp|", "|ml|")))
    (teams,) = (table for table in made.tables if table.key == "usage_teams")
    (ml,) = (
        row
        for cells in teams.rows
        if (row := dict(zip((c.key for c in teams.columns), cells, strict=True)))["team"] == "ml"
    )
    assert ml["unknown"] == pytest.approx(192) and ml["idle"] == pytest.approx(2 * 576 - 192)
    assert ml["idle_share"] == pytest.approx((2 * 576 - 192) / (2 * 576)) and ml["busy_hours"] is None


def test_one_team_in_two_spellings_is_one_row(tmp_path: Path) -> None:
    """ml and ML are one owner in every other part of the review; a scheduler's account counts with the tag."""
    rows = [charge(OCTOBER, 10)]
    for name, team in (("gpu01", "ml"), ("gpu09", "ML"), ("gpu08", "Nlp")):
        rows += each_day(
            OCTOBER,
            THIRD,
            192,
            PricingQuantity=24,
            SkuPriceDetails=EIGHT,
            ResourceId=name,
            Tags=f'{{"team":"{team}"}}',
        )
    usage = load_usage([write(tmp_path, "jobs", SACCT)])
    path = write_bill(tmp_path / "bill.csv", rows)
    made = review_of(path, only=("usage",), beside=Beside(usage=usage))
    assert {row["team"] for row in rows_of(made, "usage", "usage_teams")} == {"ML", "Nlp"}
    apart = review_of(path, only=("usage",), beside=Beside(usage=usage), exact_tags=True)
    assert {row["team"] for row in rows_of(apart, "usage", "usage_teams")} == {"ml", "ML", "Nlp", "nlp"}


def test_slurm_and_dcgm_together(tmp_path: Path) -> None:
    watched = prometheus(*((gpu(Hostname="gpu01", UUID=f"GPU-{n}"), [50.0] * 24) for n in range(8)))
    made = reviewed(tmp_path, write(tmp_path, "jobs", SACCT), write(tmp_path, "dcgm.json", watched))
    levels = dict(zip(made.charts[0].labels, made.charts[0].series[0][1], strict=True))
    # gpu01 on 1 October: 192 watched, 96 busy, 48 allocated: busy cannot be more than was allocated
    assert levels == {"paid": 2304, "allocated": pytest.approx(216), "busy": pytest.approx(48)}
    assert "Goodput" in " ".join(made.sentences)


def test_account_and_day(tmp_path: Path) -> None:
    text = "Date,Namespace,GPUs,GPUHours,GPUCost\n2026-10-01,nlp,2,40,1\n"
    rows = [charge(OCTOBER, 192, PricingQuantity=24, SkuPriceDetails=EIGHT, SubAccountName="Prod")]
    usage = load_usage([f"{write(tmp_path, 'o.csv', text)}@prod"])
    made = review_of(write_bill(tmp_path / "b.csv", rows), only=("usage",), beside=Beside(usage=usage))
    rows_by = {row["by"]: row["cost"] for row in rows_of(made, "usage", "usage_matched")}
    assert rows_by == {"account or tag, and day": 192, "not matched": 0}
    assert figures(made)["usage_free_money"].value == pytest.approx(152)


def test_a_charge_of_several_days_is_spread(tmp_path: Path) -> None:
    rows = [
        charge(
            OCTOBER, 744, days=31, PricingQuantity=744, SkuPriceDetails='{"GpuCount":1}', ResourceId="gpu03"
        )
    ]
    usage = load_usage([write(tmp_path, "j", SACCT)])
    made = review_of(write_bill(tmp_path / "m.csv", rows), only=("usage",), beside=Beside(usage=usage))
    assert figures(made)["usage_free_money"].value == pytest.approx(
        48
    )  # the file has 3 days, one of them is used
    assert figures(made)["usage_unknown_money"].value == pytest.approx(744 - 48)


def test_without_usage_there_is_no_section(tmp_path: Path) -> None:
    assert "usage" not in {one.key for one in review_of(bill(tmp_path)).sections}


def test_without_gpus_it_says_so(tmp_path: Path) -> None:
    path = write_bill(tmp_path / "b.csv", [charge(OCTOBER, 10)])
    made = review_of(path, only=("usage",), beside=Beside(usage=load_usage([write(tmp_path, "j", SACCT)])))
    assert "GpuCount" in section(made, "usage").sentences[0]


def test_a_machine_that_files_name_in_two_ways_is_one(tmp_path: Path) -> None:
    """Kubecost has the cloud's id, DCGM the host: what was busy counted nowhere, all of it was "not known"."""
    entry = {
        "name": "n", "properties": {"node": "ip-10", "providerID": "i-0a", "namespace": "nlp", "pod": "p"},
        "start": "2026-10-05T00:00:00Z", "end": "2026-10-06T00:00:00Z", "gpuHours": 96,
    }  # fmt: skip
    kubecost = write(tmp_path, "k.json", json.dumps({"code": 200, "data": [{"n": entry}]}))
    lines = ["timestamp,metric,value,Hostname,gpu"]
    lines += [
        f"2026-10-05T{hour:02}:00:00Z,DCGM_FI_DEV_GPU_UTIL,{50 if hour < 12 else 0},ip-10,{one}"
        for hour in range(24)
        for one in range(8)
    ]
    dcgm = write(tmp_path, "d.csv", "\n".join(lines))
    own = Charge(
        DAY, "i-0a", frozenset({"i-0a"}), frozenset({"ip-10"}), frozenset(), frozenset(), "", "ml", 192, 1920
    )
    for paths in ([kubecost, dcgm], [dcgm, kubecost]):
        found = match([own], load_usage([str(path) for path in paths]), OCTOBER, END)
        assert (found.hours("busy"), found.hours("idle"), found.hours("free")) == pytest.approx((48, 48, 96))
        assert found.by_level["id"] == 1920 and found.stray_hours == 0


def test_a_host_name_that_two_machines_had_tells_neither(tmp_path: Path) -> None:
    entries = [
        {
            "name": provider, "properties": {"node": "ip-10", "providerID": provider, "namespace": "nlp"},
            "start": f"2026-10-0{day}T00:00:00Z", "end": f"2026-10-0{day + 1}T00:00:00Z", "gpuHours": 96,
        }
        for day, provider in ((4, "i-0a"), (5, "i-0b"))
    ]  # fmt: skip
    path = write(
        tmp_path, "k.json", json.dumps({"code": 200, "data": [{one["name"]: one for one in entries}]})
    )
    usage = load_usage([str(path)])
    assert usage.aliases == {}
    assert match([of("i-0b", 192)], usage, OCTOBER, END).hours("unmeasured") == 96


def test_useful_hours_of_machines_that_nobody_monitored_are_no_part_of_what_was_busy(tmp_path: Path) -> None:
    """One of two machines is monitored, 48 GPU-hours busy; 300 were useful: "48 goodput" beside 300 elsewhere."""
    details = {"PricingQuantity": 24, "SkuPriceDetails": EIGHT}
    rows = [row for name in ("i-1", "i-2") for row in each_day(DAY, DAY, 192, ResourceId=name, **details)]
    lines = ["timestamp,metric,value,Hostname,gpu"]
    lines += [
        f"2026-10-05T{hour:02}:00:00Z,DCGM_FI_DEV_GPU_UTIL,{50 if hour < 12 else 0},i-1,{one}"
        for hour in range(24)
        for one in range(8)
    ]
    dcgm = load_usage([write(tmp_path, "d.csv", "\n".join(lines))])

    def reviewed(useful: int) -> Section:
        told = tmp_path / f"busy-{useful}.csv"
        told.write_text(
            "date,run_id,allocated_gpu_hours,busy_gpu_hours,goodput_gpu_hours\n"
            f"{DAY},,384,{useful},{useful}\n"
        )
        path = write_bill(tmp_path / "bill.csv", rows)
        beside, busy = Beside(usage=dcgm), load_utilisation(told)
        return section(review_of(path, only=("usage",), beside=beside, utilisation=busy), "usage")

    def ratio(made: Section) -> Figure:
        return next(one for one in made.figures if one.key == "usage_goodput_ratio")

    busy = 8 * 12 * 0.5
    assert ratio(reviewed(40)).value == pytest.approx(40 / 384)
    made = reviewed(300)
    assert ratio(made).value is None
    assert (
        ratio(made).reason
        == f"the utilisation file has 300 useful GPU-hours, monitors saw {busy:.0f} busy ones"
    )
    assert made.charts[0].alt == f"GPU-hours: 384 paid, at least {busy:.0f} busy."
