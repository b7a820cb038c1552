"""What does a unit of AI work cost?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.finops.frames import records_of
from planner.finops.kpis import query_kpi
from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Figure, Section, Table
from planner.finops.review.parts import cells, figure, money, percent, ratio, table, text, withheld
from planner.finops.units.names import accelerator, count_unit, direction, model_name
from planner.records import record

if TYPE_CHECKING:
    import pandas as pd

    from planner.finops.bought_ahead import Moved

TITLE = "What does a unit of AI work cost?"
TOP = 20
_AI = "AI and Machine Learning"
_NAMING = [
    "provider",
    "instance_type",
    "gpu_model",
    "sku_meter",
    "description",
]  # in the order of `accelerator`
_WORDS = [*_NAMING, "region_id", "sku_id", "pricing_category"]
_KIND = ["chip", "machine", "option"]
_PER = {
    "tokens": (1e6, "1M tokens"),
    "requests": (1e3, "1,000 requests"),
    "characters": (1e6, "1M characters"),
    "images": (1.0, "image"),
    "pages": (1e3, "1,000 pages"),
}


@record(frozen=True)
class Work:
    """Counted work of one model in one direction."""

    model: str
    direction: str
    service: str
    kind: str
    quantity: float
    cost: float


def build(inputs: Inputs) -> Section | None:
    """Tokens, requests, images, GPU-hours by accelerator, virtual currencies; None where the bill has none of them."""
    rows = records_of(inputs.ask("ai_units"))
    work, uncounted = _work(rows)
    kinds, credits = gpu_sums(inputs).kinds, _credits(rows)
    if not (work or credits or (kinds["chip"] != "").any()):
        return None
    status, reason = inputs.gate.status("units_ai_money")
    if status == "withheld":
        return withheld("units", TITLE, reason)
    tables = [one for one in (_work_table(work), _gpu_table(kinds), _credit_table(credits)) if one.rows]
    figures = _figures(inputs, rows, work)
    said = _sentences(inputs, work, uncounted, kinds, credits)
    return Section("units", TITLE, said, tuple(figures), tuple(tables), (), status, reason)


def _work(rows: list[dict[str, Any]]) -> tuple[list[Work], float]:
    """Counted work by model, and the cost of AI services that count nothing known."""
    sums: dict[tuple[str, str, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    uncounted = 0.0
    for row in rows:
        is_ai = text(row["service_category"]) == _AI
        words = (text(row["model"]), text(row["sku_meter"]), text(row["description"]), text(row["sku_id"]))
        cost = float(row["effective_cost"])
        for unit, quantity in (
            (row["consumed_unit"], row["consumed_quantity"]),
            (row["pricing_unit"], row["pricing_quantity"]),
        ):
            found = count_unit(text(unit), is_ai=is_ai)
            if found and quantity is not None and quantity == quantity:
                name = text(row["model"]) or model_name(*words[1:]) or "(model not named)"
                entry = sums[name, direction(*words[1:], text(unit)), text(row["service"]), found.kind]
                entry[0] += float(quantity) * found.size
                entry[1] += cost
                break
        else:
            uncounted += cost if is_ai else 0.0
    work = [Work(*key, quantity, cost) for key, (quantity, cost) in sums.items()]
    return sorted(
        work, key=lambda one: (-one.cost, one.model, one.direction, one.service, one.kind)
    ), uncounted


@record(frozen=True, eq=False)
class GpuSums:
    """GPU-hours and cost of the month.

    Attributes:
        kinds: chip, machine, option, hours, cost; in any order.
        places: hours by provider, region and chip.
    """

    kinds: pd.DataFrame
    places: Mapping[Any, float]


def gpu_sums(inputs: Inputs) -> GpuSums:
    """Name the accelerator of every machine type and add up; worked out once, for a bill may have many types."""
    if "gpu_sums" not in inputs.answers:
        rows = query_kpi(inputs.bill.engine, "gpu_types", inputs.parameters)
        rows[_WORDS] = rows[_WORDS].fillna("")
        rows["chip"] = [accelerator(*words) for words in cells(rows, *_NAMING)]
        machines = cells(rows, "instance_type", "sku_meter", "description", "sku_id")
        rows["machine"] = [next(filter(None, words), "") for words in machines]
        rows = rows.rename(
            columns={"pricing_category": "option", "gpu_hours": "hours", "effective_cost": "cost"}
        )
        ahead = _ahead(rows, inputs.moved_ahead())
        kinds = rows.groupby(_KIND, as_index=False, sort=False)[["hours", "cost"]].sum()
        places = rows.groupby(["provider", "region_id", "chip"])["hours"].sum()
        if len(ahead):
            from pandas import concat

            kinds = concat([kinds, ahead[kinds.columns]]).groupby(_KIND, as_index=False, sort=False).sum()
            more = ahead.groupby(["provider", "region_id", "chip"])["hours"].sum()
            places = places.add(more, fill_value=0.0)
        inputs.answers["gpu_sums"] = GpuSums(kinds, places.to_dict())
    gpu_sums: GpuSums = inputs.answers["gpu_sums"]
    return gpu_sums


def _ahead(rows: pd.DataFrame, moved: Mapping[tuple[str, ...], Moved]) -> pd.DataFrame:
    """What was bought ahead, by place and kind: its hours, or those of use that costs nothing, and its cost.

    Args:
        rows: of the KPI `gpu_types`, with chip and machine.
        moved: what use and purchases of other months add, by provider, service, region and machine type.
    """
    amounts = ["bought_gpu_hours", "free_gpu_hours", "bought_cost"]
    own = rows[(rows[amounts] != 0).any(axis=1)]
    keys = ["provider", "region_id", "instance_type", *_KIND]
    sums = own.groupby(keys, as_index=False, sort=False, dropna=False)[amounts].sum()
    sums["hours"] = sums[["bought_gpu_hours", "free_gpu_hours"]].max(axis=1).clip(lower=0.0)
    sums["cost"] = sums["bought_cost"].where(sums["hours"] > 0, 0.0)
    for (provider, _, region, machine), one in moved.items():
        place = [
            (sums[name] == value) for name, value in zip(keys, (provider, region, machine), strict=False)
        ]
        for at in sums.index[place[0] & place[1] & place[2]][:1]:
            sums.loc[at, ["hours", "cost"]] += [one.hours, one.counted]
    return sums[(sums["hours"] > 0) | (sums["cost"] != 0)]


def _credits(rows: list[dict[str, Any]]) -> list[tuple[str, str, float, float]]:
    """Provider, virtual currency, how much of it was used, and its cost in the bill's currency."""
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in rows:
        if text(row["pricing_currency"]) and row["pricing_currency_cost"] == row["pricing_currency_cost"]:
            entry = sums[text(row["provider"]), text(row["pricing_currency"])]
            entry[0] += float(row["pricing_currency_cost"] or 0.0)
            entry[1] += float(row["effective_cost"])
    return sorted(
        ((*key, used, cost) for key, (used, cost) in sums.items()), key=lambda one: (-one[3], one[:2])
    )


def _figures(inputs: Inputs, rows: list[dict[str, Any]], work: list[Work]) -> list[Figure]:
    services = math.fsum(float(row["effective_cost"]) for row in rows if text(row["service_category"]) == _AI)
    tokens = [one for one in work if one.kind == "tokens"]
    count = math.fsum(one.quantity for one in tokens)
    if not services and not tokens:
        return []  # of a bill of machines alone there is nothing to withhold
    lacking = "no charge of the month counts tokens"
    values: list[tuple[str, str, float | None, Any, str]] = [
        ("units_ai_money", "Cost of AI services", services or None, "money", "no charge is of an AI service"),
        ("units_tokens_count", "Tokens, in millions", count / 1e6 if tokens else None, "quantity", lacking),
        (
            "units_million_tokens_money",
            "Cost per 1M tokens, all models",
            ratio(math.fsum(one.cost for one in tokens) * 1e6, count) if tokens else None,
            "unit_price",
            lacking,
        ),
    ]
    return [figure(inputs, key, label, value, unit, lacking=why) for key, label, value, unit, why in values]


def _work_table(work: list[Work]) -> Table:
    rows = [
        (
            one.model,
            one.direction,
            one.service,
            one.kind,
            one.quantity,
            one.cost,
            ratio(one.cost * _PER[one.kind][0], one.quantity),
            f"per {_PER[one.kind][1]}",
        )
        for one in work[:TOP]
    ]
    return table(
        "units_models",
        "Models and their units",
        [
            ("model", "Model", "text"),
            ("direction", "Direction", "text"),
            ("service", "Service", "text"),
            ("kind", "Unit", "text"),
            ("quantity", "Quantity", "quantity"),
            ("cost", "Cost", "money"),
            ("price", "Price", "unit_price"),
            ("per", "Of", "text"),
        ],
        rows,
        f"{len(work) - TOP:,} more are not listed." if len(work) > TOP else "",
    )


def _gpu_table(kinds: pd.DataFrame) -> Table:
    kinds = kinds[(kinds["hours"] != 0) | (kinds["cost"] != 0)]  # hours unknown: in no sum
    dearest = kinds.nlargest(TOP, "cost", keep="all").sort_values(
        ["cost", *_KIND], ascending=[False, True, True, True]
    )
    rows = [
        (chip or "(not known)", machine, option, hours, cost, ratio(cost, hours))
        for chip, machine, option, hours, cost in dearest[[*_KIND, "hours", "cost"]]
        .head(TOP)
        .itertuples(index=False)
    ]
    return table(
        "units_gpus",
        "GPU-hours by accelerator",
        [
            ("accelerator", "Accelerator", "text"),
            ("machine", "Machine type", "text"),
            ("option", "Priced", "text"),
            ("hours", "GPU-hours", "hours"),
            ("cost", "Cost", "money"),
            ("price", "Per GPU-hour", "money_per_hour"),
        ],
        rows,
        f"{len(kinds) - TOP:,} more are not listed." if len(kinds) > TOP else "",
    )


def _credit_table(credits: list[tuple[str, str, float, float]]) -> Table:
    rows = [(*one[:2], one[2], one[3], ratio(one[3], one[2])) for one in credits[:TOP]]
    return table(
        "units_credits",
        "Virtual and pricing currencies",
        [
            ("provider", "Provider", "text"),
            ("currency", "Priced in", "text"),
            ("used", "Used", "quantity"),
            ("cost", "Cost", "money"),
            ("price", "Per unit", "unit_price"),
        ],
        rows,
    )


def _sentences(
    inputs: Inputs,
    work: list[Work],
    uncounted: float,
    kinds: pd.DataFrame,
    credits: list[tuple[str, str, float, float]],
) -> tuple[str, ...]:
    currency, said = inputs.bill.currency, []
    tokens = [one for one in work if one.kind == "tokens"]
    if tokens:
        count, cost = math.fsum(one.quantity for one in tokens), math.fsum(one.cost for one in tokens)
        price = money(ratio(cost * 1e6, count), currency)
        said.append(
            f"{count / 1e6:,.1f}M tokens cost {money(cost, currency)}, {price} per 1M; {tokens[0].model} cost most."
        )
    is_known = kinds["chip"] != ""
    by_chip = kinds[is_known & (kinds["hours"] != 0)].groupby("chip")[["hours", "cost"]].sum()
    if len(by_chip):
        sums = zip(by_chip.index, by_chip["hours"].tolist(), by_chip["cost"].tolist(), strict=True)
        most, hours, cost = max(sums, key=lambda one: one[2])
        said.append(f"An hour of {most}, which cost most, was {money(cost / hours, currency)}.")
    unknown = math.fsum(kinds["cost"][~is_known])
    if len(by_chip) and unknown > 0.005:
        share = percent(ratio(unknown, math.fsum(kinds["cost"])))
        said.append(f"The accelerator of {share} of GPU cost is not named by the bill.")
    if credits:
        provider, name, used, cost = credits[0]
        said.append(f"{used:,.0f} {name} of {provider} cost {money(cost, currency)}.")
    if uncounted > 0.005:
        said.append(
            f"AI services for {money(uncounted, currency)} are charged in units that count no work, such as hours."
        )
    return tuple(said)
