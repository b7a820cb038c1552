"""Why this plan, why not that type, and what to relax when nothing fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.choose import best_where
from planner.candidates.model import IN_TURN
from planner.candidates.running import finish_quantile, meet_probability
from planner.job.summary import describe, summarize
from planner.plan.filters import BIT, FILTERS, HARD, count_filters
from planner.plan.model import Relaxation

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.context import Context
    from planner.candidates.engine import Found
    from planner.candidates.model import Candidates
    from planner.plan.model import Plan

    IntArray = npt.NDArray[np.int64]

# Limits whose needed value is a number that can be read off the candidates.
_NEAREST = 64  # candidates whose deadline is worked out
_MEASURED = ("deadline", "budget", "confidence", "throughput", "max_nodes")


def find_relaxations(context: Context, found: Found, *, limit: int = 5) -> tuple[Relaxation, ...]:
    """Return the smallest changes of one limit (else of two together) that make a plan possible.

    Candidates removed by exactly one limit tell how far that limit must move; facts of the hardware and refused
    prices are no limits and are never relaxed. When no single limit is enough, pairs are tried.
    """
    bits = _judged(context, found.candidates)
    soft = [name for name in FILTERS if name not in HARD]
    single = [_relax(context, found, (name,), _removed_by(bits, (name,))) for name in soft]
    out = [item for item in single if item is not None]
    if not out:
        pairs = [(a, b) for i, a in enumerate(soft) for b in soft[i + 1 :]]
        made = [_relax(context, found, pair, _removed_by(bits, pair)) for pair in pairs]
        out = [item for item in made if item is not None]
    out.sort(
        key=lambda item: (
            item.constraint not in _MEASURED,
            item.best.cost_usd if item.best else 0,
            item.constraint,
        )
    )
    return tuple(out[:limit])


def _judged(context: Context, made: Candidates) -> IntArray:
    """Filter bits with the confidence judged where it was not: on candidates that one other limit removes."""
    bits = made.bits.copy()
    if context.deadline_hours is None:
        return bits
    single = [BIT[name] for name in FILTERS if name not in (*HARD, "deadline", "confidence")]
    # what runs in turn was judged when it was made
    at = np.flatnonzero(np.isin(bits, single) & (made.kind != IN_TURN))
    if len(at):
        available = context.deadline_hours - made.waiting_hours[at] - made.fixed_hours[at]
        chance = meet_probability(
            context, *made.gang(at), made.sigma[at], made.write_hours[at], made.interval_hours[at], available,
        )  # fmt: skip
        unsure = at[chance < context.workload.constraints.deadline_confidence]
        bits[unsure] |= BIT["confidence"]
    return bits


def _removed_by(bits: IntArray, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Candidates that exactly `names` remove; a later deadline also helps those that are merely not sure enough."""
    word = sum(BIT[name] for name in names)
    mask = bits == word
    if "deadline" in names:
        mask |= bits == (word ^ BIT["deadline"] | BIT["confidence"])
    return np.asarray(mask, dtype=np.bool_)


def _relax(
    context: Context, found: Found, names: tuple[str, ...], mask: npt.NDArray[np.bool_]
) -> Relaxation | None:
    if not mask.any():
        return None
    made = found.candidates
    needs = {name: _needed(context, found, name, np.flatnonzero(mask)) for name in names}
    measured = [need for need in needs.values() if need is not None]
    if len(names) == 1 and measured:
        positions, values = measured[0]
        near = positions[values <= values.min() + 1e-9 * abs(values.min())]
        mask = np.zeros(len(made.offer), dtype=np.bool_)
        mask[near] = True
    at = best_where(context, made, mask, context.workload.preferences.objective)
    assert at is not None
    told = [_values(context, found, name, at) for name in names]
    return Relaxation(
        constraint=" and ".join(names),
        current=" and ".join(current for current, _ in told),
        needed=" and ".join(needed for _, needed in told),
        best=summarize(context, made, at, None),
        note="; ".join(FILTERS[name] for name in names),
    )


def _needed(
    context: Context, found: Found, name: str, positions: IntArray
) -> tuple[IntArray, npt.NDArray[np.float64]] | None:
    """What a measured limit would have to be for each candidate (smaller = nearer); None for other limits."""
    made = found.candidates
    if name == "deadline":
        # the nearest by expected hours; their confidence decides among them
        positions = positions[np.argsort(made.hours[positions], kind="stable")[:_NEAREST]]
        return positions, deadline_needed(context, made, positions)
    measures: dict[str, npt.NDArray[np.float64]] = {
        "budget": made.cash_usd, "confidence": -made.p_meet, "throughput": made.work_hours,
        "max_nodes": made.nodes.astype(np.float64),
    }  # fmt: skip
    return None if name not in measures else (positions, measures[name][positions])


def deadline_needed(context: Context, made: Candidates, at: IntArray) -> npt.NDArray[np.float64]:
    """Hours from the start within which each candidate ends with the confidence asked."""
    level = context.workload.constraints.deadline_confidence
    return np.maximum(finish_quantile(context, made, at, level), made.hours[at])


def explain_choice(plan: Plan) -> list[str]:
    """Say in a few lines what the plan is, what came next and what removed the other candidates."""
    out = []
    if plan.lines:
        for line in plan.lines:
            what = (
                f"{line.nodes} x {line.instance_type} {line.purchase_option} in {line.provider}/{line.region}"
            )
            out.append(f"plan: {what}, ${line.cost_usd:,.2f}")
        out.append(f"total: ${plan.total_usd:,.2f}, {plan.hours:,.1f} h")
        out += [f"next: {describe(other)}, ${other.cost_usd:,.2f} ({other.delta_cost_usd:+,.2f}), {other.hours:,.1f} h "
                f"({other.delta_hours:+,.1f} h)" for other in plan.alternatives]  # fmt: skip
    else:
        out.append("no plan: nothing satisfies all constraints")
        out += [f"relax: {item.constraint} {item.current} -> {item.needed}" for item in plan.relaxations]
    out += [
        f"filter {count.name}: removes {count.removed:,} ({count.removed_only_by_this:,} alone): {count.description}"
        for count in plan.filters
    ]
    return out + [
        f"filters {pair.first} + {pair.second}: {pair.removed:,} together" for pair in plan.filter_pairs
    ]


def explain_layout(context: Context, plan: Plan) -> list[str]:
    """Say which layouts the chosen machines could run, the best ones, and what the others lost by."""
    from planner.performance.search_explain import explain_layouts, report_lines

    if plan.kind == "fleet" or not plan.lines or plan.lines[0].layout is None:
        return []
    line, offers = plan.lines[0], context.offer_set
    in_turn = plan.launch is not None and plan.launch.strategy != "spot_with_steady"
    nodes = line.nodes if in_turn else sum(part.nodes for part in plan.lines)
    same = np.flatnonzero(offers.offers.equals("instance_type", line.instance_type))
    offer = next(at for at in same.tolist() if offers.offer_id(at) == line.offer_id)
    row = int(offers.hardware_of_type[offers.type_of_offer[offer]])
    report = explain_layouts(context.job.model, context.job.training, offers.hardware, nodes, row=row)
    first, *rest = report_lines(report)
    if context.calibration is not None:
        first += " (times before your measurements correct them)"
    return [f"layouts of {nodes} x {line.instance_type}, {first}", *(f"layout {text}" for text in rest)]


def _values(context: Context, found: Found, name: str, at: int) -> tuple[str, str]:
    """Current and needed value of limit `name` for candidate `at`, as text."""
    limits, made = context.workload.constraints, found.candidates
    row = int(made.offer[at])
    offers = context.offer_set.offers
    if name == "deadline":
        needed = float(deadline_needed(context, made, np.asarray([at]))[0])
        return f"{context.deadline_hours:,.1f} h", f"{_up(needed):,.1f} h"
    if name == "budget":
        return f"${limits.budget_usd:,}", f"${_up(float(made.cash_usd[at]), 0.01):,.2f}"
    if name == "confidence":
        return (
            f"{limits.deadline_confidence:g}",
            f"{np.floor(made.p_meet[at] * 1000) / 1000:g}",
        )
    if name == "max_nodes":
        return str(limits.max_nodes), str(int(made.nodes[at]))
    shown = {
        "provider": "provider", "region": "region", "residency": "region", "purchase_option": "purchase_option",
        "instance_type": "instance_type",
    }  # fmt: skip
    if name in shown:
        return "excluded", f"allow {offers[shown[name]][row]}"
    if name == "accelerator":
        kind = int(context.offer_set.type_of_offer[row])
        return "excluded", f"allow {context.offer_set.types['accelerator'][kind]}"
    return "too strict", "what the plan beside it needs"


def _up(value: float, step: float = 0.1) -> float:
    return float(np.ceil(value / step - 1e-9) * step)


def why_not(context: Context, found: Found | None, wanted: str) -> list[str]:
    """Say, line by line, why instance type `wanted` is not the plan.

    Args:
        context: the planning run.
        found: all candidates.
        wanted: an instance type of the catalog.
    """
    offers = context.offer_set.offers
    rows = np.flatnonzero(offers.equals("instance_type", wanted))
    if found is None:
        return [f"{wanted}: a fleet is chosen as a whole; exclude the other types to see its cost"]
    if not len(rows):
        known = context.offer_set.types.equals("instance_type", wanted).any()
        return [
            f"{wanted}: "
            + ("in the catalog, but no price is known: no offer" if known else "not in the catalog")
        ]
    made = found.candidates
    mine = np.isin(made.offer, rows)
    out = [f"{wanted}: {len(rows)} offers, {int(mine.sum())} candidates that fit in memory"]
    bits = made.bits[mine]
    winner = best_where(context, made, made.bits == 0, context.workload.preferences.objective)
    best = best_where(context, made, mine & (made.bits == 0), context.workload.preferences.objective)
    if best is not None:
        brief = summarize(context, made, best, winner)
        out.append(f"feasible: {describe(brief)}, ${brief.cost_usd:,.2f} ({brief.delta_cost_usd:+,.2f}), "
                   f"{brief.hours:,.1f} h ({brief.delta_hours:+,.1f} h against the plan)")  # fmt: skip
        return out
    out += [f"  {count.name}: removes {count.removed} ({count.removed_only_by_this} alone): {count.description}"
            for count in count_filters(bits).counts]  # fmt: skip
    return [*out, *_why_no_shape(context, found, rows)]


def _why_no_shape(context: Context, found: Found, rows: IntArray) -> list[str]:
    hardware = np.unique(context.offer_set.hardware_of_type[context.offer_set.type_of_offer[rows]])
    shapes = found.candidates.shapes
    mine = shapes.take(
        np.isin(shapes["hardware_row"], hardware) & ~np.asarray(shapes["fits"], dtype=np.bool_)
    )
    if not mine.n_rows:
        return []
    reasons = mine["reason"]
    out = []
    for reason in dict.fromkeys(reasons.tolist()):
        nodes = sorted(set(mine["nodes"][reasons == reason].tolist()))
        line = (
            f"  does not run ({reason}) on {nodes[0]}..{nodes[-1]} nodes"
            if len(nodes) > 1
            else f"  does not run ({reason}) on {nodes[0]} node"
        )
        if reason == "out_of_memory":
            need = np.nanmin(mine["memory_needed_gib"][reasons == reason])
            have = np.nanmax(mine["memory_available_gib"][reasons == reason])
            line += f": needs at least {need:,.1f} GiB per accelerator, has {have:,.1f}"
        out.append(line)
    return out
