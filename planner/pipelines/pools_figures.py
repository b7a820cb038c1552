"""What a pool of a pair and a single cluster beside it come to, in the words and figures of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.candidates.choose import best_where, choose
from planner.candidates.model import SINGLE
from planner.candidates.plan_parts.bought import Source
from planner.candidates.plan_parts.spread import spread_of
from planner.market.pricing import total_usd
from planner.pipelines.pools_model import Colocated, Pool, PoolName

if TYPE_CHECKING:
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates


def logprob_s(candidates: Candidates, at: int) -> float:
    """Time of the other models' passes in a step of the trainer."""
    return float(candidates.shapes.row(int(candidates.shape[at]))["other_models_s"])


def pool_of(
    name: PoolName, candidates: Candidates, at: int, *, own_step_s: float, paced_s: float, stretch: float,
    sure_ratio: float | None = None, deadline_hours: float | None = None,
) -> Pool:  # fmt: skip
    """What candidate `at` comes to as a pool of a pair; the figures given are those of `Pool`."""
    context = candidates.context
    source = Source(context, candidates)
    bought = source.bought(at)
    cost = total_usd([line for part in bought.parts for line in part.lines])
    dates = context.market.offer_set.offers["as_of"]
    shape = candidates.shapes.row(int(candidates.shape[at]))
    hardware = context.market.offer_set.hardware.row(int(shape["hardware_row"]))
    nodes = int(candidates.nodes[at])
    return Pool(
        name=name, bought=bought, accelerator=str(hardware["accelerator"]), nodes=nodes,
        accelerators=float(hardware["accelerator_count"]) * nodes, own_step_s=own_step_s, paced_s=paced_s,
        stretch=stretch, hours=float(candidates.hours[at]), tensor_parallel=int(shape["tp"]),
        pipeline_parallel=int(shape["pp"]), data_parallel=int(shape["dp"]),
        cost_usd=cost, sure_ratio=sure_ratio, deadline_hours=deadline_hours,
        price_as_of=min(str(dates[part.row]) for part in candidates.parts(at)), spread=spread_of(source, at, cost),
    )  # fmt: skip


def colocated(search: CandidateSearch, *, same_ways: bool) -> Colocated | None:
    """The best single cluster; `same_ways`: of on-demand and spot without a fall-back, as pools are bought."""
    candidates, market = search.candidates, search.context.market
    if same_ways:
        timed = market.is_spot | market.offer_set.offers.equals("purchase_option", "on_demand")
        at = best_where(
            candidates, (candidates.bits == 0) & (candidates.kind == SINGLE) & timed[candidates.offer], "cost"
        )
    else:
        choice = choose(candidates, "cost")
        at = None if choice is None else choice.winner
    if at is None:
        return None
    bought = Source(search.context, candidates).bought(at)
    lead = bought.parts[0]
    return Colocated(
        how=bought.how, provider=lead.provider, region=lead.region, instance_type=lead.instance_type,
        nodes=int(candidates.nodes[at]), hours=float(candidates.hours[at]),
        cost_usd=total_usd([line for part in bought.parts for line in part.lines]),
    )  # fmt: skip
