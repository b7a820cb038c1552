"""Why did cost change, and what moved most?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.finops.bridge import Bridge, sum_bridge
from planner.finops.frames import rows_of
from planner.finops.provider_days import UNNAMED
from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.model import Chart, Section
from planner.finops.review.parts import (
    and_words,
    figure,
    money,
    nothing,
    percent,
    signed_percent,
    table,
    text,
    thing_name,
    withheld,
)
from planner.finops.review.sections.ahead import bought_words
from planner.finops.review.sections.things import TOP, named_things, things
from planner.finops.review.sections.turned_commitments import turned_words
from planner.records import record
from planner.render.currency import with_currency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TITLE = "Why did cost change?"
MOVERS_TITLE = "What moved most?"
MOVED_RATIO = 0.5  # of a change of quantity that must appear elsewhere to be called a move
LEAST_MOVE_RATIO = 0.1  # of the thing's own quantity
LABELS = {"price": "Price", "volume": "Volume", "mix": "Mix", "new": "New", "retired": "Retired",
           "other": "Credits, fees and rest"}  # fmt: skip
_SAID = {"price": ("higher prices", "lower prices"), "volume": ("more use", "less use"),
         "mix": ("a more expensive mix", "a cheaper mix"), "new": ("new things", "new things"),
         "retired": ("things that ended", "things that ended"),
         "other": ("credits, refunds, fees and corrections",) * 2}  # fmt: skip
_UNKNOWN = "(none)"
_SKU = ("sku_id", "provider", "pricing_unit")
_SAME_RATE = 1e-6  # mean rates of two months that differ by less are one rate, rounded


@record(frozen=True, eq=False)
class Split:
    """The change of everything bought; `changes` has the rows of `things/queries/changes.sql`."""

    changes: Any
    bridge: Bridge


def split(inputs: Inputs) -> Split:
    """Ask for the change and its parts; worked out once."""
    if "split" not in inputs.answers:
        changes = things(inputs, "changes")
        if inputs.left_out:
            changes = changes[~changes["provider"].fillna(UNNAMED).isin(inputs.left_out)]
        groups = {
            str(name): changes[name].to_numpy(dtype=float) for name in changes.select_dtypes("number").columns
        }
        inputs.answers["split"] = Split(changes, sum_bridge(groups))
    split: Split = inputs.answers["split"]
    return split


def build(inputs: Inputs) -> Section:
    """The bridge from the month before to the month."""
    if inputs.before is None:
        return nothing(
            "bridge", TITLE, f"The bill has no month before {month_name(inputs.month)} to compare with."
        )
    parts = split(inputs)
    bridge = parts.bridge
    figures = [
        figure(inputs, "bridge_before_money", month_name(inputs.before), bridge.before, "money"),
        figure(inputs, "bridge_after_money", month_name(inputs.month), bridge.after, "money"),
        figure(inputs, "bridge_change_money", "Change", bridge.change, "money"),
        *(
            figure(inputs, f"bridge_{name}_money", LABELS[name], value, "money")
            for name, value in bridge.steps
        ),
    ]
    if any(f.status == "withheld" for f in figures):
        return withheld("bridge", TITLE, figures[0].reason)
    status, reason = inputs.gate.status("bridge_change_money")
    chart = Chart(
        "bridge", f"From {month_name(inputs.before)} to {month_name(inputs.month)}", "bridge",
        (month_name(inputs.before), *(LABELS[name] for name, _ in bridge.steps), month_name(inputs.month)),
        (("cost", (bridge.before, *(value for _, value in bridge.steps), bridge.after)),), "money",
        _sentence(inputs, bridge), drawn_only=True,
    )  # fmt: skip
    said = (
        _sentence(inputs, bridge),
        turned_words(inputs),
        bought_words(inputs),
        _left_out(inputs),
        _costless(inputs),
        _gaps(inputs),
    )
    sentences = (" ".join(filter(None, said)),)
    return Section(
        "bridge", TITLE, sentences, tuple(figures), (_by_service(parts),), (chart,), status, reason
    )


def _left_out(inputs: Inputs) -> str:
    """What the comparison does not have."""
    if not inputs.left_out:
        return ""
    words = "; ".join(one.words for one in inputs.gate.left_out)
    verb = "is" if len(inputs.left_out) == 1 else "are"
    return f"{and_words(inputs.left_out)} {verb} left out of both months: {words}."


def _costless(inputs: Inputs) -> str:
    """Rows whose quantity has no part in prices and volumes, since nobody knows what it cost."""
    gates = [gate for gate in (inputs.gate, inputs.gate.before) if gate is not None]
    why = [
        f"{gate.month:%B %Y}: {check.reason}"
        for gate in gates
        for check in gate.failed(frozenset({"unknown_cost"}))
    ]
    return f"Quantities without a cost are in no price and no volume ({'; '.join(why)})." if why else ""


def _gaps(inputs: Inputs) -> str:
    """That days of a billing account are not there, which look like a change."""
    gaps = inputs.account_gaps()
    return f"With care, since a missing file looks like new, ended or less use: {gaps}." if gaps else ""


def _sentence(inputs: Inputs, bridge: Bridge) -> str:
    ranked = sorted(bridge.steps, key=lambda step: -abs(step[1]))
    shown = [
        f"{_said(inputs, name, value)} ({value:+,.0f})" for name, value in ranked if abs(value) >= 0.005
    ][:3]
    size = (
        f" ({signed_percent(bridge.change / bridge.before)})"
        if bridge.before > 0 and bridge.after >= 0
        else ""
    )
    assert inputs.before is not None
    if not shown:
        return f"Cost is the same as in {month_name(inputs.before)}."
    verb = "rose" if bridge.change >= 0 else "fell"
    changed = money(abs(bridge.change), inputs.bill.currency)
    return f"Cost {verb} by {changed}{size}: {', '.join(shown)}."


def _said(inputs: Inputs, name: str, value: float) -> str:
    """What an effect is in words; prices of other currencies also change with their rates."""
    words = _SAID[name][value < 0]
    return f"{words} or exchange rates" if name == "price" and _rates_moved(inputs) else words


def _rates_moved(inputs: Inputs) -> bool:
    """Whether a currency was put into the bill's at another rate than in the month before."""
    together = inputs.bill.consolidated
    months = (
        {}
        if together is None
        else {(month, own): here / there for month, own, there, here in together.months if there}
    )
    before = {own: rate for (month, own), rate in months.items() if month == inputs.before}
    now = {own: rate for (month, own), rate in months.items() if month == inputs.month}
    return any(
        abs(now[own] - before[own]) > _SAME_RATE * abs(before[own]) for own in now.keys() & before.keys()
    )


def _by_service(parts: Split) -> Any:
    data = parts.changes.assign(new_less_retired=parts.changes["new_cost"] + parts.changes["retired_cost"])
    names = {"cost_before": "before", "cost_after": "after", "price": "price", "volume": "volume",
             "new_less_retired": "new", "other_cost": "other"}  # fmt: skip
    data = data[["provider", "service", *names]].rename(columns=names)
    sums = data.groupby(["provider", "service"], dropna=False).sum().reset_index()
    labels = zip(sums.pop("service"), sums.pop("provider"), strict=True)
    sums["service"] = [f"{text(s, _UNKNOWN)} ({text(p, _UNKNOWN)})" for s, p in labels]
    sums = sums.groupby("service").sum().reset_index()
    sums["change"] = sums["after"] - sums["before"]
    sums = sums.reindex(sums["change"].abs().sort_values(ascending=False, kind="stable").index)
    rows = [
        (r.service, r.after, r.change, r.price, r.volume, r.new, r.other)
        for r in rows_of(sums[sums["change"].abs() >= 0.005].head(2 * TOP))
    ]
    left = int((sums["change"].abs() >= 0.005).sum()) - len(rows)
    note = "Volume here includes mix." + (
        f" {left:,} services with smaller changes are not listed." if left > 0 else ""
    )
    columns: list[Any] = [("service", "Service", "text"), ("cost", "Cost", "money")]
    columns += [(k, k.capitalize(), "money") for k in ("change", "price", "volume")]
    columns += [("new_less_retired", "New, gone", "money"), ("other", "Other", "money")]
    return table("bridge_services", "By service", columns, rows, note)


def build_movers(inputs: Inputs) -> Section:
    """The things whose cost changed most, each with the reason."""
    if inputs.before is None:
        return nothing("movers", MOVERS_TITLE, f"The bill has no month before {month_name(inputs.month)}.")
    parts = split(inputs)
    status, reason = inputs.gate.status("movers")
    if status == "withheld":
        return withheld("movers", MOVERS_TITLE, reason)
    frame = named_things(inputs, "movers")
    frame = frame.reindex(frame["change"].abs().sort_values(ascending=False, kind="stable").index)
    use: dict[tuple[Any, ...], list[Any]] = {}
    for one in rows_of(things(inputs, "movers_use", top=TOP)):
        use.setdefault(tuple(getattr(one, name) for name in _SKU), []).append(one)
    rows = [_mover(row, use) for row in rows_of(frame) if abs(row.change) >= 0.005]
    columns: list[Any] = [
        ("product", "Product", "text"), ("service", "Service", "text"), ("provider", "Provider", "text", "data"),
        ("region", "Region", "text"), ("option", "Priced", "text"), ("before", "Before", "money"),
        ("after", "After", "money"), ("change", "Change", "money"), ("price", "Price effect", "money"),
        ("volume", "Volume effect", "money"), ("reason", "Reason", "text"), ("sku", "SKU", "text", "data"),
    ]  # fmt: skip
    moved = with_currency(f"{rows[0][7]:+,.0f}", inputs.bill.currency) if rows else ""
    chart = Chart(
        "movers", "Change by product, region and pricing", "bars",
        tuple(", ".join(str(part) for part in (row[0], *row[3:5]) if part) for row in rows),
        (("change", tuple(row[7] for row in rows)),), "money",
        f"{rows[0][0]} of {rows[0][1]} moved most: {moved}." if rows else "Nothing moved.", drawn_only=True,
    )  # fmt: skip
    share = float(frame["change"].abs().sum() / max(float(parts.changes["moved_cost"].sum()), 1e-12))
    largest = "largest change makes" if len(rows) == 1 else f"{len(rows)} largest changes make"
    said = f"The {largest} up {percent(share, 0)} of all change." if rows else "Nothing moved."
    said = " ".join(filter(None, (said, _left_out(inputs))))
    movers = table("movers", "Top movers", columns, rows)
    return Section("movers", MOVERS_TITLE, (said,), (), (movers,), (chart,) if rows else (), status, reason)


def _mover(row: Any, use: Mapping[tuple[Any, ...], Sequence[Any]]) -> tuple[Any, ...]:
    return (
        thing_name(row), text(row.service, _UNKNOWN), text(row.provider, _UNKNOWN), text(row.region_id),
        text(row.pricing_category), float(row.effective_cost_before), float(row.effective_cost), float(row.change),
        float(row.price), float(row.volume), reason_of(row) + _moved(row, use), text(row.sku_id),
    )  # fmt: skip


def _moved(row: Any, use: Mapping[tuple[Any, ...], Sequence[Any]]) -> str:
    """Where a thing's quantity came from or went to: the same SKU elsewhere, or priced otherwise, by about as much.

    Args:
        row: the thing.
        use: all use of its SKU, and of others, by the columns `_SKU`.
    """
    names = tuple(getattr(row, name) for name in _SKU)
    if row.charge_kind != "use" or not text(row.sku_id) or not all(isinstance(name, str) for name in names):
        return ""
    mine = float(row.quantity - row.quantity_before)
    # as much must have appeared as went, and enough of it to be no chance
    least, most = MOVED_RATIO * abs(mine), abs(mine) / MOVED_RATIO
    against = [(-(one.quantity - one.quantity_before) * np.sign(mine), one) for one in use.get(names, ())]
    alike = [(amount, one) for amount, one in against if least <= amount <= most]
    moves = abs(mine) >= LEAST_MOVE_RATIO * max(float(row.quantity), float(row.quantity_before)) and mine != 0
    if not moves or not alike:
        return ""
    _, other = max(alike, key=lambda each: each[0])
    place = text(other.region_id) if text(other.region_id) != text(row.region_id) else ""
    priced = (
        text(other.pricing_category) if text(other.pricing_category) != text(row.pricing_category) else ""
    )
    return f"; moved {'from' if mine > 0 else 'to'} {' '.join(part for part in (place, priced) if part)}"


def reason_of(row: Any) -> str:
    """Why one thing's cost changed, in a few words."""
    unit = text(row.pricing_unit)
    q0, q1 = float(row.quantity_before), float(row.quantity)
    if row.effect == "new":
        return f"new: {q1:,.6g} {unit}"
    if row.effect == "retired":
        return f"gone: {q0:,.6g} {unit} before"
    if row.effect == "other":
        kind = text(row.charge_kind)
        if kind == "Correction":
            return "corrections of closed months"
        is_refund = min(float(row.effective_cost_before), float(row.effective_cost)) < 0
        if is_refund and kind == "use":
            return "refunds"
        if kind != "use":
            return f"{kind.lower()}s" if kind else "charges without a category"
        is_both = q0 and q1
        return "quantity and price changed out of all proportion" if is_both else "charges without a quantity"
    volume = f"{'more' if q1 >= q0 else 'less'} volume ({signed_percent(q1 / q0 - 1)})"
    p0, p1 = float(row.effective_cost_before) / q0, float(row.effective_cost) / q1
    size = f" ({signed_percent(p1 / p0 - 1)})" if p0 else ""
    price = f"{'higher' if p1 >= p0 else 'lower'} price{size}"
    parts = [(abs(row.volume), volume), (abs(row.price), price)]
    parts.sort(key=lambda part: -part[0])
    small = parts[1][0] < 0.05 * max(parts[0][0], 1e-12)
    return parts[0][1] if small else f"{parts[0][1]}, {parts[1][1]}"
