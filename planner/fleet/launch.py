"""What a fleet with spot says before it starts; chances: `planner.fleet.chance`, P10-P90: `planner.fleet.spread`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.launch import checkpoints_of, moment_after, spot_places
from planner.fleet.chance import progress_of
from planner.plan.launch import Launch

if TYPE_CHECKING:
    from decimal import Decimal

    from planner.candidates.engine import CandidateSearch
    from planner.fleet.mix import Mix
    from planner.fleet.spread import Spread


def fleet_launch(search: CandidateSearch, mix: Mix, total: Decimal, spread: Spread) -> Launch | None:
    """Describe a mix at launch, None where it has no spot.

    Args:
        search: all candidates.
        mix: the workers chosen.
        total: cost of the fleet, the sum of its lines.
        spread: what its hours and cost may come to.
    """
    context = search.candidates.context
    workers, candidates = mix.workers, search.candidates
    spot = context.market.is_spot[workers.rows]
    if not spot.any():
        return None
    at, progress = np.flatnonzero(spot), progress_of(search, mix)
    deadline = context.dates.deadline_hours
    paid = mix.hours * workers.paid_ratio + workers.fixed_hours
    runs = mix.runs(context.asked.job.total_units)
    first = int(at[np.argmax((mix.count * paid)[at])])
    place = at[np.argsort(context.market.id_rank[workers.rows[at]], kind="stable")]
    return Launch(
        strategy="spot_in_fleet",
        p_meet_deadline=None if deadline is None else progress.chance(deadline, mix.work),
        p_meet_spot_only_ratio=None, p_on_demand_needed_ratio=0.0, expected_cost_usd=total,
        cost_p10_usd=spread.p10_usd, cost_p90_usd=spread.p90_usd,
        expected_hours=mix.period, p10_hours=spread.p10_hours, p90_hours=spread.p90_hours,
        finish_p10=moment_after(context.dates, spread.p10_hours),
        finish_p90=moment_after(context.dates, spread.p90_hours),
        expected_interruptions=float((candidates.interruptions[workers.at] * runs)[at].sum()),
        spot_hours=float((mix.count * paid)[at].sum()), on_demand_hours=float((mix.count * paid)[~spot].sum()),
        waiting_hours=float((mix.count * mix.hours * (1.0 - workers.paid_ratio))[at].sum()),
        lost_hours=float((candidates.lost_hours[workers.at] * runs)[at].sum()),
        on_demand_acquire_s=context.asked.assumptions.on_demand_acquire_s,
        checkpoints=checkpoints_of(candidates, int(workers.at[first]), [int(workers.rows[first])]),
        places=spot_places(context, workers.rows[place], workers.nodes[place], (mix.count * paid)[place]),
        notes=("hours are summed over workers; the finish is that of all work at this size of the fleet",),
    )  # fmt: skip
