"""Commitments that ended or began in or between two compared months: their use changes its price, not its amount."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from planner.finops.frames import records_of
from planner.finops.provider_days import UNNAMED
from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.parts import and_words, money, text
from planner.finops.review.sections.things import least_amount

_NAMED = 3
# last days whose charges may come later (docs/finops/forecast.md: 98 % of a day's cost is there after three)
_LATE_DAYS = 3


def expiries(inputs: Inputs) -> list[dict[str, Any]]:
    """Commitments that ended in the month or end soon: of the ContractCommitment dataset, else by their purchase."""
    import pandas as pd

    frames = [frame for kpi in ("commitment_expiries", "commitment_terms") if len(frame := inputs.ask(kpi))]
    if not frames:
        return []
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.drop_duplicates("commitment_id").sort_values(["period_end", "commitment_id"])
    return records_of(frame)


def last_day_of(row: dict[str, Any], end: str = "period_end") -> date:
    """The last day that a period has, which ends at or within it."""
    moment = datetime.fromisoformat(str(row[end])[:19])
    return (moment - timedelta(seconds=1)).date()


def ended_within(inputs: Inputs) -> dict[Any, str]:
    """How each commitment ended that ended within the month, the dearest first: by its term, else as its charges end.

    Charges of a provider that lacks days of the month say nothing. One that is charged after its term was renewed.
    """
    ends = {row["commitment_id"]: last_day_of(row) for row in expiries(inputs)}
    late = inputs.last_day - timedelta(days=_LATE_DAYS)
    lacking = {one.provider for one in inputs.gate.providers if one.missing}
    out = {}
    for row in sorted(
        records_of(_costly(inputs)[1]), key=lambda row: (-row["cost"], str(row["commitment_id"]))
    ):
        key, end = row["commitment_id"], ends.get(row["commitment_id"])
        last = last_day_of(row, "last_end") if str(row["last_end"])[:1].isdigit() else None
        if end is not None:
            if end < inputs.last_day and (last is None or last <= end):
                out[key] = f"ended on {end:%-d %B}"
        elif (text(row["provider"]) or UNNAMED) in lacking or row["cost"] < least_amount(inputs):
            continue
        elif last is not None and last < late:
            out[key] = f"has no charge after {last:%-d %B}"
    return out


def undecided(inputs: Inputs) -> list[dict[str, Any]]:
    """Commitments that end soon, or ended where none of their provider has begun, each with a `when`."""
    there, here = _costly(inputs)
    begun = _only(here, there)["provider"].tolist()
    ended = ended_within(inputs)
    out = [
        row | {"when": f" before {str(row['period_end'])[:10]}"}
        for row in expiries(inputs)
        if last_day_of(row) >= inputs.last_day
    ]
    gone = [row for row in records_of(here) if row["commitment_id"] in ended and row["provider"] not in begun]
    return [*out, *(row | {"when": f", which {ended[row['commitment_id']]}"} for row in gone)]


def ended_words(inputs: Inputs) -> str:
    """Which commitments ended within the month; else empty."""
    there, here = _costly(inputs)
    ended = ended_within(inputs)
    rows = {row["commitment_id"]: row for row in records_of(here)}
    said = [f"{_name(rows[key])} {how}" for key, how in ended.items()]
    if not said:
        return ""
    more = [f"{len(said) - _NAMED} more did so too"] if len(said) > _NAMED else []
    begun = _only(here, there)
    begun = begun[begun["provider"].isin([rows[key]["provider"] for key in ended])]
    names = _named(inputs, begun, month_name(inputs.month))
    but = f", where {names} does not cover it" if names else ""
    use = "its use" if len(said) == 1 else "their use"
    return (
        f"{and_words([*said[:_NAMED], *more])}: what goes on of {use} costs the price without a commitment since "
        f"then{but}."
    )


def _costly(inputs: Inputs) -> tuple[Any, Any]:
    """The commitments that cost something, in the month before and in the month."""
    frame = inputs.ask("commitment_utilisation")
    frame = frame.assign(cost=frame["used_cost"] + frame["unused_cost"])
    frame = frame[frame["cost"] > 0]
    return inputs.of_month(frame, inputs.before), inputs.of_month(frame)


def _only(rows: Any, others: Any) -> Any:
    """Rows whose commitments the others lack."""
    return rows[~rows["commitment_id"].isin(others["commitment_id"])]


def turned_words(inputs: Inputs) -> str:
    """Which commitments ended or began between the months, and where a bridge has what they cover; else empty."""
    if inputs.before is None:
        return ""
    there, here = (
        frame[~frame["provider"].fillna(UNNAMED).isin(inputs.left_out)] for frame in _costly(inputs)
    )
    before, now = month_name(inputs.before), month_name(inputs.month)
    ended = _named(inputs, _only(there, here), before)
    begun = _named(inputs, _only(here, there), now)
    turned = [
        f"{names} {how}"
        for names, how in ((ended, f"ended by {now}"), (begun, f"began after {before}"))
        if names
    ]
    if not turned:
        return ""
    return (
        f"Of commitments, {' and '.join(turned)}: use that only one of the months covers has another price in it, "
        "which counts as mix or, where the SKU is another, as things that ended and new things."
    )


def _named(inputs: Inputs, rows: Any, month: str) -> str:
    """`sp-1 of AWS (98,280 USD in July 2026)`: the dearest of those that are worth a line."""
    found = [row for row in records_of(rows) if row["cost"] >= least_amount(inputs)]
    found.sort(key=lambda row: (-row["cost"], str(row["commitment_id"])))
    named = [
        f"{_name(row)} ({money(row['cost'], inputs.bill.currency)} in {month})" for row in found[:_NAMED]
    ]
    more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
    return and_words([*named, *more]) if named else ""


def _name(row: dict[str, Any]) -> str:
    return (
        f"{text(row['commitment_name']) or text(row['commitment_id'])} of {text(row['provider']) or UNNAMED}"
    )
