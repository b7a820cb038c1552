"""Fleets in two parts: each has its own runs and its own way, and starts by itself."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.export.files import ExportFile
    from planner.export.view import Launch


def in_two_parts(launch: Launch) -> Launch:
    """The launch with its parts: workers that take turns on its first two pools, and others on the third beside them.

    Hours stay those of the plan, until the part that ends last; the cost of a part is that of its pools.
    """
    runs, pools = launch.run.runs, launch.pools
    falling = round(runs * sum(pool.share for pool in pools[:2]))
    first, second = (
        replace(
            launch, name=f"{launch.name}-{number}", of=launch.name, pools=own, turns=len(own) > 1, begin=begin,
            count=end - begin,
            limits=replace(launch.limits, cost_usd=sum((pool.cost_usd for pool in own), Decimal(0)), cost_p90_usd=None),
        )
        for number, own, begin, end in ((1, pools[:2], 0, falling), (2, pools[2:], falling, runs))
    )  # fmt: skip
    return replace(launch, parts=(first, second))


def in_folders(launch: Launch, write: Callable[[Launch], tuple[ExportFile, ...]]) -> tuple[ExportFile, ...]:
    """The files of each part in a folder of its own, `part-1` and `part-2`."""
    return tuple(
        replace(file, path=f"part-{number}/{file.path}")
        for number, part in enumerate(launch.parts, start=1)
        for file in write(part)
    )
