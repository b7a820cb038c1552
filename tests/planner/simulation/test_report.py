"""What a report of replays calls its zone groups."""

from __future__ import annotations

import pytest

from planner.simulation.plots import group_label
from planner.simulation.replays import Cell


@pytest.mark.parametrize(
    ("kind", "gang", "label"),
    [
        ("p3.2xlarge", 1, "a (p3.2xlarge)"),
        ("p3.2xlarge", 4, "a (p3.2xlarge x4)"),
        ("", 1, "a"),
        ("", 4, "a (x4)"),
    ],
)
def test_a_group_of_no_type_has_no_empty_brackets(kind: str, gang: int, label: str) -> None:
    figures = [0.0] * 8
    cell = Cell("job", "a", "one", "", "drawn", kind, gang, "greedy", 1, 0, *figures)
    assert group_label(cell) == label
