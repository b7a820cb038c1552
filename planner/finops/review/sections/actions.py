"""What should be done, for how much, and with which plan?"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

from planner.finops.frames import in_order, records_of, rows_of
from planner.finops.review.inputs import Inputs, known_days
from planner.finops.review.model import Section
from planner.finops.review.parts import (
    figure,
    money,
    per_unit,
    percent,
    review_command,
    table,
    text,
    thing_name,
    withheld,
)
from planner.finops.review.sections.action import LEAST_DISCOUNT, Action, joint
from planner.finops.review.sections.action_plan import commit_plan, run_plan, said_of_plan
from planner.finops.review.sections.allocation import owner_names
from planner.finops.review.sections.anomalies import Unusual, unusual_days
from planner.finops.review.sections.commitments import net_saving
from planner.finops.review.sections.confidence import Confidence, confidence
from planner.finops.review.sections.discounts import Discounts, discounts, unused_room
from planner.finops.review.sections.owners import main_owner, with_owners
from planner.finops.review.sections.things import MATERIAL_RATIO, least_amount, named_things
from planner.finops.review.sections.turned_commitments import ended_within, undecided
from planner.finops.things.together import Rate, ask_steady, ask_together
from planner.render.currency import with_currency

TITLE = "What should be done?"
TOP = 20
SHOWN = 5  # of them in texts; pages, workbooks and data formats hold all
# a commitment used below this loses more than a usual one-year discount gives (bundled 1-year discounts: 25 to 40 %)
LOW_UTILISATION = 0.75


SKU = ["provider", "service", "sku_id", "pricing_unit"]
_TOGETHER = {"delete_idle": "idle things",
             "move_region": "moves to a cheaper region", "switch_option": "moves to spot"}  # fmt: skip


def actions(inputs: Inputs) -> list[Action]:
    """All actions worth a line, the dearest first; what is too small for a line counts together with its like."""
    found = [*_waste(inputs), *_commit(inputs), *_idle(inputs), *_move_or_switch(inputs), *_renew(inputs),
             *_unusual(inputs)]  # fmt: skip
    least = least_amount(inputs)
    kept = [one for one in found if one.amount is None or one.weight >= least]
    small = [one for one in found if one.amount is not None and one.amount > 0 and one.weight < least]
    kept += [one for one in _together(small) if one.amount is not None and one.amount >= least]
    kept = [_of_a_month(said_of_plan(one), pace(inputs)) for one in kept]
    return sorted(kept, key=lambda one: (-one.weight, one.kind, one.what))


def pace(inputs: Inputs) -> float:
    """What amounts of the month's days so far are multiplied by to be those of a whole month."""
    return inputs.days_of(inputs.month) / max(known_days(inputs, inputs.month), 1)


def _of_a_month(one: Action, factor: float) -> Action:
    """The action with its amount at the pace of the days so far; what is over stays as it is."""
    return one if one.amount is None or one.basis == "once" else replace(one, amount=one.amount * factor)


def _together(small: list[Action]) -> list[Action]:
    """Actions below the limit, summed by kind and by the use they change."""
    alike: dict[tuple[str, tuple[str, str]], list[Action]] = {}
    for one in small:
        if one.kind in _TOGETHER:
            alike.setdefault((one.kind, one.pool), []).append(one)
    out = []
    for ones in alike.values():
        largest = max(ones, key=lambda one: one.amount or 0.0)
        owners = sorted({one.owner for one in ones if one.owner})
        owner = owners[0] if len(owners) == 1 else "several" * bool(owners)
        out.append(_summed(largest, len(ones), math.fsum(one.amount or 0.0 for one in ones), owner))
    return out


def _summed(largest: Action, count: int, amount: float, owner: str) -> Action:
    """Actions of one kind on one pool as one line."""
    kind, pool = largest.kind, largest.pool
    of = f" ({pool[1] or 'commitments'} of {pool[0]})" if pool != ("", "") else ""
    return Action(
        kind, f"{count} smaller {_TOGETHER[kind]}{of}", f"the largest: {largest.what}", amount, owner,
        largest.command, pool, largest.basis, largest.sure, same="smaller",
        plan=largest.plan, needs=largest.needs, file=largest.file,
    )  # fmt: skip


_COLUMNS: list[Any] = [
    ("what", "Action", "text"), ("saves", "Per month", "money"), ("once", "Once", "money"),
    ("basis", "Amount is", "text"), ("unknown", "Not known on", "money", "data"),
    ("confidence", "Confidence", "text"), ("owner", "Owner", "text"),
    ("why", "Why", "text", "below"),
    ("confidence_why", "How certain", "text", "below"), ("command", "Look closer", "text", "below"),
    ("plan", "Plan it", "text", "below"), ("plan_needs", "To plan it", "text", "below"),
    ("plan_file", "Saved plan", "text", "below"),
    ("provider", "Provider", "text", "data"),
    ("service", "Service", "text", "data"), ("thing", "Id", "text", "data"),
    ("id", "Id for --ledger FILE --accept", "text", "below"),
]  # fmt: skip
_WHOLE = "Amounts are of this month's use."
_UNTOLD = (
    f" Not known on: cost a month of use for which the bill shows no discount; in the ranking, "
    f"{percent(LEAST_DISCOUNT, 0)} of it counts as saved."
)
_NOTE = (
    " Confidence: high with no reason to doubt the amount, medium with one, low with several. "
    "Actions on the same use exclude one another; do not add them up."
)


def build(inputs: Inputs) -> Section:
    """The list, dearest first."""
    status, reason = inputs.gate.status(
        "actions_effective_money"
    )  # what every one of them is worked out from
    if status == "withheld":
        return withheld("actions", TITLE, reason)
    found = actions(inputs)
    if not found:
        said = "No action from this month's bill is large enough to list."
        return Section("actions", TITLE, (said,))
    shown = with_owners(inputs, found[:TOP])
    rows = [_row(one) for one in shown]
    so_far = (
        f"Amounts are those of a month at the pace of its {known_days(inputs, inputs.month)} days so far."
    )
    of = _WHOLE if pace(inputs) == 1 else so_far
    untold = _UNTOLD if any(one.unknown for one in shown) else ""
    ranked = table("actions", "Actions", _COLUMNS, rows, of + untold + _NOTE + (
        f" Not listed: {len(found) - TOP:,} smaller." if len(found) > TOP else ""
    ))  # fmt: skip
    columns = tuple(
        replace(
            one, links=one.key == "plan_file", place="cell" if one.key == "unknown" and untold else one.place
        )
        for one in ranked.columns
    )
    ranked = replace(ranked, shown=SHOWN, columns=columns)
    figures = (
        figure(inputs, "actions_count", "Actions", len(found), "count"),
        figure(
            inputs,
            "actions_saves_money",
            f"Together at most{', where known' * any(one.unknown for one in found)}, per month",
            joint(found, lambda: _of_use(inputs, found)),
            "money",
            lacking="the bill does not say what any of them saves",
        ),
    )
    return Section("actions", TITLE, (_sentence(shown[0], inputs.bill.currency),), figures, (ranked,))


def _of_use(inputs: Inputs, listed: list[Action]) -> float:
    """What listed commitments, moves and spot save together in a month, each use one way."""
    rates = [one.rate for one in listed if one.rate is not None]
    values = {**inputs.parameters, "least": least_amount(inputs)}
    return pace(inputs) * ask_together(inputs.bill.engine, values, rates)


def _row(one: Action) -> tuple[Any, ...]:
    amounts = (None, one.amount) if one.basis == "once" else (one.amount, None)
    basis = "" if one.amount is None else one.basis
    return (one.what, *amounts, basis, one.unknown or None, one.sure.level, one.owner, one.why, one.sure.why,
            one.command, one.plan, one.needs, one.file, *one.pool, one.thing, one.id)  # fmt: skip


def _sentence(first: Action, currency: str) -> str:
    if not first.amount:
        return f"First: {first.what}."
    often = "once" if first.basis == "once" else "a month"
    return f"First: {first.what}, {first.bound}{money(first.amount, currency)} {often}."


def _command(inputs: Inputs, use_case: str) -> str:
    """The official question that shows an action's grounds."""
    return review_command(inputs, f"--use-case {use_case}")


_ALL_SOLD = "all of it would have to be filled, exchanged or sold"


def _waste(inputs: Inputs) -> list[Action]:
    """Unused parts of commitments: the worst used by name, the rest together."""
    own = inputs.of_month(inputs.ask("commitment_utilisation"))
    if not len(own):
        return []
    own = own[(own["unused_cost"] > 0) & ~own["commitment_id"].isin(ended_within(inputs))]
    is_low = own["used_cost"] < LOW_UTILISATION * (own["used_cost"] + own["unused_cost"])
    low = own[is_low & (own["unused_cost"] >= least_amount(inputs))].nlargest(TOP, "unused_cost")
    sure = confidence(inputs, doubts=(_ALL_SOLD,))
    out = []
    for row in records_of(low):
        used, unused = float(row["used_cost"]), float(row["unused_cost"])
        name, provider, key = _commitment_name(row), text(row["provider"]), text(row["commitment_id"])
        out.append(Action(
            "commit_less", f"Commit less: shrink, exchange or sell {name}",
            f"{percent(used / (used + unused))} of it is used", unused,
            main_owner(inputs, provider, commitment=key), _command(inputs, "unused_commitments"),
            (provider, ""), "at most", sure, key,
        ))  # fmt: skip
    rest = own.drop(low.index)
    for provider, rows in rest.groupby("provider", dropna=False):
        used, unused = float(rows["used_cost"].sum()), float(rows["unused_cost"].sum())
        first = rows.iloc[0].to_dict()
        more = "more " * bool((low["provider"] == provider).any())
        what, of, key = f"{len(rows):,} {more}commitments of {text(provider)}", "them", ""
        if len(rows) == 1:
            what, of, key = _commitment_name(first), "it", text(first["commitment_id"])
        out.append(Action(
            "commit_less", f"Fill or shrink {what}", f"{percent(used / (used + unused))} of {of} is used", unused,
            main_owner(inputs, text(provider), commitment=key) if key else "", _command(inputs, "unused_commitments"),
            (text(provider), ""), "at most", sure, key, key or "smaller",
        ))  # fmt: skip
    return out


def _commitment_name(row: dict[str, Any]) -> str:
    """Name and id: names repeat."""
    name, key = text(row["commitment_name"]), text(row["commitment_id"])
    return f"{name} ({key})" if name and name != key else key


_OTHER_RATE = "the discount is that of your own commitments, not a quote"


def _stating_eligibility(inputs: Inputs) -> set[str]:
    """Providers whose charges say what commitments can cover (FOCUS 1.4): `commitment_opportunities` has no others."""
    own = inputs.of_this_month("commitment_coverage")
    return {text(provider) for provider in own.loc[own["eligible_rows"] > 0, "provider"]}


def _commit(inputs: Inputs) -> list[Action]:
    """Use that is there on nine days of ten without a commitment, at the discount that its like has already.

    What the unused commitments of a provider could carry needs no further ones; the largest services get it first.
    """
    known = discounts(inputs)
    room = unused_room(inputs, known)
    least = MATERIAL_RATIO * inputs.spend(inputs.month)
    out = []
    stating = _stating_eligibility(inputs)
    until = inputs.end if inputs.is_complete else inputs.last_day + timedelta(days=1)
    frame = ask_steady(inputs.bill.engine, {**inputs.parameters, "end": until})
    frame = in_order(frame).sort_values("steady_cost", ascending=False, kind="stable")
    for row in records_of(frame):
        provider, service, steady = text(row["provider"]), text(row["service"]), float(row["steady_cost"])
        filled = min(room.get(provider, 0.0), steady)
        amount, room[provider] = steady - filled, room.get(provider, 0.0) - filled
        if amount <= least:
            continue
        gpu = amount * min(max(round(float(row["steady_gpu_cost"]) / steady, 9), 0.0), 1.0)
        own = known.get(provider, Discounts())
        saves = own.saved(amount - gpu, gpu)
        shown, kept = (money(one * pace(inputs), inputs.bill.currency) for one in (steady, filled))
        why = f"{shown} a month of it runs nine days of ten and is not covered by a commitment"
        if filled > least:
            why += f"; {kept} of it could use the unused part of your {provider} commitments"
        monthly, gpu_monthly = (one * pace(inputs) for one in (amount - gpu, gpu))
        unknown = own.untold(monthly, gpu_monthly)
        if said := own.words(monthly, gpu_monthly, provider, inputs.bill.currency):
            why += f"; {said}"
        use_case = "commitment_opportunities" if provider in stating else "compute_effective"
        out.append(commit_plan(inputs, Action(
            "commit_more", f"Commit more: {service} of {provider}", why, saves,
            main_owner(inputs, provider, service), _command(inputs, use_case), (provider, service),
            "at least" if saves is not None and unknown else "estimate",
            confidence(inputs, doubts=(_OTHER_RATE,)) if saves is not None else Confidence(), unknown=unknown,
            rate=Rate(provider, service, amount / steady, own.plain or 0.0, own.gpu or 0.0),
        )))  # fmt: skip
    return out


def _idle(inputs: Inputs) -> list[Action]:
    out, shown = [], owner_names(inputs)
    for row in records_of(inputs.ask("idle_resources")):
        is_reservation = bool(row["is_reservation"])
        key, called = text(row["resource_id"]), "" if is_reservation else text(row["resource_name"])
        name = f"{called} ({key})" if called and called != key else key or "(unnamed)"
        what = f"Shrink the capacity reservation {name}" if is_reservation else f"Delete {name}"
        why = f"{text(row['service'])} in {_regions(row)} was paid for and not used"
        provider, service, owner = text(row["provider"]), text(row["service"]), text(row["owner"])
        out.append(Action(
            "delete_idle", what, why, float(row["effective_cost"]),
            shown.get(owner, owner) if key else main_owner(inputs, provider, service),
            _command(inputs, "unused_reservations" if is_reservation else "sku_costs"), (provider, service),
            sure=confidence(inputs, days=int(row["idle_days"])), thing=key,
        ))  # fmt: skip
    return out


def _regions(row: dict[str, Any]) -> str:
    """Where something is: its regions, of more than two their number."""
    names = dict.fromkeys(text(row[key], "no region") for key in ("region_id", "last_region_id"))
    return (
        " and ".join(names) if row["regions_count"] <= len(names) else f"{int(row['regions_count'])} regions"
    )


def _move_or_switch(inputs: Inputs) -> list[Action]:
    """The same SKU cheaper in another region, or as spot, as far as this bill knows prices.

    SKUs that save too little for a line are summed by service without a line of their own: a bill may have many.
    """
    found = named_things(inputs, "cheaper")
    if not len(found):
        return []
    out = []
    by_sku: dict[tuple[str, ...], list[Any]] = {}
    named = found[found[["kind", *SKU]].notna().all(axis=1)]
    for names, row in zip(rows_of(named[["kind", *SKU]]), rows_of(named), strict=True):
        by_sku.setdefault(tuple(names), []).append(row)
    for names, ones in sorted(by_sku.items()):
        first = ones[0]
        one = _elsewhere(inputs, names, thing_name(first), ones)
        out.append(_summed(one, first.alike, float(first.alike_saves), one.owner) if first.alike else one)
    return out


_ALL_MOVED = ("all of it would have to move",)
_ALL_PAUSED = ("all of it would have to tolerate interruptions", "spot prices change")


def _elsewhere(inputs: Inputs, names: tuple[str, ...], product: str, rows: list[Any]) -> Action:
    """One SKU's move to its cheapest region, or to spot."""
    kind, provider, service, sku, unit = names
    currency = inputs.bill.currency
    doubts: tuple[str, ...]
    if kind == "move_region":
        here = ", ".join(f"{r.price:,.5g} in {r.region}" for r in rows)
        what, use_case, doubts = f"Move {product} to {rows[0].to_region}", "services_by_region", _ALL_MOVED
        why = f"{with_currency(f'{rows[0].there:,.5g}', currency)} {per_unit(unit)} there, {here}"
        why += "; its data must be able to move"
    else:
        shown = [
            f"{with_currency(f'{r.there:,.5g}', currency)} instead of {r.price:,.5g} in {r.region}"
            for r in rows
        ]
        what, use_case, doubts = f"Run {product} on spot where work may pause", "usage_and_rates", _ALL_PAUSED
        why = f"spot cost {', '.join(shown)} {per_unit(unit)} this month"
    places = (rows[0].to_region,) if kind == "move_region" else tuple(r.region for r in rows)
    return run_plan(inputs, Action(
        kind, what, why, math.fsum(r.saves for r in rows), main_owner(inputs, provider, service),
        _command(inputs, use_case), (provider, service), "at most",
        confidence(inputs, service=(provider, service), doubts=doubts), sku,
    ), text(rows[0].instance_type), places)  # fmt: skip


def _renew(inputs: Inputs) -> list[Action]:
    used = inputs.of_month(inputs.ask("commitment_utilisation")).set_index("commitment_id")
    out = []
    for row in undecided(inputs):
        name, key = _commitment_name(row), row["commitment_id"]
        saves, provider = None, ""
        if key in used.index:
            one = used.loc[key]
            provider = text(one["provider"])
            saving = net_saving(one)
            saves = None if math.isnan(saving) else saving
        if saves is not None and saves <= 0:
            continue
        out.append(Action(
            "renew", f"Decide on {name}{row['when']}", "its saving goes with it", saves,
            main_owner(inputs, provider, commitment=text(key)), _command(inputs, "commitment_breakdown"),
            basis="kept", sure=confidence(inputs) if saves is not None else Confidence(), thing=text(key),
        ))  # fmt: skip
    return out


def _goes_on(inputs: Inputs, one: Unusual) -> str:
    """What an excess that has not ended by the last known day costs a day."""
    if one.days < 2 or one.day + timedelta(days=one.days - 1) < inputs.last_day:
        return ""
    return f"; it continues at {money(one.excess / one.days, inputs.bill.currency)} a day"


def _unusual(inputs: Inputs) -> list[Action]:
    """Unusual days that no tagged run explains."""
    found = [one for one in unusual_days(inputs) if not one.run]
    sure = confidence(inputs, doubts=("the usual cost is estimated from the days around it",))
    return [
        Action("look_into", f"Look into {one.service} {'from' if one.days > 1 else 'on'} {one.day:%-d %B}",
               f"{one.product or one.service} in {one.region or 'no region'} cost more than the days around it"
               + _goes_on(inputs, one),
               one.excess, one.team or one.account,
               _command(inputs, "anomalies_service"), basis="once", sure=sure, thing=one.sku,
               same=f"{one.service} {one.sku} {one.day}")
        for one in found[:3]
    ]  # fmt: skip
