"""Faults carried as data: the path, the message and the near miss, never a text to be taken apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.asked.options import Options, utc_now
from planner.errors import InputError
from planner.inputs.faults import Fault, FaultError, near, need_columns
from planner.inputs.load import parse_workload
from planner.workloads.answer import optimize

TEXT = """version: 1
name: t
model: {preset: llama-3-8b}
training: {tokens: 1e9, global_batch: 64}
"""


def test_the_message_names_every_path() -> None:
    error = FaultError(Fault(("a", 0, "b"), "is wrong", "c"), Fault((), "nothing fits"))
    assert str(error) == "a[0].b: is wrong (did you mean 'c'?)\nnothing fits"
    assert isinstance(error, InputError) and error.exit_code == 2


@pytest.mark.parametrize(
    ("more", "place", "said"),
    [
        ("assumptions: {restart_times: 1}\n", "w.yaml:5:15: assumptions.restart_times:", "mean 'restart_time_s'"),
        ("assumptions: {export_s: -1}\n", "w.yaml:5:25: assumptions.export_s: -1 s is outside", ""),
        ("spot: {evidence: [none.csv]}\n", "w.yaml:5:18: spot.evidence", "none.csv: no such file or folder"),
        ("constraints: {deadline: 2020-01-01}\n", "w.yaml:5:25: constraints.deadline", "is in the past"),
    ],
)  # fmt: skip
def test_what_only_planning_can_tell_is_placed_in_the_file(more: str, place: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        optimize(parse_workload(TEXT + more, Path("w.yaml")), Options(utc_now()))
    assert str(caught.value).startswith(place) and said in str(caught.value)
    assert "^" in str(caught.value).splitlines()[-1]


@pytest.mark.parametrize(
    ("word", "meant"),
    [("p4d", "p4d.24xlarge"), ("P5.48", "p5.48xlarge"), ("p4d.24xlrage", "p4d.24xlarge"), ("q", ""), ("p", "")],
)  # fmt: skip
def test_the_beginning_of_a_name_is_enough_for_a_suggestion(word: str, meant: str) -> None:
    assert near(word, ["p4de.24xlarge", "p4d.24xlarge", "p5.48xlarge"]) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("us-est-1", "us-east-1"),  # as like us-west-1
        ("aws/us-est-1", "aws/us-east-1"),
        ("us-wst-1", "us-west-1"),
        ("us-east", "us-east-1"),
        ("eastus1", "us-east-1"),  # as like ap-east-1
        ("eu-wets-2", "eu-west-2"),
        ("moon", ""),
    ],
)
def test_the_nearest_region_is_the_one_that_begins_like_what_was_written(written: str, meant: str) -> None:
    regions = ["ap-east-1", "eu-west-1", "eu-west-2", "us-east-1", "us-east-2", "us-west-1", "us-west-2"]
    for order in (regions, regions[::-1]):
        known = [f"aws/{name}" for name in order] if "/" in written else order
        assert near(written, known) == meant


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (["hours", "rate"], "x.csv:1: there are no columns 'hour' (did you mean 'hours'?), 'pool'; needed: hour, pool"),
        (["hour", "pools", ""], "x.csv:1: there is no column 'pool' (did you mean 'pools'?); needed: hour, pool"),
        (["pool\x1b", "hour"], r"x.csv:1: there is no column 'pool' (did you mean 'pool\x1b'?); needed: hour, pool"),
        (["", ""], "x.csv:1: there are no columns 'hour', 'pool'; needed: hour, pool"),
        ([], "x.csv: is empty; its first line must name the columns hour, pool"),
        (None, "x.csv: is empty; its first line must name the columns hour, pool"),
    ],
)  # fmt: skip
def test_every_column_that_a_table_lacks_is_named(header: list[str] | None, said: str) -> None:
    need_columns("x.csv", ["pool", "hour", "other"], ("hour", "pool"))
    with pytest.raises(InputError) as refused:
        need_columns("x.csv", header, ("hour", "pool"))
    assert str(refused.value) == said
