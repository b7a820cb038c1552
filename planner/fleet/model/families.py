"""The constraint families of the fleet model. Adding one: a file, a line here, a golden LP file."""

from __future__ import annotations

from types import ModuleType

from planner.fleet.model import (
    budget,
    capacity,
    diversification,
    memory,
    part_time,
    quota,
    regions,
    spot_share,
    throughput,
    uses,
)

# In order: `throughput` makes the total that shares refer to, `regions` the switches that others use.
FAMILIES: tuple[ModuleType, ...] = (
    throughput,
    regions,
    part_time,
    memory,
    quota,
    uses,
    capacity,
    spot_share,
    diversification,
    budget,
)
