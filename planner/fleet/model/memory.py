"""Enough accelerator memory in all: sum_o memory_gib_o x_o >= min_total_memory_gib."""

from __future__ import annotations

from planner.fleet.model.prepared import FleetModel

NAME = "memory"


def add(model: FleetModel) -> None:
    """Add the row when a minimum is asked for."""
    fleet = model.offers.source
    if not fleet.min_total_memory_gib:
        return
    row = model.builder.add_rows(NAME, 1, lower=fleet.min_total_memory_gib)
    model.builder.add_entries(row.start, model.columns, model.offers.of("memory_gib"))
