"""What became of the actions that were accepted?"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from planner.finops.ledger.book import Book, Entry
from planner.finops.ledger.measure import SCOPES, WHY_NOT, Saved, baseline, less, parts_of, saved
from planner.finops.review.inputs import Inputs, known_days, month_name
from planner.finops.review.model import Section, Table
from planner.finops.review.parts import figure, money, table, withheld
from planner.finops.review.sections.action import Action
from planner.finops.review.sections.actions import TOP, actions
from planner.finops.review.sections.owners import with_owners
from planner.finops.review.sections.turned_commitments import ended_within

_NONE = "no action that is measured was accepted earlier"
TITLE = "What did accepted actions save?"


def build(inputs: Inputs) -> Section | None:
    """Accepted actions and their realised savings; None without a ledger."""
    book = inputs.beside.ledger
    if book is None:
        return None
    book.check_currency(inputs.bill.currency)
    status, reason = inputs.gate.status("ledger_realised_money")
    if status == "withheld":
        book.refuse_unknown(())
        return withheld("ledger", TITLE, reason)
    open_ones = {one.id: one for one in with_owners(inputs, actions(inputs)[:TOP])}
    book.refuse_unknown(list(open_ones))
    new = [_accepted(inputs, open_ones[wanted], wanted) for wanted in book.wanted]
    book.entries += new
    measured = _measured(inputs, book)
    every = [s for one, found in measured if not _earlier(book, one) for s in found]
    this = [s for s in every if s.month == f"{inputs.month:%Y-%m}"]
    figures = (
        figure(inputs, "ledger_accepted_count", "Accepted actions", len(book.entries), "count"),
        figure(inputs, "ledger_realised_money", f"Saved in {month_name(inputs.month)}",
               math.fsum(s.amount for s in this) if this else None, "money", lacking=_NONE),
        figure(inputs, "ledger_to_date_money", "Saved to date, in the months of this bill",
               math.fsum(s.amount for s in every) if every else None, "money", lacking=_NONE),
    )  # fmt: skip
    tables = [_entries(inputs, book, measured), _open(open_ones, book)]
    said = _sentences(inputs, book, new, this)
    return Section(
        "ledger", TITLE, said, figures, tuple(one for one in tables if one.rows), (), status, reason
    )


def _accepted(inputs: Inputs, one: Action, key: str) -> Entry:
    provider, service = one.pool
    scope = SCOPES.get(one.kind, "")
    thing = service if scope == "service" else one.thing
    fields: dict[str, Any] = {
        "id": key, "kind": one.kind, "what": one.what, "owner": one.owner, "accepted": f"{inputs.month:%Y-%m}",
        "expected": one.amount, "basis": one.basis, "provider": provider, "thing": thing,
        "scope": scope if thing else "",
    }  # fmt: skip
    if not fields["scope"]:
        return Entry(**fields)
    return baseline(
        fields, inputs.of_month(_use(inputs, provider, scope, thing)), known_days(inputs, inputs.month)
    )


def _use(inputs: Inputs, provider: str, scope: str, thing: str) -> Any:
    return inputs.ask("use_by_day", provider=provider, scope=scope, thing=thing)


def _measured(inputs: Inputs, book: Book) -> list[tuple[Entry, list[Saved]]]:
    """Every entry with its savings; those of a service less what entries on parts of it saved."""
    alone = [(one, _measure(inputs, one)) for one in book.entries]
    return [
        (one, less(found, [s for part, savings in alone if part in _parts(book, one) for s in savings]))
        for one, found in alone
    ]


def _parts(book: Book, one: Entry) -> list[Entry]:
    return parts_of(one, [other for other in book.entries if not _earlier(book, other)])


def _measure(inputs: Inputs, one: Entry) -> list[Saved]:
    """Savings of the months after it was accepted, up to the reviewed one."""
    if not one.scope:
        return []
    months = [m for m in inputs.bill.months if one.accepted < f"{m:%Y-%m}" and m <= inputs.month]
    months = [m for m in months if known_days(inputs, m) > 0]  # not those of corrections alone
    if not months:
        return []
    frame = _use(inputs, one.provider, one.scope, one.thing)
    return [saved(one, inputs.of_month(frame, m), f"{m:%Y-%m}", known_days(inputs, m)) for m in months]


def _entries(inputs: Inputs, book: Book, measured: list[tuple[Entry, list[Saved]]]) -> Table:
    own = inputs.of_month(inputs.ask("commitment_utilisation"))
    going_on = set(own["commitment_id"]) - ended_within(inputs).keys()
    rows = []
    for one, found in measured:
        now = next((s for s in found if s.month == f"{inputs.month:%Y-%m}"), None)
        spread = (now.amount, now.low, now.high) if now else (None, None, None)
        total = math.fsum(s.amount for s in found) if found else None
        rows.append(
            (
                one.what,
                one.accepted,
                one.owner,
                one.expected,
                *spread,
                total,
                _remark(book, one, found, going_on),
                one.id,
            )
        )
    return table(
        "ledger", "Accepted actions", [("what", "Action", "text"), ("accepted", "Accepted", "text"),
        ("owner", "Owner", "text"), ("expected", "Expected a month", "money"), ("realised", "Saved", "money"),
        ("low", "At least", "money"), ("high", "At most", "money"), ("to_date", "To date", "money"),
        ("remark", "Remark", "text", "below"), ("id", "Id", "text", "below")], rows,
        "Saved: what the use would have cost without the action, less what it cost. The range comes from how much the "
        "days of the accepted month differed.",
    )  # fmt: skip


def _earlier(book: Book, one: Entry) -> str:
    """Another accepted action that is measured by the same use: it counts, this one does not."""
    key = (one.provider, one.scope, one.thing)
    first = next(other for other in book.entries if (other.provider, other.scope, other.thing) == key)
    return "" if first is one or not one.scope else first.id


def _remark(book: Book, one: Entry, savings: list[Saved], going_on: Collection[Any]) -> str:
    if not one.scope:
        return f"not measured: {WHY_NOT.get(one.kind, 'it is a sum of several things, or its use was not in the bill')}"
    if other := _earlier(book, one):
        return f"on the same use as {other}: counted once, there"
    if not savings:
        return "measured from the next month on"
    if one.scope == "commitment" and one.thing not in going_on:
        return "it has no charge at the month's end: if its term was over, that saved nothing"
    parts = ", ".join(part.id for part in _parts(book, one))
    return f"less what {parts} saved, which counts there" if parts else ""


def _open(actions: dict[str, Action], book: Book) -> Table:
    held = {one.id for one in book.entries}
    rows = [(key, one.what, one.amount) for key, one in actions.items() if key not in held]
    return table("ledger_open", "To accept with --accept",
                 [("id", "Id", "text"), ("what", "Action", "text"), ("amount", "Amount", "money")], rows)  # fmt: skip


def _sentences(inputs: Inputs, book: Book, new: list[Entry], this: list[Saved]) -> tuple[str, ...]:
    said = []
    if this:
        amount, low, high = (math.fsum(getattr(s, name) for s in this) for name in ("amount", "low", "high"))
        words = [money(value, inputs.bill.currency) for value in (amount, low, high)]
        name, currency = month_name(inputs.month), inputs.bill.currency
        spread = f" ({words[1]} to {words[2]})" if words[1] != words[2] else ""
        saved_words = f"Accepted actions saved {words[0]} in {name}{spread}."
        lost_words = f"{name} cost {money(-amount, currency)} more than without the accepted actions."
        said.append(saved_words if amount >= 0 else lost_words)
    elif book.entries:
        said.append(
            "No accepted action is measured yet: savings count from the month after the one in which it was accepted."
        )
    else:
        said.append("The ledger is empty.")
    if new:
        many = "is" if len(new) == 1 else "are"
        said.append(f"{len(new)} {many} accepted now: {'; '.join(one.what for one in new)}.")
    return tuple(said)
