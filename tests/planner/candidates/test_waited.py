"""Requests for capacity that were made: read, weighed against the table, on the plan, and recomputed by the judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from planner.errors import InputError
from planner.inputs.load import load_workload
from planner.inputs.schema import Constraints
from planner.inputs.waiting_file import read_requests
from planner.judge.capacity_waits import start_of
from planner.market.obtainable import most_obtainable
from planner.market.starts import Starts, starts_of
from planner.plan.ids import TimePartId
from tests.planner.candidates.test_starts import START, asked, market_of, part
from tests.planner.spine_catalogs import A100X8, V100, Offer, make_catalog, plan_on

CSV = """asked_at,started_at,until,purchase_option,accelerator,accelerators,provider,region
2026-10-02T08:00Z,2026-10-02T12:30Z,,on_demand,v100*,8,aws,us-east-1
2026-10-05T08:00+02:00,,2026-10-12T06:00Z,on_demand,,16,,
"""
OFFERS = [
    Offer(A100X8, "us-east-1", "32.00"),
    Offer(A100X8, "us-west-2", "32.00"),
    Offer(V100, "us-east-1", "1.00", "spot"),
]


def known(*seen: dict[str, Any]) -> Starts:
    world = market_of(OFFERS)
    most = most_obtainable(world.offer_set, ())
    return starts_of(world.offer_set, (), most, START, Constraints(waited=seen).waited)


def request(hours: float, count: int = 64, **more: Any) -> dict[str, Any]:
    return {"purchase_option": "on_demand", "accelerators": count, "waited_hours": hours, **more}


def test_many_requests_rule_and_one_moves_the_table() -> None:
    """64 of the 256 A100 that asking brings wait 1.5 h by the table."""
    rows, nodes = np.array([0]), np.array([8])
    for count, hours in ((0, 1.5), (1, 1.5 * (2 + 3) / 3), (1000, 4.5)):
        wait = known(*[request(4.5)] * count).hours(rows, nodes)
        assert wait == pytest.approx([hours], rel=0.01)


def test_a_request_of_another_size_counts_by_what_its_size_waits() -> None:
    rows, nodes = np.array([0]), np.array([8])
    assert known(request(3.0, 128)).hours(rows, nodes) == pytest.approx([1.5])  # as the table says of 128
    assert known(request(0.0, 128)).hours(rows, nodes) == pytest.approx([1.0])


def test_what_did_not_come_waits_longer_and_after_a_week_never_comes() -> None:
    rows, nodes = np.array([0]), np.array([8])
    given_up = known(request(30.0, came=False))
    assert given_up.hours(rows, nodes) == pytest.approx([1.5 * (2 + 20) / 2])
    never = 0.05 / 4
    assert given_up.had(rows, nodes) == pytest.approx([1 - never / (1 + never)])
    week = known(request(168.0, came=False))
    assert week.had(rows, nodes) == pytest.approx([1 - never * 2 / (1 + never)])


def test_a_request_counts_where_it_fits_and_never_for_spot() -> None:
    seen = known(request(9.0, region="us-west-2"), request(50.0, purchase_option="spot"))
    wait = seen.hours(np.array([0, 1, 2]), np.array([8, 8, 8]))
    assert wait == pytest.approx([1.5, 1.5 * (2 + 6) / 3, 0.0])


def test_the_plan_waits_so_and_the_judge_agrees() -> None:
    limits = {"deadline": "200h", "max_nodes": 4, "waited": [request(20.0, 8), request(100.0, 8, came=False)]}
    answer = plan_on(make_catalog([Offer(A100X8, "us-east-1", "32.00")]), asked(**limits))
    plan = answer.plan
    wait = part(plan, TimePartId.CAPACITY)
    nodes = plan.lines[0].nodes
    table = 6.0 * nodes / 32
    assert wait == pytest.approx(table * (2 + 120.0 / (6.0 / 32)) / 3)
    assert any(
        row.key == "constraints.waited" and row.value == "2 requests, 1 came" for row in plan.assumptions
    )
    from catalogs.tariffs import load_tariffs
    from planner.judge.goods import Goods

    workload = answer.context.asked.workload
    goods = Goods(answer.context.market.catalog, workload, load_tariffs(), Path(), START.date())
    offer = goods.offer("line", plan.lines[0].offer_id)
    judged = start_of(offer, nodes, workload.constraints, START)
    starts = answer.context.starts
    rows = np.array([0])
    assert judged.mean == pytest.approx(wait) == pytest.approx(starts.hours(rows, np.array([nodes]))[0])
    assert judged.had == pytest.approx(starts.had(rows, np.array([nodes]))[0])
    assert judged.at(0.9) == pytest.approx(starts.at_level(rows, np.array([nodes]), 0.9)[0])
    assert judged.at(0.99) < judged.mean * 2.0 * (
        0.01 ** (-1 / 3) - 1.0
    )  # narrower than by the table, one came


def test_files_beside_the_workload_are_read_each_time(tmp_path: Path) -> None:
    job = asked(deadline="200h", waited=[request(1.0)], waiting_records=["requests.csv"])
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump(job), encoding="utf-8")
    (tmp_path / "requests.csv").write_text(CSV, encoding="utf-8")
    first = load_workload(path)
    waited = first.workload.constraints.waited
    assert [(one.waited_hours, one.came, one.accelerators) for one in waited] == [
        (1.0, True, 64), (4.5, True, 8), (168.0, False, 16),
    ]  # fmt: skip
    assert (waited[1].accelerator, waited[1].region, waited[2].accelerator) == ("v100*", "us-east-1", "*")
    (tmp_path / "requests.csv").write_text(CSV.splitlines()[0] + "\n", encoding="utf-8")
    second = load_workload(path)
    assert len(second.workload.constraints.waited) == 1 and second.sha256 != first.sha256


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("started_at", "began"), "there is no column 'started_at'; needed"),
        (("2026-10-12T06:00Z", ""), "r.csv:3: has neither started_at nor until"),
        (("2026-10-02T12:30Z", "soon"), "r.csv:2: 'soon' is not a timestamp"),
        (("2026-10-02T12:30Z", "2026-10-01"), "r.csv:2: ends before it was requested"),
        ((",8,aws", ",many,aws"), "r.csv:2: accelerators 'many' is not a whole number"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(change: tuple[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says.replace("(", "\\(")):
        read_requests(CSV.replace(*change), "r.csv")
