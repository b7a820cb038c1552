"""What a plan with spot says before it starts: chances, spread, hours, checkpoints, and the evidence behind them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.deadline import needs_record
from planner.candidates.decisions import ON_DEMAND, ONE_ZONE, best_of
from planner.candidates.in_time import chance_in_time
from planner.candidates.model import IN_TURN
from planner.candidates.plan_parts.summary import describe, summarize
from planner.candidates.running import steady_hours
from planner.candidates.starts import allotted_hours, chance_had, fallback_had, waits_of
from planner.candidates.ways.outcomes import Outcomes, Task, possible_outcomes, wait_levels
from planner.market.ends import Spread
from planner.market.price_path import NAMES
from planner.plan.launch import Checkpoints, Launch, SpotPlace, SpotRecords
from planner.render.numbers import usd
from planner.spot.pools import OWN_RECORDS

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.asked.model import Dates
    from planner.candidates.context import Context
    from planner.candidates.model import Candidates, Part
    from planner.spot.distribution import SpotPool
    from planner.spot.risk import SpotRisk


LOW, HIGH = 0.1, 0.9
NOT_PUBLISHED = (
    "whether on-demand can be had when it is asked for is not published, for the newest accelerators (H100 and later) "
    "least of all: the wait and how often none comes are assumed (constraints.waiting)"
)


def launch_of(candidates: Candidates, at: int, total: Decimal, *, with_reasons: bool = True) -> Launch | None:
    """Describe candidate `at` at launch, None where it has no spot.

    Args:
        candidates: all candidates.
        at: the chosen one.
        total: its cost in Decimal, the sum of the plan's lines.
        with_reasons: say why it runs so; False leaves the reasons empty.
    """
    context = candidates.context
    parts = candidates.parts(at)
    spot = [part for part in parts if context.market.is_spot[part.row]]
    if not spot:
        return None
    turn = int(candidates.kind[at]) == IN_TURN
    fallback = turn and len(spot) < len(parts)
    steady = not turn and len(spot) < len(parts)
    pool = _pool(candidates, at)
    hours, usd = outcomes_of(candidates, at)
    usd_low, usd_high = (
        Decimal(repr(round(value, 2)))
        for value in _with_prices(candidates, at, spot, float(total), _range(usd))
    )
    known = _meets(candidates, at)
    low, high = _ends(hours, float(candidates.hours[at]), known[0], context.dates.deadline_hours)
    rows, nodes = (np.asarray([getattr(part, name) for part in spot]) for name in ("row", "nodes"))
    paid = np.asarray([part.paid_hours for part in spot])
    expected_spot = sum(part.paid_hours for part in spot)
    waits = (
        float(candidates.hours[at])
        - float(candidates.waiting_hours[at])
        - sum(p.paid_hours for p in parts if turn or p in spot)
    )
    return Launch(
        strategy="spot_with_fallback" if fallback else "spot_with_steady" if steady else "spot",
        p_meet_deadline=known[0],
        p_meet_spot_only_ratio=known[1],
        p_on_demand_needed_ratio=known[2],
        expected_cost_usd=total,
        cost_p10_usd=min(usd_low, total),
        cost_p90_usd=max(usd_high, total),
        expected_hours=float(candidates.hours[at]),
        p10_hours=low,
        p90_hours=high,
        finish_p10=moment_after(context.dates, low),
        finish_p90=moment_after(context.dates, high),
        expected_interruptions=float(candidates.interruptions[at]),
        spot_hours=expected_spot,
        on_demand_hours=sum((part.paid_hours for part in parts if turn and part not in spot), 0.0),
        waiting_hours=max(waits, 0.0),
        lost_hours=float(candidates.lost_hours[at]),
        on_demand_acquire_s=acquire_hours(candidates, at) * 3600.0,
        checkpoints=checkpoints_of(candidates, at, rows.tolist()),
        places=spot_places(context, rows, nodes, paid),
        why=_why(candidates, at, known[1]) if with_reasons else (),
        notes=(NOT_PUBLISHED,) if fallback else (),
        p_on_demand_had_ratio=_fallback_had(candidates, at) if fallback else None,
        first_wait_hours=min(float(pool.wait_at_launch[0]), max(waits, 0.0)),
    )


def outcomes_of(candidates: Candidates, at: int) -> tuple[Floats, Floats]:
    """Hours from the start and cost in USD of equally likely outcomes of candidate `at`, which has spot.

    Each of shape `(n_outcomes,)`, over speed and interruptions at the expected prices.
    """
    parts, turn = candidates.parts(at), int(candidates.kind[at]) == IN_TURN
    spot = [part for part in parts if candidates.context.market.is_spot[part.row]]
    steady = [] if turn else [part for part in parts if part not in spot]
    outcomes = possible_outcomes(
        _task(candidates, at, turn and len(spot) < len(parts)), _pool(candidates, at)
    )
    hours = _before(candidates, at) + float(candidates.fixed_hours[at]) + outcomes.elapsed
    return hours, _usd(candidates, at, outcomes, hours, spot, steady)


def _before(candidates: Candidates, at: int) -> Floats | float:
    """Hours until the cluster is there, of every outcome where its steady part may come sooner or later."""
    waits = waits_of(candidates, np.asarray([at]))
    if not waits.has_spread[0]:
        return float(candidates.waiting_hours[at])
    levels = wait_levels()
    return waits.before + waits.take(np.zeros(len(levels), dtype=np.int64)).at_level(levels)


def quantile(values: Floats, level: float) -> float:
    """Quantile of equally likely values; `numpy.quantile` would import a module that takes longer than all this.

    Args:
        values: shape `(n,)`.
        level: 0 to 1; before the middle of the first and beyond that of the last value it is that value.
    """
    place = (np.arange(len(values)) + 0.5) / len(values)
    return float(np.interp(level, place, np.sort(values)))


def _range(values: Floats) -> tuple[float, float]:
    """P10 and P90 of equally likely values."""
    return quantile(values, LOW), quantile(values, HIGH)


def _ends(
    hours: Floats, expected: float, meet: float | None, deadline_hours: float | None
) -> tuple[float, float]:
    """P10 and P90 of the end, around the expected one and on the side of the deadline that its probability says.

    Outcomes are a coarser grid than what the probability is made of.

    Args:
        hours: of equally likely outcomes, from the start, shape `(n_outcomes,)`.
        expected: mean hours.
        meet: probability that the deadline is met, None without one.
        deadline_hours: likewise.
    """
    low, high = _range(hours)
    if meet is not None and deadline_hours is not None:
        high = min(high, deadline_hours) if meet >= HIGH else max(high, deadline_hours)
    return min(low, expected), max(high, expected)


def _with_prices(
    candidates: Candidates, at: int, spot: list[Part], total: float, range_usd: tuple[float, float]
) -> tuple[float, float]:
    """P10 and P90 of cost over interruptions, speed and spot prices.

    Prices of all parts move together (they share the levels of type and market), independently of the rest: distances
    from the expected cost add in squares.
    """
    rows, paid = (np.asarray([getattr(part, name) for part in spot]) for name in ("row", "instance_hours"))
    run, offer_set = np.full(len(rows), candidates.hours[at]), candidates.context.market.offer_set
    mean, p10, p90 = (offer_set.book.during(name, rows, run) for name in NAMES)
    usd = paid * offer_set.usd_during(rows, run)
    low, high = float((usd * (1.0 - p10 / mean)).sum()), float((usd * (p90 / mean - 1.0)).sum())
    below, above = max(total - range_usd[0], 0.0), max(range_usd[1] - total, 0.0)
    return total - float(np.hypot(below, low)), total + float(np.hypot(above, high))


def _pool(candidates: Candidates, at: int) -> SpotPool:
    context = candidates.context
    if candidates.turns is not None and candidates.kind[at] == IN_TURN:
        return candidates.turns.pool.take(candidates.detail[[at]])
    rows, nodes, _ = candidates.gang(np.asarray([at]))
    return context.gang_risk(rows, nodes).pool


def _task(candidates: Candidates, at: int, fallback: bool) -> Task:
    context = candidates.context
    one = np.asarray([at])
    rows, nodes, work = candidates.gang(one)
    write, interval = candidates.write_hours[one], candidates.interval_hours[one]
    used = float(candidates.waiting_hours[at] + candidates.fixed_hours[at])
    return Task(
        work=float(work[0]), interval=float(interval[0]), write=float(write[0]),
        restart=float(context.asked.restart_hours(write)[0]),
        notice=float(context.spot.figures.notice_hours[rows[0]]),
        steady=float(steady_hours(context.asked, nodes, work, write, interval)[0]), sigma=float(candidates.sigma[at]),
        room=np.inf if context.dates.deadline_hours is None else context.dates.deadline_hours - used,
        acquire=acquire_hours(candidates, at), has_fallback=fallback, late=_late(candidates, at) if fallback else 0.0,
        later=context.later_hours,
    )  # fmt: skip


def acquire_hours(candidates: Candidates, at: int) -> float:
    """Hours left to on-demand from asking for it to having it, to the fall-back where there is one."""
    context, wait = candidates.context, 0.0
    last = candidates.parts(at)[-1]
    if candidates.kind[at] == IN_TURN and not context.market.is_spot[last.row]:
        wait = float(allotted_hours(candidates, np.asarray([last.row]), candidates.nodes[[at]])[0])
    return wait + context.asked.assumptions.on_demand_acquire_s / 3600.0


def _late(candidates: Candidates, at: int) -> Floats:
    """By how much the fall-back comes later than in the hours left to it, of every outcome."""
    levels, starts = wait_levels(), candidates.context.starts
    row, nodes = np.asarray([candidates.parts(at)[-1].row]), candidates.nodes[[at]]
    return starts.at_level(row, nodes, levels) - allotted_hours(candidates, row, nodes)


def _fallback_had(candidates: Candidates, at: int) -> float:
    """Probability that the fall-back of candidate `at` comes within the hours left to it."""
    return float(
        fallback_had(candidates, np.asarray([candidates.parts(at)[-1].row]), candidates.nodes[[at]])[0]
    )


def _usd(
    candidates: Candidates,
    at: int,
    outcomes: Outcomes,
    hours: Floats,
    spot: list[Part],
    steady: list[Part],
) -> Floats:
    """Cost of every outcome as it would be billed, USD; `hours` from the start to its end."""
    context = candidates.context
    count, fixed = len(outcomes.elapsed), float(candidates.fixed_hours[at])
    parts = candidates.parts(at)
    all_spot = sum(part.paid_hours for part in spot)
    out = np.zeros(count)
    for number, part in enumerate(parts):
        if part in spot:
            used = (fixed + outcomes.spot) * (part.paid_hours / all_spot)
        elif part in steady:
            used = fixed + outcomes.elapsed
        else:
            used = outcomes.on_demand
        money = context.market.costs.evaluate(
            np.full(count, part.row),
            np.full(count, part.nodes),
            used,
            hours,
            spread=Spread(context.dates.start, np.full(count, fixed), np.zeros(count)),
            stored=candidates.stored(np.full(count, at)),
            run_hours=np.full(count, candidates.hours[at]),
        )
        paid = np.where(used > 0, money.worker_usd, 0.0)
        out += paid + (money.kept_usd if number == 0 else 0.0)
    if candidates.turns is not None and candidates.kind[at] == IN_TURN:
        out += candidates.turns.moved_usd[candidates.detail[at]]
    return out


def _meets(candidates: Candidates, at: int) -> tuple[float | None, float | None, float]:
    """Probability to meet the deadline as planned, that on spot alone, and that on-demand is needed."""
    context = candidates.context
    if context.dates.deadline_hours is None:
        return None, None, 0.0
    one = np.asarray([at])
    if candidates.turns is not None and candidates.kind[at] == IN_TURN:
        from planner.candidates.ways.chances import chances_of

        turns = chances_of(candidates, one)
        return float(turns.meet[0]), float(turns.alone[0]), float(turns.needed[0])
    chance = chance_in_time(candidates, one, context.dates.deadline_hours)
    known = float((chance * chance_had(candidates, one))[0])
    return known, known, 0.0


def moment_after(dates: Dates, hours: float) -> str:
    """ISO 8601 timestamp so many hours after the start, to the minute."""
    return (dates.start + timedelta(hours=min(hours, 1e6))).isoformat(timespec="minutes")


def checkpoints_of(candidates: Candidates, at: int, rows: list[int]) -> Checkpoints:
    """How candidate `at` saves its work on the spot offers `rows`."""
    context = candidates.context
    offers, rule = (
        context.market.offer_set.offers,
        context.market.offer_set.rules[context.market.offer_set.rule_of_offer[rows[0]]],
    )
    write_s = float(candidates.write_hours[at]) * 3600.0
    place = f"object storage in {offers['provider'][rows[0]]}/{offers['region'][rows[0]]}"
    if len({(str(offers["provider"][row]), str(offers["region"][row])) for row in rows}) > 1:
        place = "object storage of the region it runs in, carried along when the region changes"
    return Checkpoints(
        size_gib=context.asked.job.checkpoint_gib, interval_hours=float(candidates.interval_hours[at]), write_s=write_s,
        stored_in=place, notice_s=rule.notice_s, notice_source=f"{rule.source} ({rule.as_of})",
        fits_in_notice=rule.notice_s is not None and write_s <= rule.notice_s,
        read_s=float(context.asked.read_hours(candidates.write_hours[[at]])[0]) * 3600.0,
        restart_s=float(context.asked.restart_hours(candidates.write_hours[[at]])[0]) * 3600.0,
    )  # fmt: skip


def spot_places(context: Context, rows: Ints, nodes: Ints, hours: Floats) -> tuple[SpotPlace, ...]:
    """What is known of the capacity of spot offers.

    Args:
        context: the planning run.
        rows: the offers, shape `(n,)`.
        nodes: instances that must run together, shape `(n,)`.
        hours: expected hours on each, shape `(n,)`.
    """
    known = context.gang_risk(rows, nodes)
    pool = known.pool
    level = np.exp(-(pool.frailty_sd**2) / 2.0)  # the evidence's own, not the mean over how far it may be off
    up, wait = 1.0 / np.maximum(pool.rate * level, 1e-300), pool.wait * level
    return tuple(
        SpotPlace(
            offer_id=context.market.offer_set.offer_id(row), spot_hours=float(hours[k]),
            mean_up_hours=float(up[k]) if pool.rate[k] > 0 else float("inf"),
            mean_wait_hours=float(wait[k]), availability_ratio=float(up[k] / (up[k] + wait[k])),
            observed_ratio=None if np.isnan(known.observed[k]) else float(known.observed[k]),
            evidence=(evidence := known.sources[int(known.source[k])]),
            records=_records(context.spot, row, int(nodes[k])) if evidence.startswith(OWN_RECORDS) else None,
        )
        for k, row in enumerate(rows.tolist())
    )  # fmt: skip


def _records(risk: SpotRisk, row: int, nodes: int) -> SpotRecords | None:
    """The user's own records of a spot offer at this gang, for who follows the plan without the files."""
    table = risk.own_table(row, nodes)
    if table is None:
        return None
    return SpotRecords(
        tuple(table.down_per_hour.tolist()), tuple(table.up_per_hour.tolist()), table.frailty_sd_down,
        table.frailty_sd_up, table.hours_seen, table.source,
    )  # fmt: skip


def _why(candidates: Candidates, at: int, alone: float | None) -> tuple[str, ...]:
    """Why this way: what on-demand alone, spot alone and one zone would come to: the best of each, on any machine."""
    context, out = candidates.context, []
    steady = best_of(candidates, ON_DEMAND)
    if steady is not None:
        out.append(f"on-demand alone would cost {_brief(candidates, steady)}")
    if candidates.kind[at] != IN_TURN:
        if alone is not None:
            needless = "" if _unrecorded(candidates, at) else ": no on-demand is needed"
            out.append(f"spot alone meets the deadline with {alone:.0%}{needless}")
        return tuple(out)
    wanted = context.asked.workload.constraints.deadline_confidence
    if alone is not None and alone < wanted:
        out.append(f"spot alone would meet the deadline with {alone:.0%}, {wanted:.0%} is required")
    spot = [part for part in candidates.parts(at) if context.market.is_spot[part.row]]
    if len(spot) < len(candidates.parts(at)) and _unrecorded(candidates, at):
        out.append("no recorded spot availability there: with a deadline, on-demand is the fall-back")
    if len(spot) > 1:
        one = best_of(candidates, ONE_ZONE)
        said = "none of the candidates compared on spot in one zone meets every limit"
        out.append(said if one is None else f"spot in one zone would cost {_brief(candidates, one)}")
    return tuple(out)


def _unrecorded(candidates: Candidates, at: int) -> bool:
    """Whether a candidate runs on spot of which no record shows how it comes and goes."""
    context = candidates.context
    spot = [part for part in candidates.parts(at) if context.market.is_spot[part.row]]
    rows, nodes = (np.asarray([getattr(part, name) for part in spot]) for name in ("row", "nodes"))
    return bool(spot) and not context.gang_risk(rows, nodes).recorded.all()


def spot_warnings(candidates: Candidates, at: int) -> list[str]:
    """That a deadline rests on spot which no record shows, where the file leaves nothing to fall back on."""
    context = candidates.context
    if (
        context.dates.deadline is None
        or needs_record(context.asked.workload)
        or not _unrecorded(candidates, at)
    ):
        return []
    return [
        "no recorded spot availability there, and no fall-back: the probability of being in time "
        "rests on assumptions"
    ]


def _brief(candidates: Candidates, at: int) -> str:
    brief = summarize(candidates, at, None)
    return f"{usd(brief.cost_usd)} and take {brief.hours:,.1f} h: {describe(brief)}"
