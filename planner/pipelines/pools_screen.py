"""The screen of two pools: what each runs on, what both cost, where the step goes, and what one cluster would cost."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.plan.words import beside_steps, enable_first
from planner.render import numbers
from planner.render.model import Column, Section, Value, table_section
from planner.render.precision import dollars, dollars_stated, known_places, moment_known, rounded
from planner.render.screen import Row, Screen, prices_note
from planner.render.words import cluster, devices, place, without_zones

if TYPE_CHECKING:
    from planner.pipelines.pools_model import Colocated, Pool, Pools

NEXT = (
    "pools FILE -o json --out pools.json", "verify pools.json --workload FILE", "export pools.json --to skypilot",
)  # fmt: skip
_NONE = ("optimize FILE", "validate FILE")
DIVIDED = "one cluster divided between training and generation"
_WHOLE_FROM = 100  # US dollars


def pools_screen(pools: Pools, proof: str) -> Screen:
    """Return the screen.

    Args:
        pools: the answer.
        proof: what was compared and how near the pair is to the bound.
    """
    asked = f"{pools.workload}: {_asked(pools)}"
    if not pools.pools:
        none: Row = ("plan", "plan", "none", "text", f"none: {pools.reason}")
        return Screen(asked, [none, *_instead(pools)], None, (), "", _NONE)
    over: list[Row] = [("none", "plan", "none", "text", f"none: {pools.reason}")] if pools.reason else []
    rows = [
        *over,
        _plan(pools, "then" if over else "plan"),
        _cost(pools),
        _done(pools),
        _step(pools),
        *_instead(pools),
    ]
    return Screen(
        asked, rows, _table(pools), _notes(pools),
        f"{proof}. Without taxes and support plans.", NEXT,
    )  # fmt: skip


def _asked(pools: Pools) -> str:
    start = datetime.fromisoformat(pools.start)
    parts = [f"{pools.steps:,.0f} steps on two pools"]
    if pools.deadline_hours is None:
        parts.append("no deadline")
    else:
        end = (start + timedelta(hours=pools.deadline_hours)).isoformat()
        parts.append(f"by {moment_known(end, 0.0, start.year)} ({numbers.percent(pools.confidence, 0)})")
    if pools.budget_usd is not None:
        parts.append(f"budget {dollars_stated(pools.budget_usd)}")
    return ", ".join(parts)


def _plan(pools: Pools, label: str) -> Row:
    text = "; ".join(
        f"{pool.name} {cluster(pool.nodes, pool.bought.parts[0].instance_type)} "
        f"({devices(pool.accelerators, pool.accelerator)})"
        for pool in pools.pools
    )
    return ("plan", label, text, "text", text)


def _half_usd(pools: Pools) -> float:
    low, high = pools.between_usd
    return float(high - low) / 2.0


def as_known(usd: Decimal, pools: Pools) -> str:
    """An amount in the digits that are known of it, if its interval is as wide for its size as that of the sum."""
    return dollars(usd, _places(usd, pools))


def _places(usd: Decimal, pools: Pools) -> int:
    known = _half_usd(pools) * float(usd / pools.cost_usd) if pools.cost_usd else 0.0
    return min(known_places(float(usd), known), 0 if usd >= _WHOLE_FROM else 2)


def _cost(pools: Pools) -> Row:
    places = _places(pools.cost_usd, pools)
    low, high = (dollars(end, places) for end in pools.between_usd)
    text = f"{dollars(pools.cost_usd, places)} expected; 80 %: {low} to {high}, if the errors of both pools coincide"
    if pools.moved_usd:
        text += f"; {as_known(pools.moved_usd, pools)} of it weights between the regions"
    return ("cost_usd", "cost", pools.cost_usd, "usd", text)


def _done(pools: Pools) -> Row:
    start = datetime.fromisoformat(pools.start)
    end = (start + timedelta(hours=pools.hours)).isoformat()
    text = f"{moment_known(end, 1.0, start.year)}, {numbers.hours(pools.hours)} h from the start"
    sure = f"with {numbers.percent(pools.confidence, 0)} or more"
    has_end = pools.pools[0].deadline_hours is not None
    if pools.deadline_hours is not None:
        early = has_end and pools.sure_hours < pools.deadline_hours - 0.05
        text += f"; within {numbers.hours(pools.sure_hours)} h {sure}" if early else f"; in time {sure}"
    elif has_end:
        last = (start + timedelta(hours=pools.sure_hours)).isoformat()
        text += f"; planned to end by {moment_known(last, 0.5, start.year)} {sure}"
    return ("end", "done", end, "text", text)


def _step(pools: Pools) -> Row:
    parts = (
        ("generation", pools.generate_s), ("log-probabilities", pools.logprob_s), ("update", pools.update_s),
        ("weights to the rollouts", pools.refit_s),
    )  # fmt: skip
    if pools.steps_off_policy:
        ahead = "1 step" if pools.steps_off_policy == 1 else f"{pools.steps_off_policy} steps"
        split = ", ".join(f"{numbers.number(value)} s {name}" for name, value in parts)
        text = f"{numbers.number(pools.step_s)} s; generation runs up to {ahead} ahead of training: {split}"
    else:
        split = ", ".join(f"{numbers.percent(value / pools.step_s, 0)} {name}" for name, value in parts)
        text = f"{numbers.number(pools.step_s)} s: {split}"
    beside = beside_steps(pools.beside_steps_ratio)
    return ("step_s", "step", pools.step_s, "seconds", f"{text}; {beside}" if beside else text)


def cheapest_alone(pools: Pools) -> tuple[str, Colocated] | None:
    """The cheapest single cluster, after what it is called."""
    named = (("one colocated cluster", pools.colocated or pools.same_ways), (DIVIDED, pools.divided))
    singles = [(name, one) for name, one in named if one is not None]
    return min(singles, key=lambda single: single[1].cost_usd, default=None)


def _instead(pools: Pools) -> list[Row]:
    """The cheapest single cluster: by turns, or divided between both."""
    single = cheapest_alone(pools)
    if single is None:
        return []
    name, one = single
    text = f"{name}: {_alone(pools, one)}"
    if pools.pools:
        text += ", cheaper" if one.cost_usd < pools.cost_usd else ", more expensive"
    return [("instead", "instead", one.cost_usd, "usd", text)]


def _alone(pools: Pools, one: Colocated) -> str:
    # its cost is known no better than that of the pools
    places = _places(one.cost_usd, pools) if pools.pools else min(known_places(float(one.cost_usd), 0.0), 2)
    machines = f"{cluster(one.nodes, one.instance_type)}, {without_zones(one.how)}"
    where = place(one.provider, one.region, "")
    return f"{machines}, {where}: {dollars(one.cost_usd, places)}, {numbers.hours(one.hours)} h"


def _table(pools: Pools) -> Section:
    rows: list[tuple[Value, ...]] = []
    for pool in pools.pools:
        part = pool.bought.parts[0]
        rows.append((
            pool.name, (pool.nodes, part.instance_type), without_zones(pool.bought.how),
            (part.provider, part.region, ""), pool.own_step_s, rounded(pool.cost_usd, _places(pool.cost_usd, pools)),
        ))  # fmt: skip
    columns = (
        Column("pool", "pool", "text"), Column("cluster", "machines", "cluster"), Column("bought", "bought", "text"),
        Column("place", "where", "place"), Column("own_step_s", "own step", "seconds"),
        Column("cost_usd", "cost", "usd_known"),
    )  # fmt: skip
    return table_section("front_pools", "Pools", columns, rows)


def _notes(pools: Pools) -> tuple[str, ...]:
    spot = [pool.name for pool in pools.pools if _is_spot(pool)]
    today = datetime.fromisoformat(pools.created_at).date()
    resume = f"spot for {' and '.join(spot)}: needs automatic resume; a pool that waits for the other is paid"
    return (
        *prices_note((pool.price_as_of for pool in pools.pools), today),
        *([resume] if spot else ()),
        *(text for pool in pools.pools for text in pool.bought.outlasting(pool.name, pools.cost_usd)),
        *enable_first((part.provider, part.region) for pool in pools.pools for part in pool.bought.parts),
        "quotas that the workload does not declare are not checked",
    )


def _is_spot(pool: Pool) -> bool:
    return any(part.purchase_option == "spot" for part in pool.bought.parts)
