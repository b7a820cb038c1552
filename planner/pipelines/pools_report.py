"""Trainer and rollout pools as a report: both purchases, the split of the step, and the best single clusters beside."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.pipelines.pools_screen import DIVIDED, as_known, cheapest_alone, pools_screen
from planner.plan.words import enable_first
from planner.render.model import Answer, Column, Section, Unit, Value, facts, table_section, versioned
from planner.render.numbers import hours, number, percent, usd
from planner.render.precision import moment_known
from planner.render.screen import on_screen

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.pipelines.pools_model import Colocated, Pool, Pools

_COLUMNS = (
    "pool", "provider", "region", "zone", "instance_type", "accelerator", "nodes", "purchase_option", "own_step_s",
    "paced_s", "hours", "cost_usd",
)  # fmt: skip
_SHOWN = (
    Column("pool", "pool", "text"), Column("cluster", "machines", "text"), Column("place", "where", "text"),
    Column("option", "option", "text"), Column("own_step_s", "own step", "seconds"), Column("hours", "hours", "hours"),
    Column("cost_usd", "cost", "usd"),
)  # fmt: skip
_PAIR = (
    "step_s", "train_s", "logprob_s", "update_s", "generate_s", "refit_s", "moved_gb", "moved_usd", "hours",
    "sure_hours", "cost_usd", "bound_usd", "pairs", "steps", "steps_off_policy", "confidence", "deadline_hours",
    "horizon_hours", "budget_usd", "reason",
)  # fmt: skip


def pools_report(pools: Pools, *, details: Collection[str] = ()) -> Answer:
    """The answer of `planner pools`.

    Args:
        pools: the answer.
        details: keys of sections to show in place of the screen, or `all`.
    """
    between = pools.between_usd if pools.pools else (None, None)
    values = {
        "workload": pools.workload, "workload_sha256": pools.workload_sha256, "created_at": pools.created_at,
        "start": pools.start, "currency": "USD", "catalog": [vars(source) for source in pools.sources],
        "pools": [_values(pool) for pool in pools.pools], **{name: getattr(pools, name) for name in _PAIR},
        "gap_ratio": _gap(pools), **dict(zip(("cost_p10_usd", "cost_p90_usd"), between, strict=True)),
        "colocated": None if pools.colocated is None else vars(pools.colocated),
        **{name: None if one is None else vars(one) for name, one in (
            ("same_ways", pools.same_ways), ("divided", pools.divided), ("one_chip", pools.one_chip),
        )},
    }  # fmt: skip
    rows = [{name: value for name, value in _flat(pool).items() if name in _COLUMNS} for pool in pools.pools]
    title = f"{pools.workload}: {pools.reason}"
    sections: tuple[Section, ...] = _colocated(pools)
    if pools.pools:
        cost = as_known(pools.cost_usd, pools)
        title = f"{pools.workload} on two pools: {cost}, {hours(pools.hours)} h{_beside(pools)}"
        sections = (_pools(pools), _step(pools), *_colocated(pools), _proof(pools))
    summary = (pools.reason,) if pools.reason and pools.pools else ()
    whole = Answer(
        f"Pools for {pools.workload}", title, summary, sections, versioned(values), _COLUMNS, rows,
        success=not pools.reason,
    )  # fmt: skip
    return on_screen(whole, pools_screen(pools, _claim(pools)), details)


def _gap(pools: Pools) -> float:
    return float((pools.cost_usd - pools.bound_usd) / pools.cost_usd) if pools.cost_usd else 0.0


def _values(pool: Pool) -> dict[str, Any]:
    names = (
        "name", "accelerator", "nodes", "accelerators", "own_step_s", "paced_s", "stretch", "hours", "tensor_parallel",
        "pipeline_parallel", "data_parallel", "cost_usd", "sure_ratio", "deadline_hours", "price_as_of",
    )  # fmt: skip
    return {name: getattr(pool, name) for name in names} | {
        "parts": [part.to_dict() for part in pool.bought.parts]
    }


def _flat(pool: Pool) -> dict[str, Any]:
    part = pool.bought.parts[0]
    own = {name: getattr(part, name) for name in ("provider", "region", "zone", "instance_type")}
    return _values(pool) | own | {"pool": pool.name, "purchase_option": pool.bought.how}


def _pools(pools: Pools) -> Section:
    rows: list[tuple[Value, ...]] = []
    for pool in pools.pools:
        part = pool.bought.parts[0]
        machines = f"{pool.nodes} x {part.instance_type} ({number(pool.accelerators)} x {pool.accelerator})"
        where = f"{part.provider}/{part.region} {part.zone}".strip()
        rows.append((pool.name, machines, where, pool.bought.how, pool.own_step_s, pool.hours, pool.cost_usd))
    notes = ["both pools run at once"]
    if pools.moved_gb:
        moved = f"{number(pools.moved_gb)} GB of weights between the regions: {usd(pools.moved_usd)}"
        notes.append(moved)
    notes += enable_first((part.provider, part.region) for pool in pools.pools for part in pool.bought.parts)
    return table_section("pools", "Pools", _SHOWN, rows, notes)


def _step(pools: Pools) -> Section:
    parts = (
        ("generate_s", "generation", pools.generate_s), ("logprob_s", "log-probabilities", pools.logprob_s),
        ("update_s", "update", pools.update_s), ("refit_s", "weights to the rollouts", pools.refit_s),
    )  # fmt: skip
    ahead = pools.steps_off_policy
    how = (
        f"{number(pools.step_s)} s; generation runs up to {ahead} steps ahead: the longer pool sets the pace"
        if ahead
        else f"{number(pools.step_s)} s; on policy: the parts add up"
    )
    rows: list[tuple[str, str, Value, Unit, str]] = [("step_s", "step", pools.step_s, "seconds", how)]
    rows += [
        (key, label, value, "seconds", f"{number(value)} s, {percent(value / pools.step_s, 0)} of the step")
        for key, label, value in parts
    ]
    return facts("step", "Where the step goes", rows)


def _colocated(pools: Pools) -> tuple[Section, ...]:
    rows: list[tuple[str, str, Value, Unit, str]] = []
    for key, label, one in (
        ("colocated", "one colocated cluster, any purchase option", pools.colocated),
        ("same_ways", "one colocated cluster, on-demand or spot", pools.same_ways),
        ("divided", DIVIDED, pools.divided),
    ):
        if one is not None:
            rows.append((key, label, one.cost_usd, "usd", _said(pools, one)))
    alike = pools.one_chip
    if alike is not None:
        said = (
            f"{usd(alike.cost_usd)}, {hours(alike.hours)} h: {number(alike.train_accelerators)} and"
            f" {number(alike.generate_accelerators)} x {alike.accelerator}; {_against(pools, alike.cost_usd)}"
        )
        rows.append(("one_chip", "two pools, one accelerator type", alike.cost_usd, "usd", said))
    return (facts("colocated", "Compared with", rows),) if rows else ()


def _said(pools: Pools, one: Colocated) -> str:
    where = f"{one.nodes} x {one.instance_type} {one.how} in {one.provider}/{one.region}"
    text = f"{usd(one.cost_usd)}, {hours(one.hours)} h: {where}"
    return f"{text}; {_against(pools, one.cost_usd)}" if pools.cost_usd else text


def _against(pools: Pools, cost_usd: Decimal) -> str:
    """A cost beside that of the two pools."""
    ratio = float(cost_usd / pools.cost_usd)
    differs = percent(abs(ratio - 1.0), 0)
    if differs == percent(0.0, 0):
        return "as much as the two pools"
    return f"{differs} {'less' if ratio < 1.0 else 'more'} than the two pools"


def _beside(pools: Pools) -> str:
    """Of a headline: that a single cluster costs less, where it does."""
    single = cheapest_alone(pools)
    if single is None or single[1].cost_usd >= pools.cost_usd:
        return ""
    name, one = single
    return f"; {name} is cheaper: {as_known(one.cost_usd, pools)}, {hours(one.hours)} h"


def _claim(pools: Pools) -> str:
    """What was compared, and how near the pair is to what no other costs less than."""
    ways = ", and among all purchase options for both in one region by the deadline"
    if pools.horizon_hours is not None:
        start = datetime.fromisoformat(pools.start)
        last = (start + timedelta(hours=pools.horizon_hours)).isoformat()
        ways = (
            ", and, as there is no deadline, among all purchase options for both in one region that are planned to end"
            f" by {moment_known(last, 0.0, start.year)} ({pools.horizon_hours:g} h: assumptions.pools_horizon_hours)"
        )
    return (
        f"Cheapest pair of pools found among {pools.pairs:,} on demand or on spot, by costs linear in hours{ways}; "
        f"no other costs less than {usd(pools.bound_usd)} (gap {percent(_gap(pools), 1)})"
    )


def _proof(pools: Pools) -> Section:
    claim = _claim(pools)
    text = f"{claim[0].lower()}{claim[1:]}"
    return facts("proof", "Proof", [("gap_ratio", "search", _gap(pools), "ratio", text)])
