"""A plan as a document: headed blocks of facts, grids and notes that each text format lays out its own way.

What is said, and in which order, is decided once; `table`, `md` and later `html` only decide how it looks.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.records import record


@record(frozen=True)
class Facts:
    """Labelled values, one per row."""

    title: str
    rows: tuple[tuple[str, str], ...]
    detail: bool = False


@record(frozen=True)
class Grid:
    """Rows under a header; `align` holds `l` or `r` per column, `notes` stand below."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    notes: tuple[str, ...] = ()
    detail: bool = False
    total: bool = False  # the last row sums the others


@record(frozen=True)
class Notes:
    """Sentences; `level` is `info` or `warning`."""

    title: str
    items: tuple[str, ...]
    level: str = "info"
    detail: bool = False


@record(frozen=True)
class Bars:
    """Parts of a whole: label, amount and share (0..1) of each, drawn as bars where there is room."""

    title: str
    rows: tuple[tuple[str, str, float], ...]
    notes: tuple[str, ...] = ()
    detail: bool = False


Block = Facts | Grid | Notes | Bars


@record(frozen=True)
class Document:
    """The verdict and what supports it. `detail` blocks may be folded where a format can fold."""

    headline: str
    summary: tuple[str, ...]
    blocks: tuple[Block, ...]
    success: bool


def without_empty(
    header: Sequence[str], rows: Sequence[Sequence[str]], align: str
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]:
    """Drop the columns in which every cell is empty, such as zones where no price depends on one."""
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]
    return (
        tuple(header[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in rows),
        "".join(align[i] for i in kept),
    )
