"""Does the forecast of a running job hold? Runs whose end is known, seen at several moments.

    python -m benchmarks.track --runs 1000 --seed 7

Runs are drawn by `tests.planner.tracking.runs`: availability from hazards by age of the spell with levels and weather
of their own (the futures behind `planner advise`), a speed of its own, correlated noise, checkpoints and restarts.
"""

from __future__ import annotations

import argparse
import math
import time
from datetime import timedelta

import numpy as np

from catalogs.tables.table import Floats
from planner.tracking.answer import Ask, track
from planner.tracking.forecast import draw_futures
from planner.tracking.model import Speed
from planner.tracking.planned import Planned
from planner.tracking.renewal import SETBACKS_KNOWN, Interruptions
from tests.planner.tracking.runs import draw_runs, spot_planned

MOMENTS = (5.0, 20.0, 50.0, 80.0)


def prior_hours(planned: Planned) -> Floats:
    """Hours of the whole run as the plan alone lets expect."""
    shape = 1.0 / math.expm1(planned.rate_sd**2)
    found = Interruptions(
        0, 0.0, (), 0.0, shape, shape / planned.rate_per_hour, planned.rate_per_hour, 1.0 + 0.6 * SETBACKS_KNOWN,
        SETBACKS_KNOWN * planned.setback_hours,
    )  # fmt: skip
    step_s = planned.step_s * (1.0 + planned.overhead_ratio)
    speed = Speed(step_s, planned.step_log_sd, 0, 0.0, None, step_s)
    return draw_futures(planned, speed, found, planned.steps, hours_to_deadline=None).hours


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    runs, whole = draw_runs(given.runs, given.seed), prior_hours(spot_planned())
    print(
        "| seen at | runs | 80 % interval holds | ends before it | Brier of late | of the plan | CPU ms per run |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for moment in MOMENTS:
        begin, rows = time.process_time(), []
        for number, run in enumerate(runs):
            deadline = float(rng.uniform(110, 170))
            planned = spot_planned(deadline)
            shown = (run.hours <= moment).sum()
            if run.finish_hours <= moment or shown < 2:
                continue
            found = track(
                planned, run.log(moment), Ask(now=planned.start + timedelta(hours=moment), seed=number)
            )
            low, high = ((end - planned.start) / timedelta(hours=1) for end in found.finish[1:])
            late = run.finish_hours > deadline
            rows.append((low <= run.finish_hours <= high, run.finish_hours < low, ((found.p_late or 0.0) - late) ** 2,
                         ((whole > deadline).mean() - late) ** 2))  # fmt: skip
        held, before, brier, prior = np.asarray(rows, dtype=np.float64).mean(axis=0)
        spent = 1e3 * (time.process_time() - begin) / len(rows)
        print(
            f"| {moment:.0f} h | {len(rows)} | {held:.1%} | {before:.1%} | {brier:.3f} | {prior:.3f} | {spent:.0f} |"
        )


if __name__ == "__main__":
    main()
