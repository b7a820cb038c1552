"""What does a unit of GPU work cost, and how much of what is paid is of use?"""

from __future__ import annotations

import math
from datetime import date
from typing import Any

from planner.finops.frames import records_of, rows_of
from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Chart, Figure, Section, Table
from planner.finops.review.parts import (
    figure,
    flagged,
    money,
    percent,
    ratio,
    run_regions,
    table,
    text,
    twice_words,
)
from planner.finops.review.sections.ahead import ahead_words, left_gpu_hours
from planner.finops.review.sections.things import least_amount
from planner.finops.units.names import accelerator
from planner.render.currency import with_currency

TITLE = "What does a unit of GPU work cost?"
_OPTIONS = ("Standard", "Dynamic", "Committed", "Other")  # values of PricingCategory
TOP = 20
_NAMED = 5
_UNITS_WITHOUT_HOURS = (
    "SELECT PricingUnit AS unit, has_gpus, SUM(EffectiveCost) AS cost FROM (SELECT PricingUnit, EffectiveCost, "
    "CASE WHEN SkuPriceDetails LIKE '%GpuCount%' "
    "AND TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$.\"GpuCount\"') AS DOUBLE) > 0 THEN 1 ELSE 0 END AS has_gpus "
    "FROM focus WHERE x_hours_of IS NULL AND ChargeCategory = 'Usage' AND EffectiveCost <> 0 "
    "AND PricingQuantity IS NOT NULL AND ChargePeriodStart >= :start AND ChargePeriodStart < :end) AS charges "
    "GROUP BY PricingUnit, has_gpus"
)


def build(inputs: Inputs) -> Section:
    """GPU-hours, runs, the waterfall from paid to useful, and spot."""
    gpus = _with_moved(inputs, inputs.of_this_month("gpu_hours"))
    hours, cost = float(gpus["gpu_hours"].sum()), float(gpus["effective_cost"].sum())
    counted = float(gpus["counted_cost"].sum())
    idle = float(gpus["unused_gpu_hours"].sum()) + left_gpu_hours(inputs)
    runs = _runs(inputs)
    figures = _spot(inputs)
    if inputs.utilisation is not None:
        figures = [*_useful(inputs, hours, cost), *figures]
    if len(gpus) or len(runs):
        figures = [*_units(inputs, hours, cost, counted, idle, runs), *figures]
    busy = inputs.utilisation.between(inputs.month, inputs.end) if inputs.utilisation else None
    charts = (_waterfall(hours, busy, _short(inputs)),) if busy is not None and hours else ()
    tables = [part for part in (_places(inputs, gpus), _run_table(inputs, runs)) if part.rows]
    uncounted, twice = _uncounted(inputs, gpus), twice_words(inputs)
    said = (
        *(_sentences(inputs, hours, counted, busy) if hours or not uncounted else ()), *uncounted,
        *ahead_words(inputs, math.fsum(runs["ahead_cost"])), *([f"{twice[0].upper()}{twice[1:]}."] if twice else ()),
    )  # fmt: skip
    return Section("gpu", TITLE, said, tuple(figures), tuple(tables), charts)


def _with_moved(inputs: Inputs, gpus: Any) -> Any:
    """The month's GPU-hours, of which those that were bought in another month bear their share of the price."""
    moved = inputs.moved_ahead()
    if not moved:
        return gpus
    import pandas as pd

    keys = ["provider", "service", "region_id", "pricing_category"]
    more = pd.DataFrame(
        [(*(name or None for name in place[:3]), "Other", one.hours, 0.0, one.cost, one.counted, one.cost - one.counted)
         for place, one in moved.items()],
        columns=[*keys, "gpu_hours", "unused_gpu_hours", "effective_cost", "counted_cost", "unknown_unit_cost"],
    )  # fmt: skip
    sums = dict.fromkeys(more.columns[4:], "sum") | {"unknown_unit": "max"}
    both = (
        pd.concat([gpus, more.assign(unknown_unit=None)])
        .groupby(keys, dropna=False, as_index=False)
        .agg(sums)
    )
    return both[(both["gpu_hours"].abs() > 1e-6) | (both["effective_cost"].abs() > 1e-6)]


def _uncounted(inputs: Inputs, gpus: Any) -> tuple[str, ...]:
    """What GPU SKUs cost in units that tell no hours, or beside the price of an hour where that is worth a line."""
    currency, hours = inputs.bill.currency, float(gpus["gpu_hours"].sum())
    lost = gpus[gpus["unknown_unit_cost"] > 0]
    rows = records_of(
        inputs.bill.engine.query(_UNITS_WITHOUT_HOURS, {"start": inputs.month, "end": inputs.end})
    )
    by_unit = [row for row in rows if not row["has_gpus"] and accelerator("", "", text(row["unit"]))]
    named = math.fsum(float(row["cost"]) for row in by_unit)  # by the unit alone: `8xH100 Hours`
    if lost.empty and named <= 0:
        rest = float((gpus["effective_cost"] - gpus["counted_cost"]).sum())
        without = f"{money(rest, currency)} of the cost of GPU machines is of charges that state no hours of the month"
        return (
            (f"{without}: it is not in the price of an hour.",)
            if hours and abs(rest) >= least_amount(inputs)
            else ()
        )
    asked = (row["unit"] for row in rows if row["has_gpus"] or row in by_unit)
    units = sorted(set(filter(None, map(text, (*lost["unknown_unit"], *asked)))))
    more = f" and {len(units) - _NAMED} more" if len(units) > _NAMED else ""
    cost = money(float(lost["unknown_unit_cost"].sum()) + named, currency)
    return (
        f"GPU machines for {cost} are priced in units without known hours ({', '.join(units[:_NAMED])}{more}): "
        "GPU-hours leave them out.",
    )


def _runs(inputs: Inputs) -> Any:
    """Runs with charges in the month, the dearest first."""
    frame = inputs.runs()
    month = f"{inputs.month:%Y-%m}"
    own = frame[(frame["first_month"] <= month) & (frame["last_month"] >= month)]
    return own.sort_values(["effective_cost", "run_id"], ascending=[False, True])


def _units(inputs: Inputs, hours: float, cost: float, counted: float, idle: float, runs: Any) -> list[Figure]:
    """`counted`: cost of the charges that tell their hours."""
    lacking = (
        "no GPU SKU of the month is priced in a unit with known hours"
        if cost
        else "no charge of the month says how many GPUs its machine has (SkuPriceDetails GpuCount, or its type by name)"
    )
    mean = math.fsum(runs["effective_cost"]) / len(runs) if len(runs) else None
    return [
        figure(inputs, "gpu_hours", "GPU-hours paid", hours or None, "hours", lacking=lacking),
        figure(inputs, "gpu_cost_money", "Cost of GPU machines", cost or None, "money", lacking=lacking),
        figure(inputs, "gpu_hour_money", "Cost per GPU-hour", ratio(counted, hours), "money_per_hour", lacking=lacking),
        figure(inputs, "gpu_unused_hours", "GPU-hours reserved and not used", idle if hours else None, "hours",
               lacking=lacking),
        figure(inputs, "gpu_runs_count", "Tagged runs", len(runs), "count"),
        figure(inputs, "gpu_run_money", "Cost per run", mean, "money",
               lacking=f"no charge of the month carries the tag {inputs.run_tag!r}"),
    ]  # fmt: skip


def _useful(inputs: Inputs, hours: float, cost: float) -> list[Figure]:
    busy = inputs.utilisation.between(inputs.month, inputs.end) if inputs.utilisation else None
    lacking = "the utilisation file has no row of the month"
    figures: list[tuple[str, str, float | None, Any]] = [
        ("gpu_useful_hour_money", "Cost per useful GPU-hour", None, "money_per_hour"),
        ("gpu_goodput_ratio", "Useful share of paid GPU-hours", None, "ratio"),
        ("gpu_million_tokens_money", "Cost per 1M tokens", None, "unit_price"),
        ("gpu_eflop_money", "Cost per EFLOP", None, "unit_price"),
        ("gpu_preemption_overhead_ratio", "GPU-hours lost to interruptions", None, "ratio"),
    ]
    if busy is not None and not (cost or hours):
        lacking = "what GPUs cost in the month is not known"
    elif busy is not None:
        values = (
            ratio(cost, busy.goodput), ratio(busy.goodput, hours), ratio(cost * 1e6, busy.tokens or 0.0),
            ratio(cost, busy.eflop or 0.0), math.nan if busy.lost is None else ratio(busy.lost, hours),
        )  # fmt: skip
        figures = [(*m[:2], v, m[3]) for m, v in zip(figures, values, strict=True)]
        lacking = "the utilisation file does not say"
    found = [figure(inputs, *one, lacking=lacking) for one in figures]
    short = _short(inputs) if busy is not None else ""
    return (
        [flagged(one, f"{short}; hours of the others count as not used") for one in found] if short else found
    )


def _short(inputs: Inputs) -> str:
    """That the utilisation file lacks days of the month; empty where it has all."""
    assert inputs.utilisation is not None
    told, days = len(inputs.utilisation.days(inputs.month, inputs.end)), (inputs.end - inputs.month).days
    return "" if told >= days else f"the utilisation file has rows on {told} of the month's {days} days"


def _spot(inputs: Inputs) -> list[Figure]:
    own = inputs.of_this_month("spot")
    spot, compute = float(own["spot_cost"].sum()), float(own["compute_cost"].sum())
    priced, listed = float(own["spot_cost_with_list"].sum()), float(own["spot_list_cost"].sum())
    return [
        figure(inputs, "spot_share_ratio", "Spot share of compute cost", ratio(spot, compute), "ratio",
               lacking="the month has no compute"),
        figure(inputs, "spot_list_savings_ratio", "Spot saving against list", 1 - ratio(priced, listed), "ratio",
               lacking="the month has no spot use with a list price"),
    ]  # fmt: skip


def _waterfall(hours: float, busy: Any, short: str) -> Chart:
    levels = (hours, busy.allocated, busy.busy, busy.goodput)
    least = "at least " if short else ""
    share = percent(ratio(busy.goodput, hours))
    said = f"Of {hours:,.0f} paid GPU-hours {least}{busy.goodput:,.0f} were of use ({share})."
    return Chart("gpu_waterfall", "GPU-hours: from paid to useful", "funnel",
                 ("paid", "allocated", "busy", "goodput"), (("hours", levels),), "hours", said)  # fmt: skip


def _places(inputs: Inputs, gpus: Any) -> Table:
    """The dearest places, all services of a place together."""
    hidden = _is_withheld(inputs, "gpu_hour_money")
    if _is_withheld(inputs, "gpu_hours") and _is_withheld(inputs, "gpu_cost_money"):
        gpus = gpus.head(0)
    keys = ["provider", "region_id", "pricing_category"]
    places = gpus.groupby(keys, dropna=False, sort=True).sum(numeric_only=True).reset_index()
    shown = places.sort_values("effective_cost", ascending=False, kind="stable").head(TOP)
    rows = [
        (text(r.provider), text(r.region_id), text(r.pricing_category), float(r.gpu_hours), float(r.effective_cost),
         None if hidden else ratio(r.counted_cost, r.gpu_hours))
        for r in rows_of(shown)
    ]  # fmt: skip
    return table(
        "gpu_places", "GPU-hours by place and pricing", [("provider", "Provider", "text"), ("region", "Region", "text"),
        ("option", "Priced", "text"), ("hours", "GPU-hours", "hours"), ("cost", "Cost", "money"),
        ("price", "Per GPU-hour", "money_per_hour")], rows,
        f"{len(places) - TOP:,} places with less cost are not listed." if len(places) > TOP else "",
    )  # fmt: skip


def _run_table(inputs: Inputs, runs: Any) -> Table:
    rows = []
    runs = runs.head(0) if _is_withheld(inputs, "gpu_run_money") else runs
    for run in records_of(runs.head(TOP)):
        busy = _busy_of(inputs, run)
        tokens = busy.tokens if busy else None
        cost = float(run["effective_cost"])
        rows.append((
            run["run_id"], text(run["provider"]), ", ".join(run_regions(run)), _priced(run),
            int(run["nodes"]) or None, ratio(run["node_hours"], run["nodes"]), float(run["gpu_hours"]), cost,
            ratio(cost, float(run["gpu_hours"])), None if not tokens else cost * 1e6 / tokens,
            None if busy is None else ratio(cost, busy.goodput),
        ))  # fmt: skip
    return table(
        "gpu_runs", "Runs", [("run_id", "Run", "text"), ("provider", "Provider", "text"), ("region", "Regions", "text"),
        ("option", "Priced", "text"), ("nodes", "Nodes", "count"), ("hours", "Hours", "hours"),
        ("gpu_hours", "GPU-hours", "hours"), ("cost", "Cost", "money"), ("per_hour", "Per GPU-hour", "money_per_hour"),
        ("per_mtok", "Per 1M tokens", "unit_price"), ("per_useful", "Per useful GPU-hour", "money_per_hour")], rows,
        " ".join(filter(None, (f"{len(runs) - TOP:,} runs with less cost are not listed." if len(runs) > TOP else "",
                               inputs.runs_remark))),
    )  # fmt: skip


def _is_withheld(inputs: Inputs, key: str) -> bool:
    return inputs.gate.status(key)[0] == "withheld"


def _priced(run: dict[str, Any]) -> str:
    """Ways in which a run's machines were bought, the dearest first."""
    costs = {name: float(run[f"{name.lower()}_cost"]) for name in _OPTIONS}
    return ", ".join(
        sorted((name for name in _OPTIONS if costs[name] > 0), key=lambda name: -costs[name])
    ) or text(run["pricing_category"])


def _busy_of(inputs: Inputs, run: dict[str, Any]) -> Any:
    """What the utilisation file knows of a run, over all its days."""
    if inputs.utilisation is None:
        return None
    return inputs.utilisation.between(date.min, date.max, run["run_id"])


def _sentences(inputs: Inputs, hours: float, counted: float, busy: Any) -> tuple[str, ...]:
    if not hours:
        return (
            "No charge of the month says that its machine has GPUs (SkuPriceDetails GpuCount, or its type by name).",
        )
    price = with_currency(f"{counted / hours:,.2f}", inputs.bill.currency)
    status, reason = inputs.gate.status("gpu_hour_money")
    said = [f"{hours:,.0f} GPU-hours were paid at {price} each."]
    if status == "withheld":
        said = [f"What a GPU-hour costs is unknown: {reason}."]
    if inputs.utilisation is None:
        said.append("How many of them did useful work is known from a utilisation file (--utilisation).")
    if busy is not None and inputs.utilisation is not None:
        short, share = _short(inputs), percent(ratio(busy.goodput, hours))
        said.append(
            f"{'At least ' if short else ''}{share} of them did work that was kept{': ' if short else ''}{short}."
        )
        if busy.allocated > hours * 1.001:
            said.append("More GPU-hours are allocated than paid for: the bill or the file is not complete.")
    return tuple(said)
