"""Decisions that a buyer weighs: the best candidate, and the best of each kind that somebody may prefer to it.

`decisions` lists what is next to the best one; here one candidate stands for each question a buyer asks: what if it
must be sooner, must not be taken back, may not be spot, comes from another provider?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.choose import rank
from planner.candidates.decisions import (
    FIRM,
    FOR_A_TERM,
    HAIR_RATIO,
    KNOWN_PRICES,
    ON_DEMAND,
    PROVIDER_OF,
    Kind,
    best_of,
    clearly_better,
    is_commitment,
    members_of,
)
from planner.candidates.model import MIXED
from planner.candidates.wanted import value_of
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools
    from planner.candidates.model import Candidates


@record(frozen=True)
class Weighed:
    """A decision to weigh. `at`: position of its candidate; `kinds`: for what it is the best."""

    at: int
    kinds: tuple[str, ...]


def _is_owned(candidates: Candidates) -> Bools:
    """At least one part runs on machines, or on a commitment, that the user has already."""
    offer_set = candidates.context.market.offer_set
    own = ~np.isnan(offer_set.owned_share) | offer_set.offers.equals("purchase_option", "owned")
    out = own[candidates.offer]
    if candidates.mixes is not None:
        mixed = np.flatnonzero(candidates.kind == MIXED)
        parts = candidates.mixes.offer[candidates.detail[mixed]]
        out[mixed] = ((parts >= 0) & own[parts]).any(axis=1)
    return np.asarray(out, dtype=np.bool_)


def _is_reserved(candidates: Candidates) -> Bools:
    """Paid for a term ahead; commitments of a year only where one is the best way that is not taken back.

    What is owed for a year is no choice for a job of hours: on-demand costs less and promises the same. Whether a
    year of many jobs pays is a question of its own (`planner commit`).
    """
    return members_of(candidates, FOR_A_TERM) & _is_no_year_too_much(candidates)


def _is_no_year_too_much(candidates: Candidates) -> Bools:
    """All but commitments of a year or more, or all where one of these is the best way that is not taken back."""
    commitment, firm = is_commitment(candidates), best_of(candidates, FIRM)
    return np.asarray(~commitment | (firm is None or bool(commitment[firm])), dtype=np.bool_)


RESERVED = Kind("reserved", "a block, or a commitment that is the best firm way", _is_reserved)
OWNED = Kind("owned", "machines or commitments that you own", _is_owned)
_FIRST = {"cost": "cheapest", "time": "fastest", "carbon": "least_carbon"}
# In the order in which they name a decision that is the best for several.
WEIGHED = (
    ("reserved", RESERVED),
    ("firm", FIRM),
    ("on_demand", ON_DEMAND),
    ("owned", OWNED),
    ("known_prices", KNOWN_PRICES),
)


def weigh_choices(candidates: Candidates, winner: int) -> list[Weighed]:
    """The best candidate, and the best of each kind beside it, in the order of the objective.

    A kind whose best candidate is within `HAIR_RATIO` of a listed one of the same kind, in cost and hours, adds its
    name to that one instead of a row.

    Args:
        candidates: all candidates, at least one feasible.
        winner: position of the best one.
    """
    objective = candidates.context.asked.workload.preferences.objective
    rows: list[tuple[int, list[str]]] = [(winner, [_FIRST[objective]])]
    other = _worth_its_price(candidates, winner)
    if other is not None:
        rows.append((other, ["sooner" if objective == "cost" else "cheaper"]))
    kinds = [*WEIGHED[:4], ("provider", _another_provider(candidates, winner)), *WEIGHED[4:]]
    for name, kind in kinds:
        best = best_of(candidates, kind)
        if best is None:
            continue
        member = members_of(candidates, kind)
        like = next((row for row in rows if member[row[0]] and _is_near(candidates, best, row[0])), None)
        if like is None:
            rows.append((best, [name]))
        elif name != "known_prices":  # it is worth a word only where it is not one of the others
            like[1].append(name)
    order = rank(candidates, np.asarray([at for at, _ in rows]), objective).tolist()
    rows.sort(key=lambda row: (row[0] != winner, order.index(row[0])))
    return [Weighed(at, tuple(names)) for at, names in rows]


def _worth_its_price(candidates: Candidates, winner: int) -> int | None:
    """The knee of cost against hours (or emissions, where these are least): the least product, unless nearly the best.

    Along the frontier a percent of time is worth a percent of money there: up to the knee each percent of hours saved
    costs less than a percent, beyond it more. Unlike a chord between the ends of the frontier it does not move when a
    dear and fast candidate is added.
    """
    objective = candidates.context.asked.workload.preferences.objective
    value = candidates.hours if objective == "cost" else value_of(candidates)
    feasible = np.flatnonzero((candidates.bits == 0) & clearly_better(candidates, winner))
    product = candidates.cost_usd[feasible] * value[feasible]
    if not len(feasible) or product.min() >= candidates.cost_usd[winner] * value[winner]:
        return None
    best = feasible[product <= product.min() * (1 + 1e-12)]
    return int(rank(candidates, best, objective)[0])


def _another_provider(candidates: Candidates, winner: int) -> Kind:
    own = PROVIDER_OF(candidates, np.asarray([winner]))[0]

    def elsewhere(all_of: Candidates) -> Bools:
        other = PROVIDER_OF(all_of, np.arange(len(all_of.offer))) != own
        return np.asarray(other & _is_no_year_too_much(all_of), dtype=np.bool_)

    return Kind("provider", "another provider", elsewhere)


def _is_near(candidates: Candidates, one: int, other: int) -> bool:
    """Whether cost and hours of two candidates both differ by less than a hair."""
    return all(
        abs(value[one] - value[other]) <= HAIR_RATIO * value[other]
        for value in (candidates.cost_usd, candidates.hours)
    )
