"""Something to do, and what several of them save together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from planner.finops.ledger.measure import action_id
from planner.finops.review.sections.confidence import Confidence
from planner.finops.things.together import Rate
from planner.records import record

LEAST_DISCOUNT = 0.25  # of commitments of a year: 25 to 40 % in the bundled catalog

Basis = Literal["estimate", "at most", "at least", "kept", "once"]


@record(frozen=True)
class Action:
    """Something to do.

    Attributes:
        kind: stable name.
        what, why: for people.
        amount: money in the bill's currency, per month but for `once`; None where the bill cannot tell.
        owner: the team whose use it is, or the account where no team is known.
        command: what shows its grounds in this bill, to run as written; empty for a bill without files.
        plan: what plans the action, to run as written; empty where there is none.
        needs: why there is none, and what would make one.
        file: the saved plan that does it, where one was given.
        pool: provider and service whose use it changes.
        sure: how sure the amount is, and why.
        thing: id of the SKU, resource or commitment, where it is one.
        same: what tells it apart in every month, where `what` counts things or `thing` has several actions.
        unknown: cost per month of which the bill cannot tell what the action saves; it counts for the order alone.
        rate: of commitments on the steady use of a service, what they save of its cost.
        basis: `estimate`; `at most` (an upper bound: all of it can move, pause, be sold); `at least` (the saving on
            `unknown` comes on top); `kept` (what is saved already and would end); `once` (an excess that is over).
    """

    kind: str
    what: str
    why: str
    amount: float | None
    owner: str
    command: str
    pool: tuple[str, str] = ("", "")
    basis: Basis = "estimate"
    sure: Confidence = Confidence()
    thing: str = ""
    same: str = ""
    plan: str = ""
    needs: str = ""
    file: str = ""
    unknown: float = 0.0
    rate: Rate | None = None

    @property
    def id(self) -> str:
        """By which a ledger accepts it (`planner.finops.ledger`), the same in every month."""
        return action_id(self.kind, *self.pool, self.same or self.thing or self.what)

    @property
    def weight(self) -> float:
        """What it is ranked by: the amount, and a least saving on the cost for which none is known."""
        return (self.amount or 0.0) + LEAST_DISCOUNT * self.unknown

    @property
    def saves(self) -> float | None:
        """New saving per month."""
        return self.amount if self.basis in ("estimate", "at most", "at least") else None

    @property
    def bound(self) -> str:
        """`at most ` or `at least ` before its amount, else empty."""
        return f"{self.basis} " if self.basis in ("at most", "at least") else ""


_ON_USE = ("commit_more", "delete_idle", "move_region", "switch_option")


def joint(actions: list[Action], of_use: Callable[[], float]) -> float | None:
    """Monthly savings that add up; None where none is known.

    Unused commitments and idle resources are spend that no other action concerns: more commitments are for use that the
    unused ones could not carry. Commitments, moves and spot may concern the same use.

    Args:
        actions: those that are listed.
        of_use: what commitments, moves and spot save together, each use one way; asked only where a service has
            actions of several kinds on use.
    """
    if all(one.saves is None for one in actions):
        return None
    kinds: dict[tuple[str, str], set[str]] = {}
    for one in actions:
        if one.kind in _ON_USE:
            kinds.setdefault(one.pool, set()).add(one.kind)
    if all(len(own) == 1 for own in kinds.values()):
        return math.fsum(one.saves or 0.0 for one in actions)
    apart = [one for one in actions if one.kind not in _ON_USE or one.kind == "delete_idle"]
    return math.fsum(one.saves or 0.0 for one in apart) + of_use()
