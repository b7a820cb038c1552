"""The limits of a fleet in the words of the workload: which key sets each, and what would be enough.

The model knows limits by name (`FleetInput`); users know the keys that set them. What a fleet breaks is named by the
constraint's id and words where the registry has it, else by the key of `fleet`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from planner.candidates.constraints.deadline import later, less_sure
from planner.candidates.constraints.registry import BIT, constraint
from planner.fleet.chance import MOST_HOURS, progress_of
from planner.fleet.question import SHARES
from planner.fleet.workers import HAIR
from planner.plan.relaxation import Change, Relaxation, relaxation_of
from planner.render.numbers import usd
from planner.render.precision import dollars_stated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.asked.model import Asked
    from planner.candidates.engine import CandidateSearch
    from planner.fleet.mix import Mix
    from planner.fleet.question import Excess

# limit of the model -> constraint of the registry; quotas and other uses carry the constraint's id themselves
_CONSTRAINT = {
    "budget_usd": "budget",
    "max_total_units": "max_nodes",
    "min_total_memory_gib": "min_memory",
}
# limit of the model -> key of `fleet`, and what it means
_KEYS = {
    "max_spot_share": ("max_spot_share", "share of the work on spot"),
    "spot_workers": ("max_spot_share", "share of the work on spot"),
    "max_share_per_region": ("max_share_per_region", "share of the work in one region"),
    "max_share_per_offer": ("max_share_per_offer", "share of the work on one offer"),
    "max_regions": ("max_regions", "regions used"),
}


def relaxations_of(broken: Sequence[Excess], asked: Asked) -> tuple[Relaxation, ...]:
    """The change that makes a fleet possible: all limits in `broken` together, empty without any.

    Args:
        broken: limits that the nearest fleet breaks, with what it uses.
        asked: the workload, for keys and units.
    """
    if not broken:
        return ()
    # several regions may pass one limit on their share: the largest share tells how far it must move
    shares = {item.limit_name: item for item in sorted(broken, key=lambda item: item.used) if _is_share(item)}
    items = [*(item for item in broken if not _is_share(item)), *shares.values()]
    words = dict(_named(item, asked) for item in items)
    return (relaxation_of([_change(item, asked) for item in items], None, "; ".join(words.values())),)


def unsure(search: CandidateSearch, mix: Mix) -> tuple[Relaxation, ...]:
    """What would be enough where the surest mix known misses its deadline too often: less confidence, or more time."""
    dates, level = search.context.dates, search.context.asked.workload.constraints.deadline_confidence
    assert dates.deadline_hours is not None
    progress = progress_of(search, mix)
    reached = progress.chance(dates.deadline_hours, mix.work)
    sure, late = constraint("confidence"), constraint("deadline")
    out = [relaxation_of((less_sure(level, reached),), None, sure.words)]
    needed = math.ceil(progress.hours_for(level, mix.work) * 10) / 10
    if needed < MOST_HOURS:
        note = f"{late.words}: this mix is then done with {level:g}"
        out.append(relaxation_of((later(dates.deadline_hours, needed),), None, note))
    return tuple(out)


def _is_share(item: Excess) -> bool:
    return item.limit_name in SHARES


def _named(item: Excess, asked: Asked) -> tuple[str, str]:
    """The limit's id and words."""
    if item.limit_name in _KEYS:
        key, words = _KEYS[item.limit_name]
        return key, f"{words} (fleet.{key})"
    name = _CONSTRAINT.get(item.limit_name, item.limit_name)
    if item.limit_name == "required_throughput":
        floor = asked.workload.constraints.min_throughput
        name = "deadline" if floor is None else "throughput"
    return name, constraint(name).words if name in BIT else name.replace("_", " ")


def _change(item: Excess, asked: Asked) -> Change:
    """The limit as it is, and what would be enough."""
    id, limit, used = _named(item, asked)[0], item.limit, item.used
    match item.limit_name:
        case "required_throughput":  # work, not the deadline or the speed
            unit = asked.job.unit
            done = _percent(math.floor(used / limit * 1000 + 1e-6) / 1000)
            runs = 1 if asked.workload.fleet is None else asked.workload.fleet.runs
            if runs > 1 and id == "deadline":
                return Change(
                    id, f"{runs:,} runs in time", f"{math.floor(used / limit * runs + 1e-6):,} ({done})"
                )
            return Change(id, f"{limit:,.0f} {unit} in time", f"{used:,.0f} ({done})")
        case "budget_usd":
            enough = math.ceil(used * 100 - 1e-6) / 100
            return Change(id, dollars_stated(limit), usd(enough), limit, enough)
        case "max_total_units":
            fleet = asked.workload.fleet
            most, needed = (
                asked.workload.constraints.max_nodes,
                used * (1 if fleet is None else fleet.nodes_per_run),
            )
            return Change(id, f"{most:,}", f"{needed:,.0f}", most, needed)
        case "min_total_memory_gib":
            least = math.floor(used + 1e-6)
            return Change(id, f"{limit:,.0f} GiB", f"{least:,} GiB", limit, least)
        case "spot_workers":
            return Change(id, "0%", "above 0%")
    if item.limit_name in SHARES:
        runs = 1 if asked.workload.fleet is None else asked.workload.fleet.runs
        share = used if runs == 1 else math.ceil(used * runs - HAIR) / runs  # of whole runs
        enough = math.ceil(share * 1000 - 1e-6) / 1000
        stated = getattr(asked.workload.fleet, id, None) or limit  # not the whole runs that it comes to
        return Change(id, _percent(math.floor(stated * 1000 + 1e-6) / 1000), _percent(enough), stated, enough)
    of = f" of {item.member}" if item.member else ""
    return Change(id, f"{limit:,.12g}{of}", f"{used:,.12g}", limit, used)


def _percent(ratio: float) -> str:
    """A share in tenths of a percent."""
    return f"{ratio * 100:g}%"
