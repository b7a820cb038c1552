"""What should be done, for how much, and with which plan?"""

from __future__ import annotations

import math
from calendar import monthrange
from typing import Any

import numpy as np

from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Section
from planner.finops.review.parts import figure, money, percent, table, text, withheld
from planner.finops.review.sections.anomalies import unusual_days
from planner.finops.review.sections.bridge import split
from planner.finops.review.sections.commitments import expiries
from planner.records import record

TITLE = "What should be done?"
TOP = 20
# a commitment used below this loses more than a usual one-year discount gives (bundled 1-year discounts: 25 to 40 %)
LOW_UTILISATION = 0.75
STEADY_QUANTILE = 0.1  # of the month's days: what is there on nine days of ten
MIN_DAYS = 14
CHEAPER_RATIO = 0.02
_SKU = ["provider", "service", "sku_id", "pricing_unit"]
MATERIAL_RATIO = 0.0005  # of the month's cost; smaller actions are not worth a line


@record(frozen=True)
class Action:
    """Something to do.

    Attributes:
        kind: stable name.
        what, why: for people.
        saves: money per month in the bill's currency; None where the bill cannot tell.
        owner: whose it is.
        command: the plan that does it; empty where it is done at the provider.
        pool: the use it changes; actions of one pool exclude one another.
    """

    kind: str
    what: str
    why: str
    saves: float | None
    owner: str
    command: str
    pool: tuple[str, str] = ("", "")


def actions(inputs: Inputs) -> list[Action]:
    """All actions worth a line, those that save most first."""
    found = [*_waste(inputs), *_commit(inputs), *_idle(inputs), *_move_or_switch(inputs), *_renew(inputs),
             *_unusual(inputs)]  # fmt: skip
    least = MATERIAL_RATIO * inputs.spend(inputs.month)
    kept = [a for a in found if a.saves is None or a.saves >= max(least, 0.01)]
    return sorted(kept, key=lambda a: (-(a.saves or 0.0), a.kind, a.what))


def build(inputs: Inputs) -> Section:
    """The list, dearest first."""
    status, reason = inputs.gate.status(
        "actions_effective_money"
    )  # what every one of them is worked out from
    if status == "withheld":
        return withheld("actions", TITLE, reason)
    found = actions(inputs)
    if not found:
        said = "Nothing in the bill of the month calls for an action worth a line."
        return Section("actions", TITLE, (said,))
    shown = found[:TOP]
    rows = [(a.what, a.why, a.saves, a.owner, a.command) for a in shown]
    made = table(
        "actions", "Actions", [("what", "Action", "text"), ("why", "Why", "text"),
        ("saves", "Saves per month", "money"), ("owner", "Owner", "text"), ("command", "Plan it with", "text")], rows,
        "Savings are estimates from this month's use; of an unusual time, its excess, once. What is committed "
        "cannot move or run on spot as well."
        + (f" {len(found) - TOP} smaller ones are left out." if len(found) > TOP else ""),
    )  # fmt: skip
    figures = (
        figure(inputs, "actions_count", "Actions", len(found), "count"),
        figure(
            inputs,
            "actions_saves_money",
            "Saved per month, what excludes one another taken once",
            joint(found),
            "money",
        ),
    )
    said = f"{shown[0].what}: {money(shown[0].saves, inputs.bill.currency)} a month is the largest." if (
        shown[0].saves) else f"First: {shown[0].what}."  # fmt: skip
    return Section("actions", TITLE, (said,), figures, (made,))


def joint(found: list[Action]) -> float:
    """Monthly savings of all actions that add up: of each pool of use only the kind that saves most."""
    alone = math.fsum(a.saves or 0.0 for a in found if a.kind in ("commit_less", "delete_idle"))
    pools: dict[tuple[str, str], dict[str, float]] = {}
    for action in found:
        if action.pool != ("", "") and action.saves:
            kinds = pools.setdefault(action.pool, {})
            kinds[action.kind] = kinds.get(action.kind, 0.0) + action.saves
    return alone + math.fsum(max(kinds.values()) for kinds in pools.values())


def _waste(inputs: Inputs) -> list[Action]:
    own = inputs.of_month(inputs.ask("commitment_utilisation"))
    paid = own["used_cost"] + own["unused_cost"]
    low = own[(paid > 0) & (own["used_cost"] < LOW_UTILISATION * paid)]
    out = []
    for row in low.nlargest(TOP, "unused_cost").to_dict("records"):
        used, unused = float(row["used_cost"]), float(row["unused_cost"])
        name = text(row["commitment_name"], row["commitment_id"])
        out.append(Action(
            "commit_less", f"Commit less: shrink, exchange or sell {name}",
            f"{percent(used / (used + unused))} of it is used", unused, text(row["provider"]),
            "planner commit QUESTION.yaml  # demand: file of this bill",
        ))  # fmt: skip
    return out


def _rate(inputs: Inputs) -> dict[str, float]:
    """Per provider: what its used commitments save against contracted prices, as a share."""
    own = inputs.of_month(inputs.ask("commitment_utilisation")).groupby("provider").sum(numeric_only=True)
    return {
        str(provider): 1 - row["used_cost"] / row["used_contracted_cost"]
        for provider, row in own.iterrows()
        if row["used_contracted_cost"] > 0 and row["used_cost"] < row["used_contracted_cost"]
    }


def _commit(inputs: Inputs) -> list[Action]:
    """Use that is there on nine days of ten without a commitment, at the discount the provider gives already."""
    frame = inputs.ask("uncovered_use")
    rates = _rate(inputs)
    days = monthrange(inputs.month.year, inputs.month.month)[1]
    steady: dict[tuple[str, str], float] = {}
    for (provider, service, _, _), rows in frame.groupby(
        ["provider", "service", "sku_id", "region_id"], dropna=False
    ):
        if len(rows) < MIN_DAYS:
            continue
        cost = np.zeros(days)
        cost[: len(rows)] = rows["effective_cost"].to_numpy(dtype=float)
        key = (text(provider), text(service))
        steady[key] = steady.get(key, 0.0) + float(np.quantile(cost, STEADY_QUANTILE)) * days
    out = []
    for (provider, service), amount in steady.items():
        if amount <= MATERIAL_RATIO * inputs.spend(inputs.month):
            continue
        rate = rates.get(provider)
        why = f"{money(amount, inputs.bill.currency)} a month of it is there on nine days of ten and not covered"
        if rate is not None:
            why += f"; commitments of {provider} save {percent(rate, 0)} here"
        out.append(Action(
            "commit_more", f"Commit more: {service} of {provider}", why, None if rate is None else amount * rate,
            provider, "planner commit QUESTION.yaml  # demand: file of this bill", (provider, service),
        ))  # fmt: skip
    return out


def _idle(inputs: Inputs) -> list[Action]:
    out = []
    for row in inputs.ask("idle_resources").to_dict("records"):
        is_reservation = bool(row["is_reservation"])
        name = text(row["resource_id"], "(unnamed)")
        what = f"Shrink the capacity reservation {name}" if is_reservation else f"Delete {name}"
        why = f"{text(row['service'])} in {text(row['region_id'], 'no region')} was paid and not used"
        command = (
            "planner schedule SCHEDULE.yaml  # fill it, or see that nothing needs it"
            if is_reservation
            else ""
        )
        out.append(
            Action("delete_idle", what, why, float(row["effective_cost"]), text(row["provider"]), command)
        )
    return out


def _move_or_switch(inputs: Inputs) -> list[Action]:
    """The same SKU cheaper in another region, or as spot, as far as this bill knows prices."""
    parts = split(inputs).frame
    own = parts[(parts["charge_kind"] == "use") & (parts["quantity"] > 0)].dropna(subset=_SKU)
    skus: dict[tuple[str, ...], list[Any]] = {}
    for row in own[[*_SKU, "region_id", "pricing_category", "effective_cost", "quantity"]].to_dict("records"):
        skus.setdefault(tuple(str(row[name]) for name in _SKU), []).append(row)
    out: list[Action] = []
    for (provider, service, sku, unit), rows in sorted(skus.items()):
        of: dict[str, list[Any]] = {"Standard": [], "Dynamic": []}
        for row in rows:
            of.setdefault(text(row["pricing_category"], "Standard"), []).append(row)
        plain = [r for r in of["Standard"] if text(r["region_id"]) and _price(r) > 0]
        spot = {text(r["region_id"]): _price(r) for r in of["Dynamic"]}
        names = (provider, service, sku, unit)
        out += _move(names, plain) + _switch(names, plain, spot)
    return out


def _price(row: Any) -> float:
    return float(row["effective_cost"]) / float(row["quantity"])


def _move(names: tuple[str, str, str, str], plain: list[Any]) -> list[Action]:
    if len(plain) < 2:
        return []
    provider, service, sku, unit = names
    best = min(plain, key=_price)
    there, to = _price(best), text(best["region_id"])
    dear = [r for r in plain if there < _price(r) * (1 - CHEAPER_RATIO)]
    if not dear:
        return []
    saves = math.fsum(float(r["quantity"]) * (_price(r) - there) for r in dear)
    here = ", ".join(f"{_price(r):,.5g} in {text(r['region_id'])}" for r in dear)
    why = f"a unit ({unit}) costs {there:,.5g} there and {here}; its data must be able to move"
    return [Action("move_region", f"Move {sku} to {to}", why, saves, provider,
                   f"planner optimize WORKLOAD.yaml  # regions: {to}", (provider, service))]  # fmt: skip


def _switch(names: tuple[str, str, str, str], plain: list[Any], spot: dict[str, float]) -> list[Action]:
    provider, service, sku, unit = names
    able = [r for r in plain if 0 < spot.get(text(r["region_id"]), math.inf) < _price(r)]
    if not able:
        return []
    saves = math.fsum(float(r["quantity"]) * (_price(r) - spot[text(r["region_id"])]) for r in able)
    shown = ", ".join(
        f"{spot[text(r['region_id'])]:,.5g} instead of {_price(r):,.5g} in {text(r['region_id'])}"
        for r in able
    )
    why = f"a unit ({unit}) cost {shown} this month"
    return [Action("switch_option", f"Run {sku} on spot where work may pause", why, saves, provider,
                   "planner optimize WORKLOAD.yaml  # purchase_options: spot", (provider, service))]  # fmt: skip


def _renew(inputs: Inputs) -> list[Action]:
    used = inputs.of_month(inputs.ask("commitment_utilisation")).set_index("commitment_id")
    out = []
    for row in expiries(inputs):
        name, key = text(row["commitment_name"], row["commitment_id"]), row["commitment_id"]
        saves = None
        if key in used.index:
            one = used.loc[key]
            saves = float(one["used_contracted_cost"] - one["used_cost"] - one["unused_cost"])
        if saves is not None and saves <= 0:
            continue
        out.append(Action(
            "renew", f"Decide on {name} before {str(row['period_end'])[:10]}",
            "it ends, and what it saves now ends with it", saves, "", "planner commit QUESTION.yaml",
        ))  # fmt: skip
    return out


def _unusual(inputs: Inputs) -> list[Action]:
    """Unusual days that no tagged run explains."""
    found = [one for one in unusual_days(inputs) if not one.run]
    return [
        Action("look_into", f"Look into {one.service} of {one.day.isoformat()}",
               f"{one.sku or one.service} in {one.region or 'no region'} cost more than the days around it", one.excess,
               one.account or one.provider, "")
        for one in found[:3]
    ]  # fmt: skip
