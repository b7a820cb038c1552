"""How do contracts and capacity reservations run?"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from planner.finops.frames import records_of
from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Section, Table
from planner.finops.review.parts import figure, money, percent, ratio, table, text
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.bought_ahead import Share

TITLE = "How do contracts and reservations run?"
TOP = 20
_BEHIND = 0.05  # of the commitment: own judgement; a smaller gap is not worth a sentence


@record(frozen=True)
class Drawdown:
    """A spend commitment by the month's end.

    Attributes:
        drawn: applied to it so far; `month`: in the month; None where no charge says how much.
        elapsed: share of its period that is over.
        landing: drawn by its end at the pace so far; None where that is not known.
        is_whole: whether the bill holds its period from the first day.
    """

    name: str
    key: str
    start: date
    end: date
    amount: float
    drawn: float | None
    month: float | None
    elapsed: float
    landing: float | None
    is_whole: bool

    @property
    def gap(self) -> float:
        """Committed and not drawn by the end, at this pace; 0 where the pace is not known."""
        return 0.0 if self.landing is None else max(0.0, self.amount - self.landing)


def build(inputs: Inputs) -> Section | None:
    """Drawdown with its pace, ends to come, use of reservations; None where the bill has neither."""
    rows = records_of(inputs.ask("contract_drawdown"))
    reserved = _reserved(inputs)
    is_reported = any(row["applied_cost"] == row["applied_cost"] for row in rows)
    found = _told_apart(
        [one for row in rows if (one := _drawdown(inputs, row, is_reported=is_reported)) is not None]
    )
    if not found and not reserved:
        return None
    used = math.fsum(_number(row["used_cost"]) for row in reserved)
    unused = math.fsum(_number(row["unused_cost"]) for row in reserved)
    figures = (
        figure(inputs, "contracts_gap_money", "Committed and not drawn at this pace",
               sum(one.gap for one in found) if any(one.landing is not None for one in found) else None, "money",
               lacking="the bill holds no spend commitment from its first day (dataset ContractCommitment) with what "
               "was applied to it (ContractCommitmentAppliedCost)"),
        figure(inputs, "reservations_use_ratio", "Use of capacity reservations", ratio(used, used + unused), "ratio",
               lacking="the month has no capacity reservation"),
    )  # fmt: skip
    tables = [one for one in (_contracts(found), _ends(inputs, rows), _reservations(reserved)) if one.rows]
    return Section("contracts", TITLE, _sentences(inputs, found, used, unused), figures, tuple(tables))


def _reserved(inputs: Inputs) -> list[dict[str, Any]]:
    """Reservations of the month, those whose cost is on a purchase divided by the hours that were used.

    What is used is not known where no purchase tells its hours.
    """
    month, out = f"{inputs.month:%Y-%m}", []
    parts: dict[tuple[str, ...], list[Share]] = defaultdict(list)
    for part in inputs.ahead():
        if part.month == month and not part.commitment:
            parts[part.provider, part.region, part.reservation].append(part)
    for row in records_of(inputs.ask("capacity_reservations")):
        own = parts.get(tuple(text(row[name]) for name in ("provider", "region_id", "reservation_id")), [])
        used = math.fsum(part.cost for part in own if part.state == "used")
        unused = math.fsum(part.cost for part in own if part.state != "used")
        if any(not part.is_measured and part.cost for part in own):
            used = unused = math.nan
        out.append(
            row
            | {"used_cost": float(row["used_cost"]) + used, "unused_cost": float(row["unused_cost"]) + unused}
        )
    return out


def _day(value: Any) -> date:
    return date.fromisoformat(str(value)[:10])


def _drawdown(inputs: Inputs, row: dict[str, Any], *, is_reported: bool) -> Drawdown | None:
    """A spend commitment, None of another row; `is_reported`: whether charges say how much of any is applied."""
    cost = row["commitment_cost"]
    if text(row["category"]) != "Spend" or cost is None or cost != cost or float(cost) <= 0:
        return None
    start, end = _day(row["period_start"]), _day(row["period_end"])
    elapsed = min(1.0, (min(inputs.end, end) - start).days / max((end - start).days, 1))
    is_named = row["first_charge"] == row["first_charge"] and row["first_charge"] is not None
    is_known = row["applied_cost"] == row["applied_cost"] if is_named else is_reported
    drawn = _number(row["applied_cost"]) if is_known else None
    first = inputs.use_days()[0] if inputs.use_days() else inputs.month
    name = text(row["commitment_name"]) or text(row["commitment_type"]) or text(row["commitment_id"])
    landing = None if drawn is None or not first <= start else drawn / elapsed if elapsed else 0.0
    return Drawdown(
        name, text(row["commitment_id"]), start, end, float(cost), drawn,
        None if drawn is None else _number(row["month_cost"]), elapsed, landing, first <= start,
    )  # fmt: skip


def _told_apart(drawdowns: list[Drawdown]) -> list[Drawdown]:
    """Contracts with what ends their ids in the names that several share; the whole id where that is shared too."""
    tails = {one.key: one.key.replace(":", "/").rstrip("/").rpartition("/")[2] for one in drawdowns}
    names, ends = Counter(one.name for one in drawdowns), Counter(tails.values())
    ids = {key: tail if ends[tail] == 1 else key for key, tail in tails.items()}
    return [
        replace(one, name=f"{one.name} ({ids[one.key]})") if names[one.name] > 1 else one for one in drawdowns
    ]


def _number(value: Any) -> float:
    return 0.0 if value is None or value != value else float(value)


def _contracts(drawdowns: list[Drawdown]) -> Table:
    rows = [
        (one.name, one.amount, one.drawn, None if one.drawn is None else ratio(one.drawn, one.amount), one.elapsed,
         one.month, one.landing, one.end.isoformat(), _remark(one), one.key)
        for one in sorted(drawdowns, key=lambda one: (-one.amount, one.key))[:TOP]
    ]  # fmt: skip
    return table(
        "contracts", "Spend commitments", [("name", "Contract", "text"), ("amount", "Committed", "money"),
        ("drawn", "Drawn", "money"), ("drawn_ratio", "Drawn", "ratio"), ("elapsed_ratio", "Time over", "ratio"),
        ("month", "This month", "money"), ("landing", "At this pace", "money"), ("end", "Ends", "date"),
        ("remark", "Remark", "text", "below"), ("id", "Id", "text", "data")], rows,
    )  # fmt: skip


def _remark(one: Drawdown) -> str:
    if one.drawn is None:
        return "charges do not say how much of them is applied to it (ContractCommitmentAppliedCost)"
    return "" if one.is_whole else "the bill begins after it: drawn before is not known"


def _ends(inputs: Inputs, rows: list[dict[str, Any]]) -> Table:
    """All commitments by their end, the next ones first; those that differ in their ids alone as one."""
    alike: dict[tuple[str, str, str, int], list[float]] = defaultdict(list)
    for row in rows:
        end = _day(row["period_end"])
        name = text(row["commitment_name"]) or text(row["commitment_id"])
        key = (end.isoformat(), name, text(row["commitment_type"]), (end - inputs.end).days)
        alike[key].append(_number(row["commitment_cost"]))
    ends = [(*key[:3], len(costs), math.fsum(costs) or None, key[3]) for key, costs in sorted(alike.items())]
    place = "cell" if len(rows) > len(alike) else "data"
    columns: list[Any] = [
        *(("end", "Ends", "date"), ("name", "Commitment", "text"), ("type", "Type", "text")),
        *(("count", "Number", "count", place), ("cost", "Committed", "money"), ("days", "In days", "days")),
    ]
    left = sum(one[3] for one in ends[TOP:])
    note = f"{left:,} later ones are not listed." if left else ""
    return table("contract_ends", "Ends to come", columns, ends[:TOP], note)


def _reservations(rows: list[dict[str, Any]]) -> Table:
    reservations = [
        (text(row["reservation_id"]), text(row["provider"]), text(row["region_id"]), float(row["used_cost"]),
         float(row["unused_cost"]), ratio(float(row["used_cost"]), float(row["used_cost"]) + float(row["unused_cost"])))
        for row in rows
    ]  # fmt: skip
    reservations.sort(key=lambda row: (-_number(row[4]), row[0]))
    return table(
        "reservations",
        "Capacity reservations and blocks",
        [
            ("id", "Reservation", "text"),
            ("provider", "Provider", "text"),
            ("region", "Region", "text"),
            ("used", "Used", "money"),
            ("unused", "Unused", "money"),
            ("use", "Use", "ratio"),
        ],
        reservations[:TOP],
        f"{len(reservations) - TOP:,} with less unused cost are not listed."
        if len(reservations) > TOP
        else "",
    )


def _sentences(inputs: Inputs, drawdowns: list[Drawdown], used: float, unused: float) -> tuple[str, ...]:
    currency, said = inputs.bill.currency, []
    for one in sorted(drawdowns, key=lambda one: -one.gap)[:2]:
        time = f"{percent(one.elapsed)} of its time is over"
        if one.drawn is None:
            said.append(
                f"{one.name}: {time}; how much of {money(one.amount, currency)} is drawn is not known, since charges "
                "do not say what of them is applied to it."
            )
            continue
        drawn = f"{percent(ratio(one.drawn, one.amount))} of {money(one.amount, currency)} is drawn, {time}"
        if not one.is_whole:
            said.append(f"{one.name}: {drawn}; the bill begins after it, so that its pace is not known.")
        elif one.gap > _BEHIND * one.amount:
            said.append(
                f"{one.name}: {drawn}; at this pace {money(one.gap, currency)} is not drawn by {one.end}."
            )
        else:
            said.append(f"{one.name}: {drawn}.")
    if used + unused:
        use = percent(ratio(used, used + unused))
        rest = f"; {money(unused, currency)} of them was not" if unused else ""
        said.append(f"Capacity reservations were used to {use}{rest}.")
    return tuple(said)
