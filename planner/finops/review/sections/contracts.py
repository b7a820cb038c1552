"""How do contracts and capacity reservations run?"""

from __future__ import annotations

from datetime import date
from typing import Any

from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Section, Table
from planner.finops.review.parts import figure, money, percent, ratio, table, text
from planner.records import record

TITLE = "How do contracts and reservations run?"
TOP = 20
_BEHIND = 0.05  # of the commitment: own judgement; a smaller gap is not worth a sentence


@record(frozen=True)
class Drawdown:
    """A spend commitment by the month's end.

    Attributes:
        drawn: applied to it so far; `month`: in the month.
        elapsed: share of its period that is over.
        landing: drawn by its end at the pace so far.
        is_whole: whether the bill holds its period from the first day.
    """

    name: str
    key: str
    start: date
    end: date
    amount: float
    drawn: float
    month: float
    elapsed: float
    landing: float
    is_whole: bool

    @property
    def gap(self) -> float:
        """Committed and not drawn by the end, at this pace; 0 where the pace is not known."""
        return max(0.0, self.amount - self.landing) if self.is_whole else 0.0


def build(inputs: Inputs) -> Section | None:
    """Drawdown with its pace, ends to come, use of reservations; None where the bill has neither."""
    rows = inputs.ask("contract_drawdown").to_dict("records")
    reserved = inputs.ask("capacity_reservations").to_dict("records")
    found = [one for row in rows if (one := _drawdown(inputs, row)) is not None]
    if not found and not reserved:
        return None
    used = sum(float(row["used_cost"]) for row in reserved)
    unused = sum(float(row["unused_cost"]) for row in reserved)
    figures = (
        figure(inputs, "contracts_gap_money", "Committed and not drawn at this pace",
               sum(one.gap for one in found) if any(one.is_whole for one in found) else None, "money",
               lacking="the bill holds no spend commitment from its first day (dataset ContractCommitment)"),
        figure(inputs, "reservations_use_ratio", "Use of capacity reservations", ratio(used, used + unused), "ratio",
               lacking="the month has no capacity reservation"),
    )  # fmt: skip
    tables = [one for one in (_contracts(found), _ends(inputs, rows), _reservations(reserved)) if one.rows]
    return Section("contracts", TITLE, _sentences(inputs, found, used, unused), figures, tuple(tables))


def _day(value: Any) -> date:
    return date.fromisoformat(str(value)[:10])


def _drawdown(inputs: Inputs, row: dict[str, Any]) -> Drawdown | None:
    cost = row["commitment_cost"]
    if text(row["category"]) != "Spend" or cost is None or cost != cost or float(cost) <= 0:
        return None
    start, end = _day(row["period_start"]), _day(row["period_end"])
    elapsed = min(1.0, (min(inputs.end, end) - start).days / max((end - start).days, 1))
    drawn = _number(row["applied_cost"])
    first = inputs.use_days()[0] if inputs.use_days() else inputs.month
    name = text(row["commitment_name"]) or text(row["commitment_type"]) or text(row["commitment_id"])
    return Drawdown(
        name, text(row["commitment_id"]), start, end, float(cost), drawn, _number(row["month_cost"]), elapsed,
        drawn / elapsed if elapsed else 0.0, first <= start,
    )  # fmt: skip


def _number(value: Any) -> float:
    return 0.0 if value is None or value != value else float(value)


def _contracts(drawdowns: list[Drawdown]) -> Table:
    rows = [
        (one.name, one.amount, one.drawn, ratio(one.drawn, one.amount), one.elapsed, one.month,
         one.landing if one.is_whole else None, one.end.isoformat(),
         "" if one.is_whole else "the bill begins after it: drawn before is not known", one.key)
        for one in sorted(drawdowns, key=lambda one: (-one.amount, one.key))[:TOP]
    ]  # fmt: skip
    return table(
        "contracts", "Spend commitments", [("name", "Contract", "text"), ("amount", "Committed", "money"),
        ("drawn", "Drawn", "money"), ("drawn_ratio", "Drawn", "ratio"), ("elapsed_ratio", "Time over", "ratio"),
        ("month", "This month", "money"), ("landing", "At this pace", "money"), ("end", "Ends", "date"),
        ("remark", "Remark", "text", "below"), ("id", "Id", "text", "data")], rows,
    )  # fmt: skip


def _ends(inputs: Inputs, rows: list[dict[str, Any]]) -> Table:
    """All commitments by their end, the next ones first."""
    ends = sorted(
        (_day(row["period_end"]).isoformat(), text(row["commitment_name"]) or text(row["commitment_id"]),
         text(row["commitment_type"]), _number(row["commitment_cost"]) or None,
         (_day(row["period_end"]) - inputs.end).days)
        for row in rows
    )  # fmt: skip
    return table(
        "contract_ends", "Ends to come", [("end", "Ends", "date"), ("name", "Commitment", "text"),
        ("type", "Type", "text"),
        ("cost", "Committed", "money"), ("days", "In days", "days")], ends[:TOP],
        f"{len(ends) - TOP} later ones are left out." if len(ends) > TOP else "",
    )  # fmt: skip


def _reservations(rows: list[dict[str, Any]]) -> Table:
    reservations = [
        (text(row["reservation_id"]), text(row["provider"]), text(row["region_id"]), float(row["used_cost"]),
         float(row["unused_cost"]), ratio(float(row["used_cost"]), float(row["used_cost"]) + float(row["unused_cost"])))
        for row in rows
    ]  # fmt: skip
    reservations.sort(key=lambda row: (-row[4], row[0]))
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
        f"{len(reservations) - TOP} with less unused cost are left out." if len(reservations) > TOP else "",
    )


def _sentences(inputs: Inputs, drawdowns: list[Drawdown], used: float, unused: float) -> tuple[str, ...]:
    currency, said = inputs.bill.currency, []
    for one in sorted(drawdowns, key=lambda one: -one.gap)[:2]:
        drawn = f"{percent(ratio(one.drawn, one.amount))} of {money(one.amount, currency)} is drawn"
        drawn += f", {percent(one.elapsed)} of its time is over"
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
        said.append(f"Capacity reservations were used to {use}; {money(unused, currency)} of them was not.")
    return tuple(said)
