"""Runs whose truth is known: a plan, and logs of it under drawn hazards, speeds, checkpoints and restarts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np

from catalogs.tables.table import Floats
from planner.normal import Z80
from planner.plan.ids import TimePartId
from planner.plan.launch import SpotPlace
from planner.plan.model import Assumption, Goal, Performance, Plan, Risk, TimePart
from planner.spot.futures import sample_futures
from planner.spot.hazards_cells import AGE_EDGES_HOURS
from planner.spot.hazards_table import HazardTable, make_table
from planner.spot.policy.job import SpotJob, SpotZone
from planner.tracking.model import Progress, Rows
from planner.tracking.planned import Planned, planned_of
from planner.tracking.row_order import in_order
from tests.planner.render.render_plans import LAUNCH
from tests.saved_plans import START, plan_line, saved_plan

STEPS, STEP_S, PER_ROW = 6000, 60.0, 6  # 100 h of steps, a row every 6 minutes
RESTART_HOURS, CHECKPOINT_HOURS, WRITE_HOURS = 0.2, 1.0, 0.02
SPEED_SD, FRAILTY_SD = 0.15, 0.5
# What such runs come to, the mean of 600 of seeds 0, 7 and 77: what a good plan expects.
INTERRUPTIONS, SETBACK_HOURS, WAIT_HOURS = 12.3, 1.5, 0.83
TICK = 0.1


def hazard_table() -> HazardTable:
    """Up spells of about 12 h, many short; down spells of about an hour, a few long."""
    young = np.exp(-np.asarray(AGE_EDGES_HOURS) / 3.0)
    down, up = 0.07 * (1.0 + 1.5 * young), 0.6 * (1.0 + 1.5 * young)
    return make_table(down, up, (FRAILTY_SD, FRAILTY_SD), 500.0, "drawn")


def spot_plan(
    deadline_hours: float | None = 140.0, budget: str | None = None, confidence: float | None = None
) -> Plan:
    """A plan of 100 h of steps on two spot nodes at $1 an hour each."""
    table, count = hazard_table(), INTERRUPTIONS
    waiting, lost = count * WAIT_HOURS, count * (SETBACK_HOURS - WAIT_HOURS)
    launch = replace(
        LAUNCH, spot_hours=100.0 + lost, waiting_hours=waiting, lost_hours=lost, first_wait_hours=0.0,
        expected_interruptions=count, checkpoints=replace(LAUNCH.checkpoints, interval_hours=CHECKPOINT_HOURS),
        places=(SpotPlace("x", 100.0, table.mean_up_hours, table.mean_down_hours, 0.9, 0.9, "measured"),),
    )  # fmt: skip
    hours = {
        TimePartId.PROVISIONING: 0.1, TimePartId.IMAGE_PULL: 0.1, TimePartId.TRAINING_STEPS: 100.0,
        TimePartId.CHECKPOINTS: 2.0, TimePartId.INTERRUPTIONS: waiting + lost, TimePartId.FINAL_EXPORT: 0.1,
    }  # fmt: skip
    spread = float(np.exp(Z80 * SPEED_SD))
    start = datetime.fromisoformat(START)
    total = sum(hours.values())
    return saved_plan(
        plan_line(hours=100.0 + lost, price_p10_per_hour=Decimal("0.8"), price_p90_per_hour=Decimal("1.25")),
        deadline=None if deadline_hours is None else (start + timedelta(hours=deadline_hours)).isoformat(),
        finish_expected=(start + timedelta(hours=total)).isoformat(), hours=total,
        timeline=tuple(TimePart(part, str(part), value, "model") for part, value in hours.items()),
        performance=Performance(
            "samples", 10.0, 10.0 / spread, 10.0 * spread, STEP_S, None, None, None, "compute",
            {"compute": 54.0, "dp_comm": 6.0},
        ),
        risk=Risk(0.9, count, lost, total, 1.4 * total, Decimal(250), Decimal(350), "drawn"),
        launch=launch,
        goal=Goal(STEPS * STEP_S * 10.0, "samples", confidence, None if budget is None else Decimal(budget)),
        assumptions=(Assumption("spot_frailty_sd", f"{FRAILTY_SD}", "ratio", "default"),),
    )  # fmt: skip


def spot_planned(deadline_hours: float | None = 140.0, budget: str | None = None) -> Planned:
    """The same in the words of a run."""
    return planned_of(spot_plan(deadline_hours, budget), "plan.json")


@dataclass(frozen=True)
class Run:
    """A whole run: hours and steps of its rows since the start, and when it ended."""

    hours: Floats
    steps: Floats
    finish_hours: float

    def log(self, until_hours: float) -> Progress:
        """The rows by then, as a reader makes progress of them."""
        shown = self.hours <= until_hours
        start = datetime.fromisoformat(START).timestamp()
        values = {
            "step": self.steps[shown].tolist(),
            "seconds": (start + 3600.0 * self.hours[shown]).tolist(),
        }
        return in_order(Rows("run.csv", "csv", values, [], True))


def draw_runs(count: int, seed: int = 0) -> list[Run]:
    """Runs under hazards by age with levels and weather of their own, each at a speed of its own."""
    table, ticks = hazard_table(), 6000
    zone = SpotZone("a", "r", "t", 1.0)
    job = SpotJob(100.0, 1000.0, 0.2, 4.0, (zone,), tick_hours=TICK)
    up = sample_futures(job, {"a": table}, count, ticks, seed)[:, 0, :]
    rng = np.random.default_rng(seed + 1)
    return [_one(up[number], rng) for number in range(count)]


def _one(up: np.ndarray[tuple[int], np.dtype[np.bool_]], rng: np.random.Generator) -> Run:
    pace = STEP_S * float(np.exp(SPEED_SD * rng.standard_normal())) / 3600.0
    hours, steps, done, at = [], [], 0.0, 0.2
    edges = np.flatnonzero(np.diff(np.concatenate([[0], up.astype(np.int8), [0]])))
    for begin, end in zip(edges[::2] * TICK, edges[1::2] * TICK, strict=True):
        at = max(at, begin) + RESTART_HOURS
        while at < end and done < STEPS:
            left, saved = CHECKPOINT_HOURS, done
            noise = np.cumsum(rng.standard_normal(40)) * 0.01
            for number in range(int(left / (pace * PER_ROW)) + 1):
                at += pace * PER_ROW * float(np.exp(noise[number % 40] + 0.02 * rng.standard_normal()))
                done += PER_ROW
                if at >= end:
                    break
                hours.append(at)
                steps.append(done)
                if done >= STEPS:
                    return Run(np.asarray(hours), np.asarray(steps), at + 0.1)
            if at >= end:
                done = saved
                break
            at += WRITE_HOURS
    raise AssertionError("the drawn availability is too short")
