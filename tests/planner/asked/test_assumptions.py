"""Assumptions and their overrides."""

from __future__ import annotations

import math

import pytest

from planner.asked.assumptions import load_assumptions
from planner.errors import InputError
from planner.judge.work import assumption_rows


def test_every_figure_has_unit_origin_and_reason() -> None:
    for item in load_assumptions():
        assert item.unit and item.source and item.as_of
        assert item.origin in {"assumed", "read", "measured", "definition", "unverified"}
        assert item.low <= item.value <= item.high
        if item.origin == "assumed":
            assert len(item.note) > 20, item.key


def test_values_by_attribute_and_by_key() -> None:
    assumptions = load_assumptions()
    assert assumptions.restart_time_s == assumptions["restart_time_s"] == 720
    assert assumptions.item("restart_time_s").origin == "read"
    with pytest.raises(AttributeError, match="no assumption"):
        _ = assumptions.restart_tim


def test_override_is_marked_and_shows_the_default() -> None:
    assumptions = load_assumptions({"restart_time_s": 60})
    row = next(row for row in assumptions.rows() if row[0] == "restart_time_s")
    assert row[1:4] == (60.0, "s", "workload")
    assert "720" in row[4]


def test_all_wrong_overrides_at_once() -> None:
    wrong = {"restart_times": 1.0, "export_s": -1.0, "provision_s": math.nan, "zzz": 1.0}
    with pytest.raises(InputError) as caught:
        load_assumptions(wrong)
    text = str(caught.value)
    assert len(text.split("\n")) == 4
    assert "did you mean 'restart_time_s'" in text
    assert "outside" in text


def test_inference_has_no_evaluation_unless_the_workload_states_it() -> None:
    assert load_assumptions().evaluation_share_ratio == 0.02
    assert load_assumptions(kind="fleet").evaluation_share_ratio == 0.02
    assert load_assumptions(kind="inference").evaluation_share_ratio == 0
    stated = load_assumptions({"evaluation_share_ratio": 0.1}, "inference")
    assert stated.evaluation_share_ratio == 0.1
    assert len(load_assumptions(kind="inference")) == len(load_assumptions())


@pytest.mark.parametrize("kind", ["training", "fleet", "inference"])
def test_the_judge_reads_the_same_figures_of_a_kind(kind: str) -> None:
    read = {row["key"]: float(row["value"]) for row in assumption_rows(kind)}
    assert read == {item.key: item.value for item in load_assumptions(kind=kind)}
