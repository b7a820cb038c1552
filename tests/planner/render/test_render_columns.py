"""Tables that are wider than the terminal stay tables as long as their columns can be read."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from planner.render.text import columns, display_width

_HEADER = (
    "PROVIDER",
    "SERVICE",
    "SKU",
    "REGION",
    "BEFORE",
    "AFTER",
    "PRICE EFFECT",
    "VOLUME EFFECT",
    "REASON",
)
_ROW = (
    "Google Cloud", "Compute Engine", "SKU-gcp-gpu", "europe-west4", "113,591.24", "117,280.84", "25.12",
    "103,664.49", "more volume (+101.8 %), higher price (+4.8 %)",
)  # fmt: skip


def test_a_grid_whose_cells_are_all_empty_has_no_lines() -> None:
    assert columns([], [()], "", 98) == []


def test_text_columns_side_by_side_become_one() -> None:
    lines = columns(_HEADER, [_ROW], "llllrrrrl", 92)
    assert lines[0].split("  ")[0] == "PROVIDER, SERVICE, SKU,"
    assert lines[0].index("BEFORE") + len("BEFORE") == lines[2].index("113,591.24") + len("113,591.24")
    assert not any(line.startswith("- ") for line in lines)


def test_later_lines_of_a_cell_begin_below_the_first() -> None:
    """A cell that begins with blanks lost them where it was broken, and stood beside its column."""
    cell = "  deadline 36.0 h -> 355.8 h (9.9 times as long)"
    lines = columns(("ENOUGH", "COST"), [(cell, "$3,804")], "lr", 36)
    assert [line[:10] for line in lines[1:]] == ["  deadline", "  (9.9 tim"]


def test_headers_of_numbers_break_before_columns_are_joined() -> None:
    lines = columns(("RUN", "PER USEFUL GPU-HOUR"), [("7" * 20, "4.50")], "rr", 32)
    assert [line.split()[-1] for line in lines[:3]] == ["PER", "USEFUL", "GPU-HOUR"]
    assert lines[-1].endswith("4.50")


def test_no_heading_breaks_within_a_word() -> None:
    header = ("INSTANCE TYPE", "ACCELERATORS", "WHERE", "OPTION", "HOURS", "PRICE/H", "COST", "SAMPLES/S")
    row = ("4 x Standard_NC24ads_A100_v4", "4 x a100-80gb-pcie", "azure/germanywestcentral", "spot", "8.00",
           "$0.8395", "$27.02", "1,865")  # fmt: skip
    for width in range(40, 161):
        text = " ".join(columns(header, [row], "llllrrrr", width))
        assert {"INSTANCE", "TYPE", "ACCELERATORS"} <= set(re.split(r"[ ,]+", text)), (width, text)


@given(
    st.lists(
        st.tuples(*[st.text("abc de-", max_size=30)] * 3, *[st.text("0123456789", max_size=9)] * 3),
        max_size=4,
    ),
    st.integers(40, 120),
)
def test_no_line_is_wider_than_asked(rows: list[tuple[str, ...]], width: int) -> None:
    for line in columns(
        ("first one", "second", "third", "fourth x", "fifth", "sixth"), rows, "lllrrr", width
    ):
        assert display_width(line) <= width


def test_a_column_that_wraps_anyway_leaves_its_room_to_one_that_then_need_not() -> None:
    rows = [("vision-sweep x 5", "reserved_1y (owned)", "$17.46"), ("encoder", "on_demand", "$1.69")]
    lines = columns(("JOB", "BOUGHT", "COST"), rows, "llr", 40)
    assert lines[1:3] == ["vision-sweep x 5  reserved_1y  $17.46", "                  (owned)"]
