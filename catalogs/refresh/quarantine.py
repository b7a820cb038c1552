"""New prices against the last accepted ones: what moved too far waits until a person confirms it.

A quote in quarantine is stored with its reason and is no candidate. Where the offer had an accepted price, that one
stays in use with its own date; else the offer itself is flagged.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalogs.offers.flags import join_flags, split_flags
from catalogs.offers.suspicion import (
    AT_LIMIT,
    CONFIRMED,
    FAR,
    QUARANTINED,
    WAITING_FLAGS,
    Key,
    Row,
    flag_suspicious,
    key_of,
    price_of,
)
from catalogs.tables.model import PurchaseOption, offer_id

KEPT = "price_kept"
# A move by these factors is looked at; listed prices move rarely, so a smaller move of theirs is too.
_FACTOR = 2.0
_LISTED_FACTOR = 1.6
_LISTED = frozenset({PurchaseOption.ON_DEMAND.value})
_LIST_FACTOR = 2.0  # the middle of a whole list
_LEAST_OF_A_LIST = 3
_ROUNDING = 1e-4  # prices are rounded: half of one is not always half to the last digit


@dataclass(frozen=True)
class Waiting:
    """A quote in quarantine.

    Attributes:
        row: the offer as it was quoted.
        reason: why it waits, in words.
        accepted_price_per_hour: the price in use instead, "" where there is none.
        accepted_as_of: date of that price.
    """

    row: Mapping[str, str]
    reason: str
    accepted_price_per_hour: str = ""
    accepted_as_of: str = ""

    @property
    def offer_id(self) -> str:
        """The offer's id."""
        return offer_id(key_of(self.row))

    def values(self) -> dict[str, Any]:
        """Plain values for a manifest."""
        return {
            "row": dict(self.row),
            "reason": self.reason,
            "accepted_price_per_hour": self.accepted_price_per_hour,
            "accepted_as_of": self.accepted_as_of,
        }


def set_aside(
    new: Sequence[Row], old: Sequence[Row], refused: Sequence[Row] = ()
) -> tuple[list[dict[str, str]], tuple[Waiting, ...]]:
    """Separate new quotes that moved too far.

    Args:
        new: checked offers of a refresh.
        old: offers in use before it.
        refused: offers of the refresh that the checks refused; what was accepted of them before stays in use.

    Returns:
        The offers to store, one per offer of `new`, and the quotes that wait.
    """
    accepted = {key_of(row): row for row in old if not WAITING_FLAGS & set(split_flags(row.get("flags", "")))}
    carried = [_with_confirmation(row, accepted.get(key_of(row))) for row in new]
    reasons = _moved_lists(carried, accepted) | _moved_rows(carried, accepted)
    stored: list[dict[str, str]] = []
    waiting: list[Waiting] = []
    for row in flag_suspicious(carried):
        key = key_of(row)
        flags = split_flags(row["flags"])
        reason = reasons.get(key) or _own_reason(flags)
        if not reason:
            stored.append(row)
            continue
        last = accepted.get(key)
        quote = {**row, "flags": join_flags(tuple(flag for flag in flags if flag not in WAITING_FLAGS))}
        if last is None:
            mark = () if WAITING_FLAGS & set(flags) else (QUARANTINED,)
            stored.append({**row, "flags": join_flags((*flags, *mark))})
            waiting.append(Waiting(quote, reason))
        else:
            stored.append(_kept(last))
            waiting.append(Waiting(quote, reason, last["price_per_hour"], last["as_of"]))
    for bad in refused:
        last = accepted.get(key_of(bad))
        if last is not None:
            stored.append(_kept(last))
            reason = "refused by the checks of every refresh"
            waiting.append(Waiting(bad, reason, last["price_per_hour"], last["as_of"]))
    return stored, tuple(waiting)


def _kept(last: Row) -> dict[str, str]:
    return {**last, "flags": join_flags((*split_flags(last.get("flags", "")), KEPT))}


def _with_confirmation(row: Row, last: Row | None) -> dict[str, str]:
    """Carry a person's confirmation on to a price that hardly moved since."""
    flags = split_flags(row.get("flags", ""))
    if (
        last is not None
        and CONFIRMED in split_flags(last.get("flags", ""))
        and not _is_far(_move(row, last), _FACTOR)
    ):
        flags = (*flags, CONFIRMED)
    return {**row, "flags": join_flags(flags)}


def _own_reason(flags: Iterable[str]) -> str:
    reasons = {
        AT_LIMIT: "at the lowest share of on-demand that its source can show",
        FAR: "far from the same machine in other regions",
    }
    return next((text for flag, text in reasons.items() if flag in flags), "")


def _moved_rows(new: Iterable[Row], accepted: Mapping[Key, Row]) -> dict[Key, str]:
    """Offers that moved by the factor of their kind against their own last accepted price."""
    reasons = {}
    for row in new:
        last = accepted.get(key_of(row))
        if last is None:
            continue
        move = _move(row, last)
        factor = _LISTED_FACTOR if row["purchase_option"] in _LISTED else _FACTOR
        if _is_far(move, factor):
            reasons[key_of(row)] = f"{move:.3g} times the last accepted price of {last['as_of']}"
    return reasons


def _moved_lists(new: Sequence[Row], accepted: Mapping[Key, Row]) -> dict[Key, str]:
    """Every offer of a purchase option whose prices moved together, those without an earlier price too."""
    lists: dict[str, list[Row]] = defaultdict(list)
    for row in new:
        lists[row["purchase_option"]].append(row)
    reasons: dict[Key, str] = {}
    for option, rows in lists.items():
        moves = [_move(row, accepted[key_of(row)]) for row in rows if key_of(row) in accepted]
        moves = [move for move in moves if move == move]
        if len(moves) < _LEAST_OF_A_LIST:
            continue
        middle = statistics.median(moves)
        if _is_far(middle, _LIST_FACTOR):
            reason = f"the whole list of {option} prices moved: {middle:.3g} times the last accepted ones"
            reasons |= dict.fromkeys((key_of(row) for row in rows), reason)
    return reasons


def _move(row: Row, last: Row) -> float:
    """New price over the last; NaN where they cannot be compared.

    A derived price is no evidence against an observed one, and currencies are compared by nobody here.
    """
    if row.get("currency") != last.get("currency"):
        return float("nan")
    if last.get("basis") == "derived" and row.get("basis") != "derived":
        return float("nan")
    before = price_of(last)
    return price_of(row) / before if before > 0 else float("nan")


def _is_far(move: float, factor: float) -> bool:
    return move <= (1 + _ROUNDING) / factor or move >= (1 - _ROUNDING) * factor
