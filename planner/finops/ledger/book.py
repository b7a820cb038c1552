"""The ledger: accepted actions in a JSON file that only its owner may read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from planner.errors import InputError, shortened
from planner.files import write_atomically
from planner.inputs.faults import near
from planner.inputs.load import decode, read_limited
from planner.records import record

VERSION = 1
_MAX_BYTES = 16 << 20
_MODE = 0o600  # it holds costs


@record(frozen=True)
class Mix:
    """A part of the use that an action changes, in the month in which it was accepted.

    Attributes:
        share: of the quantity (or of the cost, where nothing is counted).
        price: money per pricing unit.
    """

    region: str
    pricing: str
    share: float
    price: float


@record(frozen=True)
class Entry:
    """One accepted action.

    Attributes:
        id: of the action, stable over months.
        kind, what, owner: of the action.
        accepted: month of the review in which it was accepted, `2026-10`.
        expected: saving per month that the review named, in the ledger's currency; None where it named none.
        basis: how sure that was (`estimate`, `at most`, `kept`, `once`).
        provider, scope, thing: what it is measured by; an empty scope: it is not measured.
        per_day: cost of a day before, of `resource` and `commitment`; `rate`: cost over contracted cost, of `service`.
        mix: use by region and pricing before, of `sku`.
        low, high: the 10th and 90th percentile of the days before, over their mean: how steady the counterfactual is.
        services: of the use that it is measured by, in the accepted month; empty in ledgers of version 0.2.0.
    """

    id: str
    kind: str
    what: str
    owner: str
    accepted: str
    expected: float | None
    basis: str
    provider: str
    scope: str
    thing: str
    per_day: float = 0.0
    rate: float = 0.0
    mix: tuple[Mix, ...] = ()
    low: float = 1.0
    high: float = 1.0
    services: tuple[str, ...] = ()


class Book:
    """The file's entries, and those that a review adds.

    Attributes:
        path: the file.
        wanted: ids to accept in this review.
        entries: what is in it, the oldest first.
    """

    def __init__(
        self, path: Path, currency: str, entries: Sequence[Entry], data: bytes, wanted: Sequence[str] = ()
    ) -> None:
        self.path, self.currency = path, currency
        self.entries = list(entries)
        self.wanted = tuple(dict.fromkeys(wanted))
        self._data = data

    def check_currency(self, currency: str) -> None:
        """Take a new ledger's currency from the bill.

        Raises:
            InputError: the ledger is in another one.
        """
        if self.currency and self.currency != currency:
            raise InputError(
                f"--ledger {self.path}: is in {self.currency}, the bill in {currency}; keep a ledger for each"
            )
        self.currency = currency

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Check the ids that are asked for.

        Raises:
            InputError: one is not an action of the review, or is accepted already.
        """
        held = {one.id: one.accepted for one in self.entries}
        for wanted in self.wanted:
            if wanted in held:
                raise InputError(f"--accept {wanted}: was accepted in {held[wanted]} already")
            if wanted not in known:
                close = near(wanted, known)
                hint = (
                    f"did you mean {close}?"
                    if close
                    else f"its actions are {', '.join(known[:10]) or 'none'}"
                )
                raise InputError(f"--accept {wanted}: is not an action of this review; {hint}")

    def save(self) -> None:
        """Write the file, readable by its owner only, whole or not at all.

        Raises:
            InputError: somebody else wrote it since it was read, or it cannot be written.
        """
        if _bytes(self.path) != self._data:
            raise InputError(f"--ledger {self.path}: has changed since it was read; accept again")
        body = {
            "kind": "ledger",
            "version": VERSION,
            "currency": self.currency,
            "entries": [asdict(one) for one in self.entries],
        }
        text = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.path, text, mode=_MODE)
        self._data = text.encode()


def open_book(path: Path, wanted: Sequence[str] = ()) -> Book:
    """Open a ledger; one that is not there yet is empty.

    Args:
        path: the file.
        wanted: ids of actions to accept.

    Raises:
        InputError: it is not a ledger, or it is not there and nothing is accepted.
    """
    data = _bytes(path)
    if not data:
        if not wanted:
            remedy = "accept an action to begin it: --accept ID (a review without --ledger shows the ids of actions)"
            raise InputError(f"--ledger {path}: no such file; {remedy}")
        return Book(path, "", (), data, wanted)
    try:
        body = json.loads(decode(data, str(path)))
        if body["kind"] != "ledger" or body["version"] != VERSION:
            raise InputError(f"{path}: is not a ledger of version {VERSION}")
        entries = tuple(_entry(one) for one in body["entries"])
        return Book(path, str(body["currency"]), entries, data, wanted)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise InputError(
            f"{path}: is not a ledger of this program ({type(error).__name__}: {shortened(str(error))})"
        ) from None


def _entry(one: Mapping[str, Any]) -> Entry:
    mix, services = tuple(Mix(**part) for part in one["mix"]), tuple(map(str, one.get("services", ())))
    entry = Entry(**{**one, "mix": mix, "services": services})
    numbers = [
        entry.per_day,
        entry.rate,
        entry.low,
        entry.high,
        *(value for part in entry.mix for value in (part.share, part.price)),
    ]
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in numbers):
        raise ValueError(f"{entry.id}: an amount is not a number")
    return entry


def _bytes(path: Path) -> bytes:
    return read_limited(path, _MAX_BYTES) if path.exists() else b""
