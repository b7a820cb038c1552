"""Why this plan, why not that type, and what to relax when nothing fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.choose import best_missing, best_where
from planner.candidates.constraints.registry import BIT
from planner.candidates.decisions import KINDS, best_of
from planner.candidates.filters import count_filters
from planner.candidates.plan_parts.summary import describe, summarize, words_of_reasons
from planner.market.machines import machine_hint
from planner.plan.front_scale import Scale
from planner.render.numbers import usd_change_known, whole_percent
from planner.render.precision import rounded

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Ints, Table
    from planner.asked.model import Asked
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.market.model import Market
    from planner.plan.brief import Summary
    from planner.plan.model import Plan


def explain_kinds(search: CandidateSearch | None, plan: Plan) -> list[str]:
    """Name the best candidate of each kind of plan: the same that the baseline, `why` and the alternatives name."""
    if search is None:
        return []
    candidates = search.candidates
    winner = best_where(
        candidates, candidates.bits == 0, candidates.context.asked.workload.preferences.objective
    )
    if winner is None:
        return []
    best = [(kind, best_of(candidates, kind)) for kind in KINDS]
    return [
        f"{kind.words}: "
        + ("no candidate meets every limit" if at is None else _against(candidates, at, winner, plan))
        for kind, at in best
    ]


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def _against(candidates: Candidates, at: int, winner: int, plan: Plan) -> str:
    """A candidate beside the plan; costs in the digits that are known of the plan's."""
    return _beside(summarize(candidates, at, winner), plan)


def _beside(brief: Summary, plan: Plan) -> str:
    scale = Scale.of(plan)
    more = rounded(brief.delta_cost_usd, scale.places(brief.cost_usd))
    change = f"{brief.delta_hours:+,.1f} h against the plan"
    cost = f"{scale.usd(brief.cost_usd)} ({usd_change_known(more)})"
    return f"{describe(brief)}, {cost}, {brief.hours:,.1f} h ({change})"


def explain_layout(asked: Asked, market: Market, plan: Plan) -> list[str]:
    """Say which layouts the chosen machines could run, the best ones, and what the others lost by."""
    from planner.performance.phases import phase_jobs
    from planner.performance.search_explain import explain_layouts, report_lines

    if plan.kind == "fleet" or not plan.lines or plan.lines[0].layout is None:
        return []
    if asked.job.training.tuning.requests is not None:  # replicas, not layouts of a training step
        return []
    line, offers = plan.lines[0], market.offer_set
    in_turn = plan.launch is not None and plan.launch.strategy != "spot_with_steady"
    nodes = line.nodes if in_turn else sum(part.nodes for part in plan.lines)
    same = np.flatnonzero(offers.offers.equals("instance_type", line.instance_type))
    offer = next(at for at in same.tolist() if offers.offer_id(at) == line.offer_id)
    row = int(offers.hardware_of_type[offers.type_of_offer[offer]])
    model, training = asked.job.model, asked.job.training
    jobs = phase_jobs(model, training) or [(model, training)]
    out = []
    for number, job in enumerate(jobs, start=1):
        first, *rest = report_lines(explain_layouts(*job, offers.hardware, nodes, row=row))
        if asked.calibration is not None:
            first += " (times before your measurements correct them)"
        of = f" in phase {number}" if len(jobs) > 1 else ""
        out += [
            f"layouts of {nodes} x {line.instance_type}{of}, {first}",
            *(f"layout {text}" for text in rest),
        ]
    return out


def why_not(
    asked: Asked, market: Market, search: CandidateSearch | None, wanted: str, plan: Plan
) -> list[str]:
    """Say, line by line, why instance type `wanted` is not the plan.

    Args:
        asked: the workload and the job made of it.
        market: what can be bought, and its prices.
        search: all candidates.
        wanted: an instance type of the catalog.
        plan: the plan.
    """
    offers = market.offer_set.offers
    rows = np.flatnonzero(offers.equals("instance_type", wanted))
    if search is None:
        command = f"planner optimize FILE --set constraints.instance_types.allow=[{wanted}]"
        return [
            f"{wanted}: the offers of a fleet are chosen together; its cost with this type only: {command}"
        ]
    if not len(rows):
        known = market.offer_set.types.equals("instance_type", wanted).any()
        return [
            f"{wanted}: "
            + (
                "in the catalog, but no price is known: no offer"
                if known
                else f"not in the catalog{machine_hint(market.offer_set.types, wanted)}"
            )
        ]
    candidates = search.candidates
    mine = np.isin(candidates.offer, rows)
    offered, fitting = (
        _counted(number, word) for number, word in ((len(rows), "offer"), (int(mine.sum()), "candidate"))
    )
    out = [f"{wanted}: {offered}, {fitting} that can run the job"]
    bits = candidates.bits[mine]
    winner = best_where(candidates, candidates.bits == 0, asked.workload.preferences.objective)
    best = best_where(candidates, mine & (candidates.bits == 0), asked.workload.preferences.objective)
    if best is not None:
        assert winner is not None
        return [*out, f"feasible: {_against(candidates, best, winner, plan)}"]
    out += [f"  {count.name}: excludes {count.removed} ({count.removed_only_by_this} only by this): {count.description}"
            for count in count_filters(bits).counts]  # fmt: skip
    if winner is not None:
        out += _if_allowed(search, mine, wanted, winner, plan)
    return [*out, *_why_no_shape(search, rows)]


def _if_allowed(search: CandidateSearch, mine: Bools, wanted: str, winner: int, plan: Plan) -> list[str]:
    """What the type would cost without the limits of the file that keep its nearest candidate out; facts stay."""
    from planner.job.worth import against, best_of_type

    objective = search.context.asked.workload.preferences.objective
    nearest = best_missing(search.candidates, mine, ~0, objective)
    if nearest is None:
        return []
    bits = int(search.candidates.bits[nearest])
    late = bits & ~BIT["confidence"] | BIT["deadline"]
    words = [bits & int(search.offer_bits[search.candidates.offer[nearest]]), late]
    # spot that its offer's filters keep out is not yet bought in all ways, and confidence is judged last
    if not bits & (BIT["confidence"] | BIT["deadline"]):
        words.insert(1, bits)
    for word in dict.fromkeys(words):
        filters = [name for name, bit in BIT.items() if word & bit]
        best = best_of_type(search, wanted, filters) if filters else None
        if best is not None:
            beside = against(best, search.candidates, winner)
            return [f"  without {' and '.join(filters)}: {_beside(beside, plan)}"]
    return []


def _why_no_shape(search: CandidateSearch, rows: Ints) -> list[str]:
    context = search.candidates.context
    hardware = distinct_values(
        context.market.offer_set.hardware_of_type[context.market.offer_set.type_of_offer[rows]]
    )
    shapes = search.candidates.shapes
    mine = shapes.take(
        np.isin(shapes["hardware_row"], hardware) & ~np.asarray(shapes["fits"], dtype=np.bool_)
    )
    if not mine.n_rows:
        return []
    reasons = mine["reason"]
    out = []
    for reason in dict.fromkeys(reasons.tolist()):
        nodes = sorted(set(mine["nodes"][reasons == reason].tolist()))
        size = (
            f"{nodes[0]}..{nodes[-1]} nodes"
            if len(nodes) > 1
            else f"{nodes[0]} node{'s' if nodes[0] > 1 else ''}"
        )
        line = f"  does not run on {size}: {'; '.join(words_of_reasons([reason])) or reason}"
        if reason == "out_of_memory":
            line += _memory_words(mine.take(reasons == reason))
        out.append(line)
    return out


def _memory_words(short: Table) -> str:
    """What the most frugal of layouts that run out of memory needs, and how likely it runs out if it might fit."""
    need, have = np.nanmin(short["memory_needed_gib"]), np.nanmax(short["memory_available_gib"])
    if need > have:
        return f": it needs at least {need:,.1f} GiB per accelerator, has {have:,.1f}"
    risk = whole_percent(float(np.nanmin(short["oom_probability"])))
    return (
        f": it needs at least {need:,.1f} of {have:,.1f} GiB per accelerator and runs out with {risk}, more than is "
        "accepted (training.memory.confidence)"
    )
