"""Something to do, and what several of them save together."""

from __future__ import annotations

import math
from typing import Literal

from planner.finops.ledger.measure import action_id
from planner.finops.review.sections.confidence import Confidence
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
        pool: the use it changes; actions of one pool exclude one another.
        sure: how sure the amount is, and why.
        thing: id of the SKU, resource or commitment, where it is one.
        unknown: cost per month of which the bill cannot tell what the action saves; it counts for the order alone.
        alone: neither a commitment nor a deletion changes that use: its saving comes on top of theirs.
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
    plan: str = ""
    needs: str = ""
    file: str = ""
    unknown: float = 0.0
    alone: bool = False

    @property
    def id(self) -> str:
        """By which a ledger accepts it (`planner.finops.ledger`), the same in every month."""
        return action_id(self.kind, *self.pool, self.thing or self.what)

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


_ELSEWHERE = ("move_region", "switch_option")


def joint(actions: list[Action]) -> float | None:
    """Monthly savings that add up; None where none is known.

    Of each pool of use only the kind that saves most counts: commitments, what stands idle, or all that can move or go
    to spot, each thing one way.
    Use that gets a commitment could be put on the unused ones instead: of a provider either counts, not both.
    """
    if all(one.saves is None for one in actions):
        return None
    with_less = _by_pool([one for one in actions if one.kind != "commit_more"])
    with_more = _by_pool([one for one in actions if one.kind != "commit_less"])
    return math.fsum(
        max(with_less.get(p, 0.0), with_more.get(p, 0.0)) for p in with_less.keys() | with_more.keys()
    )


def _by_pool(actions: list[Action]) -> dict[str, float]:
    """Savings by provider; of each pool the kind that saves most, where each thing moves or goes to spot."""
    kinds: dict[tuple[str, str], dict[str, float]] = {}
    unused: dict[tuple[str, str], float] = {}
    elsewhere: dict[tuple[str, str], dict[str, float]] = {}
    for one in actions:
        saves = one.saves or 0.0
        if one.kind in _ELSEWHERE:
            things = elsewhere.setdefault(one.pool, {})
            things[one.thing] = max(saves, things.get(one.thing, 0.0))
        elif one.alone:
            unused[one.pool] = unused.get(one.pool, 0.0) + saves
        else:
            own = kinds.setdefault(one.pool, {})
            own[one.kind] = own.get(one.kind, 0.0) + saves
    out: dict[str, float] = {}
    for pool in sorted(kinds.keys() | unused.keys() | elsewhere.keys()):
        best = max(kinds.get(pool, {}).values(), default=0.0) + unused.get(pool, 0.0)
        best = max(best, math.fsum(elsewhere.get(pool, {}).values()))
        out[pool[0]] = out.get(pool[0], 0.0) + best
    return out
