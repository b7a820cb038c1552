"""The section `launch` of a plan with spot, recomputed: chances, hours, spread, checkpoints and evidence."""

from __future__ import annotations

from fractions import Fraction
from math import exp, hypot
from typing import TYPE_CHECKING, Any

from planner.judge import frame
from planner.judge.bench import Bench, Candidate
from planner.judge.carried import hazards_of
from planner.judge.completion import until_there
from planner.judge.findings import STATED, Exactly, Near
from planner.judge.money import billed, total
from planner.judge.purchases import Bought
from planner.judge.spot_policies import CHANCE_SLACK, outcomes, spread, wait_level

if TYPE_CHECKING:
    from planner.judge.chance import Capacity
    from planner.judge.document import Node

# P10 and P90 lie between two of 369 outcomes; each is a quantile of a table of the normal distribution on one side and
# of its exact inverse on the other
SPREAD_RATIO = 5e-4
_CHANCE_RATIO = 1e-4
_LIKELY = 0.9  # the level of P90
UNKNOWN = (
    "whether on-demand can be had when it is asked for is not published, for the newest accelerators (H100 and later) "
    "least of all: the wait and how often none comes are assumed (constraints.waiting)"
)


def launch_of(bench: Bench, plan: Node, candidate: Candidate) -> dict[str, Any]:
    """What the section must say."""
    assert candidate.situation is not None
    course, spot = candidate.course, [part for part in candidate.parts if part.offer.is_spot]
    fallback = course is not None and candidate.situation.fallback
    steady = not candidate.in_turn and len(spot) < len(candidate.parts)
    spot_hours = sum(part.paid_hours for part in spot)
    paid = sum(part.paid_hours for part in candidate.parts if candidate.in_turn or part.offer.is_spot)
    other = sum(part.paid_hours for part in candidate.parts if candidate.in_turn and not part.offer.is_spot)
    hours, usd = _spread(bench, candidate)
    low = min(hours[0], candidate.hours)
    high = max(_as_likely(hours[1], bench.deadline_hours, plan["launch"]["p_meet_deadline"]), candidate.hours)
    whole, ratio = plan["total_usd"].money(), frame.closeness(candidate)
    usd = _with_prices(spot, float(whole), usd)
    alone = candidate.p_meet if course is None else course.p_alone
    # waits on spot and hours of the fall-back are weighed with such a chance each
    waits = max(candidate.hours - candidate.waiting - paid, 0.0)
    unknown_hours = 2.0 * CHANCE_SLACK * candidate.hours if candidate.in_turn else 1e-7
    return {
        "strategy": "spot_with_fallback" if fallback else "spot_with_steady" if steady else "spot",
        "p_meet_deadline": _chance(candidate.p_meet),
        "p_meet_spot_only_ratio": _chance(alone),
        "p_on_demand_needed_ratio": _chance(course.p_needed if course else 0.0),
        "expected_cost_usd": Exactly(whole),
        "cost_p10_usd": Near(min(Fraction(usd[0]), whole), SPREAD_RATIO, 0.011),
        "cost_p90_usd": Near(max(Fraction(usd[1]), whole), SPREAD_RATIO, 0.011),
        "expected_hours": Exactly(plan["hours"].money()),
        "p10_hours": Near(low, SPREAD_RATIO),
        "p90_hours": Near(high, SPREAD_RATIO),
        "finish_p10": frame.finish(bench, plan["launch"]["p10_hours"].number()),
        "finish_p90": frame.finish(bench, plan["launch"]["p90_hours"].number()),
        "expected_interruptions": Near(candidate.interruptions, ratio),
        "spot_hours": Near(spot_hours, ratio),
        "on_demand_hours": Near(other, max(ratio, _CHANCE_RATIO), 1e-5),
        "waiting_hours": Near(waits, ratio, unknown_hours),
        "lost_hours": Near(candidate.lost, ratio, 1e-8),
        "on_demand_acquire_s": Near(_acquire_s(bench, candidate), 1e-9, 1e-6),
        "checkpoints": checkpoints(bench, candidate),
        "places": [
            place(bench, part.offer, part.nodes, Near(part.paid_hours, ratio))
            | records_of(plan, at)
            | hazards_of(plan, at)
            for at, part in enumerate(spot)
        ],
        "why": STATED,
        "first_wait_hours": first_wait(candidate.situation.pool, waits, ratio, unknown_hours),
        "p_on_demand_had_ratio": Near(candidate.situation.had) if fallback else None,
        "notes": [UNKNOWN] if fallback else [],
        "replay": None if plan["launch"]["replay"].is_null else STATED,
    }


def _as_likely(high: float, deadline_hours: float, stated: Node) -> float:
    """P90 of the end, before the deadline where that is met with 90 % or more (the chance is checked for itself)."""
    if stated.is_null:
        return high
    return min(high, deadline_hours) if stated.number() >= _LIKELY else max(high, deadline_hours)


def first_wait(pool: Capacity, waits: float, ratio: float, unknown_hours: float) -> Near:
    """Expected hours from asking for spot to the first start: where it is gone, the wait of who comes at any time.

    It is at most all expected waiting, `waits`, which ends where on-demand takes over; `ratio` and `unknown_hours` are
    how closely that is known.
    """
    load = pool.rate * pool.wait
    alone = pool.first_wait * load / (1.0 + load)
    return (
        Near(alone, ratio, 1e-7)
        if alone < waits - unknown_hours
        else Near(min(alone, waits), ratio, unknown_hours)
    )


def _acquire_s(bench: Bench, candidate: Candidate) -> float:
    """Seconds from asking for on-demand to having it, that of the fall-back where there is one."""
    has_fallback = candidate.situation is not None and candidate.situation.fallback
    return (
        3600.0 * candidate.situation.acquire
        if has_fallback and candidate.situation
        else bench.work.figures["on_demand_acquire_s"]
    )


def _chance(value: float | None) -> Near | None:
    return None if value is None else Near(value, _CHANCE_RATIO, 1e-6)


def checkpoints(bench: Bench, candidate: Candidate) -> dict[str, Any]:
    """How the work is saved, and whether a save fits into the provider's warning."""
    spot = [part.offer for part in candidate.parts if part.offer.is_spot]
    rule, write_s = spot[0].rule, candidate.steps.write * 3600.0
    places = {offer.place for offer in spot}
    stored = f"object storage in {'/'.join(spot[0].place)}"
    if len(places) > 1:
        stored = "object storage of the region it runs in, carried along when the region changes"
    return {
        "size_gib": Near(bench.work.checkpoint_gib),
        "interval_hours": Near(candidate.interval),
        "write_s": Near(write_s),
        "stored_in": stored,
        "notice_s": None if rule.notice_s is None else Near(rule.notice_s),
        "notice_source": f"{rule.source} ({rule.as_of})",
        "fits_in_notice": rule.notice_s is not None and write_s <= rule.notice_s,
        "read_s": Near(candidate.steps.read * 3600.0),
        "restart_s": Near(candidate.steps.restart * 3600.0),
    }


def place(bench: Bench, offer: Any, nodes: int, hours: Near) -> dict[str, Any]:
    """What is known of the capacity of one place, at the level of its evidence."""
    pool, source, observed = bench.capacity(offer, nodes)
    level = exp(-(pool.frailty_sd**2) / 2.0)
    up, wait = 1.0 / max(pool.rate * level, 1e-300), pool.wait * level
    return {
        "offer_id": offer.offer_id, "spot_hours": hours, "mean_up_hours": Near(up),
        "mean_wait_hours": Near(wait), "availability_ratio": Near(up / (up + wait)),
        "observed_ratio": None if observed is None else Near(observed), "evidence": source,
    }  # fmt: skip


def records_of(plan: Node, at: int) -> dict[str, Any]:
    """The user's own records of place `at`, as the plan holds them for `planner advise`."""
    places = plan["launch"]["places"]
    return {"records": None if at >= len(places) or places[at]["records"].is_null else STATED}


def _spread(bench: Bench, candidate: Candidate) -> tuple[tuple[float, float], tuple[float, float]]:
    """P10 and P90 of hours and of cost, every outcome billed."""
    hours, usd = outcomes_of(bench, candidate)
    return spread(hours), spread(usd)


def outcomes_of(bench: Bench, candidate: Candidate) -> tuple[list[float], list[float]]:
    """Hours from the start and cost in USD of equally likely outcomes, at the expected prices; kept on the bench."""
    if id(candidate) not in bench.spreads:
        bench.spreads[id(candidate)] = _billed_outcomes(bench, candidate)
    found: tuple[list[float], list[float]] = bench.spreads[id(candidate)]
    return found


def _with_prices(spot: list[Bought], whole: float, usd: tuple[float, float]) -> tuple[float, float]:
    """P10 and P90 of cost with the spread of spot prices, which is common to all parts and adds in squares."""
    low = high = 0.0
    for part in spot:
        quote = part.offer.quote
        paid = float(next(charge.usd for charge in part.charges if charge.kind == "compute"))
        low += paid * (1.0 - quote.p10 / quote.expected)
        high += paid * (quote.p90 / quote.expected - 1.0)
    return whole - hypot(max(whole - usd[0], 0.0), low), whole + hypot(max(usd[1] - whole, 0.0), high)


def _billed_outcomes(bench: Bench, candidate: Candidate) -> tuple[list[float], list[float]]:
    assert candidate.situation is not None
    fixed, beside = candidate.steps.fixed, not candidate.in_turn and candidate.situation.waits is not None
    spot = [part for part in candidate.parts if part.offer.is_spot]
    whole_spot = sum(part.paid_hours for part in spot)
    once = total(bench.prices.moved(candidate.parts[0].offer)) + sum(
        (c.usd for part in candidate.parts for c in part.charges if c.id == "checkpoint_transfer"),
        Fraction(0),
    )
    keeping = bench.prices.keeping(candidate.parts[0].offer)
    rents = [bench.prices.rent(part.offer, part.nodes) for part in candidate.parts]
    hours, usd = [], []
    for number, outcome in enumerate(outcomes(candidate.situation)):
        waiting = (
            until_there(candidate.waits, candidate.waiting, wait_level(number))
            if beside and candidate.waits
            else candidate.waiting
        )
        elapsed = waiting + fixed + outcome.elapsed
        cost = once + keeping(elapsed) + bench.stored_usd(candidate, elapsed)
        for part, rent in zip(candidate.parts, rents, strict=True):
            if part.offer.is_spot:
                used = (fixed + outcome.spot) * (part.paid_hours / whole_spot)
            elif candidate.in_turn:
                used = outcome.on_demand
            else:
                used = fixed + outcome.elapsed
            if used > 0:
                time = billed(part.offer.rule, used, part.offer.term_hours)
                cost += rent(time or Fraction(0)) + bench.after_usd(candidate, part, used, elapsed)
        hours.append(elapsed)
        usd.append(float(cost))
    return hours, usd
