"""What the hours of a chosen candidate are made of, and its risk."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.in_time import finish_quantile
from planner.candidates.model import IN_TURN
from planner.candidates.starts import wait_hours
from planner.candidates.ways.chances import stated_chance
from planner.normal import Z80
from planner.performance.spec import COMPONENTS
from planner.plan.ids import TimePartId
from planner.plan.labels import time_label
from planner.plan.model import Origin, Performance, Risk, TimePart
from planner.spot.moments import whole_intervals

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.candidates.model import Candidates
    from planner.plan.launch import Launch


WORST_LEVEL = 0.9


def timeline_of(candidates: Candidates, at: int) -> tuple[TimePart, ...]:
    """Split the expected elapsed hours of candidate `at`; the parts add up to them."""
    context = candidates.context
    assume, job = context.asked.assumptions, context.asked.job
    nodes = float(candidates.nodes[at])
    work, write = float(candidates.work_hours[at]), float(candidates.write_hours[at])
    steps = work / assume.work_ratio
    interval = float(candidates.interval_hours[at])
    on_spot = [bool(context.market.is_spot[part.row]) for part in candidates.parts(at)]
    spot = candidates.kind[at] == IN_TURN or all(on_spot)
    # spot is expected segment by segment, the last of which ends with the run; steady capacity at the mean rate
    saves = float(whole_intervals(work, interval)) if spot or any(on_spot) else work / interval
    checkpoints = saves * write
    acquire = 0.0 if spot else assume.on_demand_acquire_s / 3600.0
    provision = assume.provision_s / 3600.0 + acquire
    export = write + assume.export_s / 3600.0
    pull, warm = assume.image_pull_s / 3600.0, assume.compile_warmup_s / 3600.0
    to_nodes = float(candidates.fixed_hours[at]) - export - pull - warm
    wait = wait_hours(candidates, at)
    staging = float(candidates.waiting_hours[at]) - provision - wait
    rest = (
        float(candidates.hours[at] - candidates.waiting_hours[at] - candidates.fixed_hours[at])
        - work
        - checkpoints
    )
    source = job.location or "your site"
    rows: tuple[tuple[TimePartId, float, Origin, str], ...] = (
        (TimePartId.DATA_STAGING, staging, "default", f"from {source}, before the cluster starts"),
        (TimePartId.CAPACITY, wait, "default", _wait_note(staging)),
        (TimePartId.PROVISIONING, provision, "default", "not billed"),
        (TimePartId.IMAGE_PULL, pull, "default", ""),
        (TimePartId.DATA_TO_NODES, to_nodes, "default", f"{nodes:.0f} nodes read in parallel"),
        (TimePartId.WARM_UP, warm, "default", ""),
        (TimePartId.TRAINING_STEPS, steps, "model", f"{job.total_steps:,.0f} {job.step_name}s"),
        (TimePartId.EVALUATION, steps * assume.evaluation_share_ratio, "default", ""),
        (
            TimePartId.BESIDE_STEPS, steps * assume.beside_steps_ratio, "default",
            f"{assume.beside_steps_ratio:g} x the steps: data stalls, slow hosts, replays",
        ),
        (
            TimePartId.CHECKPOINTS, checkpoints, "model",
            f"{job.checkpoint_gib:,.1f} GiB every {interval * 60:,.0f} min",
        ),
        (TimePartId.INTERRUPTIONS, rest, "derived", "waiting, restarts and lost work"),
        (TimePartId.FINAL_EXPORT, export, "default", ""),
    )  # fmt: skip
    return tuple(
        TimePart(part, time_label(part, inference=job.is_inference), hours, origin, note)
        for part, hours, origin, note in rows
        if hours > 1e-9
    )


def _wait_note(staging: float) -> str:
    """What happens besides while capacity is waited for."""
    return "not billed" if staging > 1e-9 else "not billed; the data come meanwhile"


def performance_of(candidates: Candidates, at: int) -> Performance:
    """Predicted speed and memory of candidate `at`, with the 80 % interval."""
    context = candidates.context
    row = candidates.shapes.row(int(candidates.shape[at]))
    units = context.asked.job.units_per_step
    return Performance(
        unit=context.asked.job.unit,
        throughput_per_s=units / row["step_time_s"],
        throughput_low_per_s=units / row["step_time_high_s"],
        throughput_high_per_s=units / row["step_time_low_s"],
        step_time_s=row["step_time_s"],
        mfu=row["mfu"],
        memory_needed_gib=row["memory_needed_gib"],
        memory_available_gib=row["memory_available_gib"],
        limited_by=row["limited_by"],
        breakdown_s={name.removesuffix("_s"): row[name] for name in COMPONENTS if name in row},
        memory_fits_ratio=None if context.asked.job.is_inference else 1.0 - row["oom_probability"],
    )


def risk_of(candidates: Candidates, at: int, expected_usd: Decimal, launch: Launch | None) -> Risk:
    """Interruptions, lost work, and the worst case: the 90th percentile over interruptions and model error.

    Args:
        candidates: all of them.
        at: the chosen one.
        expected_usd: its cost.
        launch: what is known of it at launch where it has spot.
    """
    one = np.asarray([at])
    if launch is None:
        basis = "capacity is not taken back; machine failures and the spread of the predicted hours only"
        spread = float(np.exp(candidates.sigma[at] * Z80))
        worst = np.maximum(finish_quantile(candidates, one, WORST_LEVEL), candidates.hours[one])
        usd = Decimal(repr(round(_cost_of(candidates, at, spread, worst), 6)))
        worst_hours = float(worst[0])
    else:
        basis = "; ".join(dict.fromkeys(place.evidence for place in launch.places))
        worst_hours, usd = launch.p90_hours, launch.cost_p90_usd
    return Risk(
        p_meet_deadline=stated_chance(candidates, at) if launch is None else launch.p_meet_deadline,
        expected_interruptions=float(candidates.interruptions[at]),
        expected_lost_hours=float(candidates.lost_hours[at]),
        expected_hours=float(candidates.hours[at]),
        worst_hours=worst_hours,
        expected_cost_usd=expected_usd,
        worst_cost_usd=max(usd, expected_usd),
        basis=basis,
    )


def cost_between(candidates: Candidates, at: int, expected_usd: Decimal) -> tuple[Decimal, Decimal]:
    """P10 and P90 of the cost of candidate `at`, which has no spot: over its step time and failures of machines.

    Args:
        candidates: all of them.
        at: the candidate.
        expected_usd: its cost.
    """
    one, ends = np.asarray([at]), []
    for level, sign in ((1.0 - WORST_LEVEL, -1.0), (WORST_LEVEL, 1.0)):
        spread = float(np.exp(sign * candidates.sigma[at] * Z80))
        hours = finish_quantile(candidates, one, level)
        ends.append(Decimal(repr(round(_cost_of(candidates, at, spread, hours), 6))))
    return min(ends[0], expected_usd), max(ends[1], expected_usd)


def cost_at(candidates: Candidates, at: int, level: float, z: float) -> tuple[float, float]:
    """Quantiles of cost, USD, and hours of candidate `at`, which has no spot, given that capacity comes.

    Args:
        candidates: all of them.
        at: the candidate.
        level: of both, 0..1.
        z: standard normal quantile of the level.
    """
    hours = np.maximum(finish_quantile(candidates, np.asarray([at]), level), candidates.hours[at])
    slower = float(np.exp(z * candidates.sigma[at]))
    return _cost_of(candidates, at, slower, hours), float(hours[0])


def _cost_of(candidates: Candidates, at: int, times: float, hours: Floats) -> float:
    """Cost of candidate `at` if the hours in use beyond the fixed ones were `times` as many.

    A block of the longest length sold that ends too early is prolonged by the hours that are missing, at its own price.
    """
    costs, offers = candidates.context.market.costs, candidates.context.market.offer_set
    fixed, cost = float(candidates.fixed_hours[at]), 0.0
    known = replace(candidates.spread(np.asarray([at])), work_log_sd=np.zeros(1))
    for number, part in enumerate(candidates.parts(at)):
        paid = np.asarray([fixed + (part.paid_hours - fixed) * times])
        row, nodes = np.asarray([part.row]), np.asarray([part.nodes])
        blocks = offers.rules[int(offers.rule_of_offer[part.row])].block_hours
        outlived = len(blocks) > 0 and float(paid[0]) > max(blocks)
        stored = candidates.stored(np.asarray([at]))
        money = costs.evaluate(
            row, nodes, paid, hours, expected=outlived, spread=known, stored=stored,
            run_hours=candidates.hours[[at]],
        )  # fmt: skip
        cost += float((money.cost_usd if number == 0 else money.worker_usd)[0])
    return cost
