"""What a fleet that falls back says before it starts: hours are sums over its workers.

P10 and P90 of the cost: a worker's outcomes are those of a single job with its share of the work
(`planner.candidates.ways.outcomes`), over nine speeds, which all workers share, and forty-one quantiles of luck. They
have their own luck at a common level of the hazards. So at each speed the distance from the mean over luck shrinks to
the square root of rho + (1 - rho) / n of a worker's, with n workers and rho the part of the variance of the share of
time up that they have in common (`planner.fleet.luck`).
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.launch import (
    HIGH,
    LOW,
    NOT_PUBLISHED,
    checkpoints_of,
    moment_after,
    quantile,
    spot_places,
)
from planner.candidates.starts import allotted_hours
from planner.candidates.ways.chances import spot_chance
from planner.candidates.ways.course import change_hours, frame_of
from planner.candidates.ways.outcomes import LUCK, SPEEDS, Task, possible_outcomes, wait_levels
from planner.fleet.chance import progress_of
from planner.fleet.fallback import jobs_of
from planner.fleet.fallback_mix import spot_alone_mix
from planner.market.price_path import NAMES
from planner.normal import Z80
from planner.plan.launch import Launch

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.fleet.fallback import Fleets, Shares
    from planner.fleet.fallback_mix import FallbackMix
    from planner.fleet.fallback_search import Chances
    from planner.fleet.luck import Luck
    from planner.fleet.rounds import Round
    from planner.spot.distribution import SpotPool


NOTE = (
    "hours are summed over workers; the finish is that of the last of them; each worker needs on-demand with the "
    "probability stated"
)


def launch_of_fallback(asked: Round, mix: FallbackMix, chances: Chances, total: Decimal) -> Launch:
    """Describe a fleet at launch.

    Args:
        asked: the question.
        mix: the fleet.
        chances: of the fleet.
        total: its cost, the sum of its lines.
    """
    search, one = asked.found, mix.own
    context, candidates, workers = search.context, search.candidates, one.ways.workers
    count, at = float(one.count[0]), int(workers.at[0])
    spot = one.mean("spot_hours") * count
    low, high = _hours(asked, mix, chances)
    usd = _usd(asked, mix, float(total))
    pool = _pool(asked, one)
    used = one.mean("waiting") + one.mean("spot_hours") + one.mean("on_demand_hours")
    waits = max(float((one.stay_hours - used)[0]), 0.0)
    wait = allotted_hours(candidates, one.ways.on_demand, workers.nodes)[0]

    return Launch(
        strategy="spot_with_fallback", p_meet_deadline=chances.meet, p_meet_spot_only_ratio=chances.alone,
        p_on_demand_needed_ratio=needed_by_a_worker(asked, one), expected_cost_usd=total,
        cost_p10_usd=min(usd[0], total), cost_p90_usd=max(usd[1], total),
        expected_hours=mix.period, p10_hours=low, p90_hours=high, finish_p10=moment_after(context.dates, low),
        finish_p90=moment_after(context.dates, high),
        expected_interruptions=count * float(one.mean("interruptions")[0]), spot_hours=float(spot[0]),
        on_demand_hours=count * float(one.mean("on_demand_hours")[0]),
        waiting_hours=count * waits, lost_hours=count * float(one.mean("lost")[0]),
        on_demand_acquire_s=float(wait) * 3600.0 + context.asked.assumptions.on_demand_acquire_s,
        checkpoints=checkpoints_of(candidates, at, workers.rows.tolist()),
        places=spot_places(context, workers.rows, workers.nodes, spot), notes=(NOT_PUBLISHED, NOTE),
        first_wait_hours=min(float(pool.wait_at_launch[0]), waits), p_on_demand_had_ratio=chances.had,
    )  # fmt: skip


def needed_by_a_worker(asked: Round, one: Fleets) -> float:
    """Probability that a worker needs on-demand, in the mean of all: at its last moment it is not done."""
    out, more = 0.0, float(one.more[0] / one.count[0])
    for share, part in ((one.few, 1.0 - more), (one.most, more)):
        scaled, cells = jobs_of(asked.found, one.ways, share.runs)
        frame = frame_of(scaled, cells)
        done = spot_chance(scaled, cells, frame.room - change_hours(scaled, cells), frame.steady)
        out += part * (1.0 - float(done[0]))
    return out


def _hours(asked: Round, mix: FallbackMix, chances: Chances) -> tuple[float, float]:
    """P10 and P90 of the hours until the last worker ends: that of spot alone, unless on-demand ends it before."""
    search, one = asked.found, mix.own
    deadline = search.context.dates.deadline_hours
    assert deadline is not None
    alone = progress_of(search, spot_alone_mix(asked, one))
    late = deadline
    if chances.meet < HIGH:
        scaled, cells = jobs_of(search, one.ways, one.most.runs)
        frame, change = frame_of(scaled, cells), change_hours(scaled, cells)
        slow = frame.steady * np.exp(scaled.sigma * Z80)
        late = max(late, float((one.ways.workers.lead_hours + change + slow)[0]))
    high = min(alone.hours_for(HIGH, mix.work), late)
    return min(alone.hours_for(LOW, mix.work), mix.period), max(high, mix.period)


def _usd(asked: Round, mix: FallbackMix, total: float) -> tuple[Decimal, Decimal]:
    """P10 and P90 of the cost, over speed, luck and spot prices."""
    search, one = asked.found, mix.own
    offers, workers, run = search.context.market.offer_set, one.ways.workers, one.stay_hours
    few = (int(one.count[0] - one.more[0]), one.few)
    groups = [pair for pair in (few, (int(one.more[0]), one.most)) if pair[0]]
    outcomes = sum((_of_group(asked, mix, count, share) for count, share in groups), np.zeros(SPEEDS * LUCK))
    expected = _expected(asked, mix)
    mean, p10, p90 = (offers.book.during(name, workers.rows, run) for name in NAMES)
    paid = mix.price(search.context.market).instance_hours * mix.count
    usd = float((offers.usd_during(workers.rows, run) * paid)[0])
    below, above = max(expected - quantile(outcomes, LOW), 0.0), max(quantile(outcomes, HIGH) - expected, 0.0)
    low = total - math.hypot(below, usd * (1.0 - float((p10 / mean)[0])))
    high = total + math.hypot(above, usd * (float((p90 / mean)[0]) - 1.0))
    return Decimal(repr(round(max(low, 0.0), 2))), Decimal(repr(round(high, 2)))


def _expected(asked: Round, mix: FallbackMix) -> float:
    """What all workers pay for their machines, USD."""
    one = mix.own
    paid = (one.mean("spot_hours"), one.mean("on_demand_hours"))
    return float((_machines_usd(asked, one, paid) * mix.count)[0])


def _machines_usd(asked: Round, one: Fleets, paid: tuple[Floats, Floats]) -> Floats:
    """What one worker pays for hours on spot and on on-demand; as billed where they are of one outcome each."""
    costs, workers, out = asked.found.context.market.costs, one.ways.workers, np.zeros(len(paid[0]))
    for rows, hours in zip((workers.rows, one.ways.on_demand), paid, strict=True):
        row, nodes = np.repeat(rows, len(hours)), np.repeat(workers.nodes, len(hours))
        run = np.repeat(one.stay_hours, len(hours))
        money = costs.evaluate(row, nodes, hours, run, expected=len(hours) == 1, run_hours=run)
        out += np.where(hours > 0, money.worker_usd, 0.0)
    return out


def _of_group(asked: Round, mix: FallbackMix, count: int, share: Shares) -> Floats:
    """What `count` workers of one share pay for their machines in every outcome, USD."""
    one, fixed = mix.own, float(mix.workers.fixed_hours[0])
    outcomes = possible_outcomes(_task(asked, one, share), _pool(asked, one))
    usd = _machines_usd(asked, one, (fixed + outcomes.spot, outcomes.on_demand))
    return usd_of_workers(usd, count, _shrunk(asked, mix))


def usd_of_workers(usd: Floats, count: int, shrunk: float) -> Floats:
    """What workers pay together in every outcome.

    Args:
        usd: what one pays, by speed and then by luck, shape `(n_outcomes,)`.
        count: workers.
        shrunk: how far the luck of all is from its mean, over that of one (`shrink_of`).
    """
    each = usd.reshape(SPEEDS, LUCK)
    mean = each.mean(axis=1, keepdims=True)
    return np.asarray(count * (mean + (each - mean) * shrunk).ravel(), dtype=np.float64)


def shrink_of(luck: Luck, hours: float, count: float) -> float:
    """How far the luck of `count` workers of one line, the first of `luck`, is from its mean over that of one.

    Args:
        luck: how spot comes and goes.
        hours: that there are.
        count: workers.
    """
    own, level = float(luck.own_variance(np.asarray([hours]))[0]), float(luck.level_variance[0])
    common = level / max(own + level, 1e-300)
    return math.sqrt(common + (1.0 - common) / count)


def _shrunk(asked: Round, mix: FallbackMix) -> float:
    """How far the luck of all workers is from its mean, over that of one."""
    alone = progress_of(asked.found, spot_alone_mix(asked, mix.own))
    deadline = asked.found.context.dates.deadline_hours
    if alone.luck is None or deadline is None:
        return 1.0
    lead = float(mix.workers.lead_hours[0])
    return shrink_of(alone.luck, deadline - lead, float(mix.count[0]))


def _pool(asked: Round, one: Fleets) -> SpotPool:
    workers = one.ways.workers
    return asked.found.context.gang_risk(workers.rows, workers.nodes, once=True).pool


def _task(asked: Round, one: Fleets, share: Shares) -> Task:
    """The share of a worker as the task of a job."""
    scaled, cells = jobs_of(asked.found, one.ways, share.runs)
    frame, context = frame_of(scaled, cells), asked.found.context
    write, levels = scaled.write_hours, wait_levels()
    wait = allotted_hours(scaled, cells.on_demand, scaled.nodes)
    late = context.starts.at_level(cells.on_demand, scaled.nodes, levels) - wait
    return Task(
        work=float(scaled.work_hours[0]), interval=float(scaled.interval_hours[0]), write=float(write[0]),
        restart=float(context.asked.restart_hours(write)[0]),
        notice=float(context.spot.figures.notice_hours[cells.zones[0, 0]]), steady=float(frame.steady[0]),
        sigma=float(scaled.sigma[0]), room=float(frame.room[0]),
        acquire=float(wait[0]) + context.asked.assumptions.on_demand_acquire_s / 3600.0, has_fallback=True, late=late,
    )  # fmt: skip
