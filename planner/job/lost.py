"""Why each offer that looks cheaper than the plan is not the plan, grouped by what keeps it out.

An offer looks cheaper where an accelerator-hour of it costs less than the plan's, or where one of its candidates that
at most one filter removes costs less in all. Spot is priced as `optimize` would buy it without the filter: with
on-demand to fall back on, or alone where that is sure enough. The reason is the first of these that holds: it runs, and
costs more in all (for the objective time: takes longer); else what removes the candidate of it that the fewest filters
remove, the cheapest of these; else why it does not run at any size. The first filter in the order of reports speaks
for several.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct, distinct_values
from planner.candidates.constraints.registry import BIT, CONSTRAINTS, SHAPE_FILTERS
from planner.candidates.limits import case_of
from planner.candidates.model import IN_TURN, SINGLE
from planner.candidates.wanted import value_of
from planner.candidates.ways.build import BY_FALLBACK, kg_floor
from planner.candidates.ways.kept_out import with_kept_out
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates


_MOST_DEARER = 32  # ways per reason that are worked out though they cannot cost less
DEARER, NO_SIZE = "dearer", "no_size"


@record(frozen=True)
class Lost:
    """Offers that look cheaper and lost for one reason.

    Attributes:
        reason: id of a filter, `dearer` or `no_size`; words: what it means.
        offers: how many; facts of a machine or price (`is_fact`) cannot be moved by the file.
        example: of the cheapest-looking one: instance type, option and place; usd_per_accelerator_hour: its price.
        cost_usd: what the cheapest of them would cost for the job, None where that is not known: of what runs its
            feasible candidates, else the candidate that the fewest filters remove.
        cost_example: whose cost that is.
    """

    reason: str
    words: str
    offers: int
    is_fact: bool
    example: str
    usd_per_accelerator_hour: float
    cost_usd: Decimal | None
    cost_example: str


def lost_offers(search: CandidateSearch, winner: int) -> tuple[Lost, ...]:
    """Group the offers that look cheaper than candidate `winner`, most first."""
    candidates, market = _as_bought(search, winner), search.context.market
    hourly = _accelerator_hour(candidates)
    mine = [part.row for part in candidates.parts(winner)]
    least = _least(candidates, candidates.cost_usd, _filters(candidates, search.offer_bits) <= 1)
    looks = (hourly < hourly[mine].min() * (1 - 1e-9)) | (least < candidates.cost_usd[winner] * (1 - 1e-9))
    kind = market.offer_set.offers.key_codes("provider", "region", "instance_type", "purchase_option")
    looks &= ~np.isin(kind, kind[mine])
    filters = _filters(candidates, np.zeros_like(search.offer_bits))
    nearest = _nearest(candidates, filters)
    reasons = _reasons(search.offer_bits, candidates, winner, looks, nearest)
    out = []
    for reason in sorted(set(reasons.values())):
        rows = np.asarray([row for row, name in reasons.items() if name == reason])
        known = np.asarray([nearest[row] for row in rows.tolist() if row in nearest], dtype=np.int64)
        if reason == DEARER and (candidates.bits[known] == 0).any():
            known = known[candidates.bits[known] == 0]
        order = known[np.lexsort((candidates.cost_usd[known], filters[known]))]
        out.append(_group(candidates, reason, rows, hourly, order))
    return tuple(sorted(out, key=lambda one: -one.offers))


def _as_bought(search: CandidateSearch, winner: int) -> Candidates:
    """The candidates with spot that is kept out bought as it would be; what costs less is judged for confidence too."""
    value, words = (
        value_of(search.candidates)[winner],
        distinct_values(search.offer_bits[search.offer_bits != 0]),
    )
    candidates = with_kept_out(search.candidates, search.offer_bits, words, float(value), _MOST_DEARER)
    bits, case = candidates.bits.copy(), case_of(candidates.context)
    less = candidates.cost_usd < search.candidates.cost_usd[winner]
    alone = (candidates.kind == SINGLE) & (_filters(candidates, search.offer_bits) == 1)
    at = np.flatnonzero(less & alone & (bits != BIT["confidence"]))
    for item in CONSTRAINTS:
        unsure = item.unsure(case, candidates, at) if len(at) else None
        if unsure is not None:
            bits[at[unsure]] |= BIT[item.id]
    return replace(candidates, bits=bits)


def _filters(candidates: Candidates, offer_bits: Ints) -> Ints:
    """How many filters remove each candidate; those in `offer_bits` of its offer count as one, shape `(n,)`."""
    own = offer_bits[candidates.offer]
    count = np.asarray(own != 0, dtype=np.int64)
    for bit in BIT.values():
        count += ((candidates.bits & ~own) & bit) != 0
    return count


_WORSE = {"cost": "costs more in total", "time": "takes longer", "carbon": "emits more"}


def _group(candidates: Candidates, reason: str, rows: Ints, hourly: Floats, known: Ints) -> Lost:
    """Offers that lost for one reason; `known`: their candidates, first the one whose cost is given."""
    item = next((one for one in CONSTRAINTS if one.id == reason), None)
    objective = candidates.context.asked.workload.preferences.objective
    words = {DEARER: f"runs, but {_WORSE[objective]}",
             NO_SIZE: "does not run at any size looked at"}  # fmt: skip
    first = int(rows[np.argmin(hourly[rows])])
    best = next(iter(known[np.isfinite(candidates.cost_usd[known])].tolist()), None)
    return Lost(
        reason=reason, words=words[reason] if item is None else item.words, offers=len(rows),
        is_fact=item is not None and item.is_fact, example=_named(candidates, first),
        usd_per_accelerator_hour=float(hourly[first]),
        cost_usd=None if best is None else Decimal(repr(round(float(candidates.cost_usd[best]), 6))),
        cost_example="" if best is None else _bought(candidates, best),
    )  # fmt: skip


def _bought(candidates: Candidates, at: int) -> str:
    """How candidate `at` is bought."""
    turns, row = candidates.turns, int(candidates.offer[at])
    falls_back = (
        turns is not None and candidates.kind[at] == IN_TURN and turns.has_fallback[candidates.detail[at]]
    )
    return _named(candidates, row, ", else on_demand" if falls_back else "")


def _named(candidates: Candidates, row: int, then: str = "") -> str:
    offers = candidates.context.market.offer_set.offers
    text = {
        name: str(offers[name][row]) for name in ("instance_type", "purchase_option", "provider", "region")
    }
    place = f"{text['provider']}/{text['region']}" if text["region"] else text["provider"]
    return f"{text['instance_type']} {text['purchase_option']}{then} {place}"


def _accelerator_hour(candidates: Candidates) -> Floats:
    """USD per accelerator-hour of each offer, infinity where no price is known, shape `(n_offers,)`."""
    offer_set = candidates.context.market.offer_set
    count = np.asarray(offer_set.types["accelerator_count"], dtype=np.float64)[offer_set.type_of_offer]
    usd = np.where(offer_set.usd_per_hour > 0, offer_set.usd_per_hour, np.inf)
    usable = (count > 0) & np.isfinite(usd) & np.isnan(offer_set.owned_share)
    return np.where(usable, usd / np.where(count > 0, count, 1.0), np.inf)


def _least(candidates: Candidates, value: Floats, mask: Bools) -> Floats:
    """The least value of each offer's candidates, infinity without one, shape `(n_offers,)`."""
    out = np.full(candidates.context.market.offer_set.offers.n_rows, np.inf)
    at = np.flatnonzero(mask & np.isfinite(value))
    np.minimum.at(out, candidates.offer[at], value[at])
    return out


def _reasons(
    offer_bits: Ints, candidates: Candidates, winner: int, looks: Bools, nearest: dict[int, int]
) -> dict[int, str]:
    """The reason of each offer that looks cheaper."""
    runs = _runs(candidates, winner)
    out = {}
    for row in np.flatnonzero(looks).tolist():
        bits = int(offer_bits[row])
        if runs[row]:
            out[row] = DEARER
        elif bits:
            out[row] = _first(bits)
        elif row in nearest:
            out[row] = _first(int(candidates.bits[nearest[row]]))
        else:
            out[row] = _why_no_size(candidates, row)
    return out


def _runs(candidates: Candidates, winner: int) -> Bools:
    """Offers that lead a feasible candidate, or would with a fall-back but for the price of their bare work.

    Ways with a fall-back whose work on spot alone costs more than is of use are not worked out (`candidates.wanted`).
    """
    out = np.zeros(candidates.context.market.offer_set.offers.n_rows, dtype=np.bool_)
    feasible = np.flatnonzero(candidates.bits == 0)
    out[candidates.offer[feasible]] = True
    if candidates.turns is not None:
        for column in candidates.turns.offer[
            candidates.detail[feasible[candidates.kind[feasible] == IN_TURN]]
        ].T:
            out[column[column >= 0]] = True
    if candidates.context.dates.deadline_hours is None:
        return out
    spot = candidates.context.market.is_spot[candidates.offer]
    left = np.flatnonzero((candidates.kind == SINGLE) & spot & ((candidates.bits & ~BY_FALLBACK) == 0))
    hourly = candidates.context.market.offer_set.usd_per_hour[candidates.offer[left]]
    bare = candidates.nodes[left] * hourly * (candidates.work_hours[left] + candidates.fixed_hours[left])
    objective = candidates.context.asked.workload.preferences.objective
    if objective == "carbon":
        bare = kg_floor(candidates, left)
    if objective == "time":
        bare = candidates.waiting_hours[left] + candidates.work_hours[left] + candidates.fixed_hours[left]
    least = np.full(len(out), np.inf)
    np.minimum.at(least, candidates.offer[left], bare)
    return np.asarray(out | (np.isfinite(least) & (least > value_of(candidates)[winner])), dtype=np.bool_)


def _nearest(candidates: Candidates, count: Ints) -> dict[int, int]:
    """Position of each offer's candidate that the fewest filters remove (`count` of each), the cheapest of these."""
    order = np.lexsort((candidates.cost_usd, count, candidates.offer))
    rows, first = distinct(candidates.offer[order])[:2]
    return dict(zip(rows.tolist(), order[first].tolist(), strict=True))


def _first(bits: int) -> str:
    return next(item.id for item in CONSTRAINTS if bits & BIT[item.id])


def _why_no_size(candidates: Candidates, row: int) -> str:
    """Why no shape of an offer's hardware fits."""
    offer_set = candidates.context.market.offer_set
    hardware = int(offer_set.hardware_of_type[offer_set.type_of_offer[row]])
    shapes = candidates.shapes
    mine = np.flatnonzero((shapes["hardware_row"] == hardware) & ~np.asarray(shapes["fits"], dtype=np.bool_))
    names = [SHAPE_FILTERS[str(reason)] for reason in shapes["reason"][mine] if str(reason) in SHAPE_FILTERS]
    return next((item.id for item in CONSTRAINTS if item.id in names), NO_SIZE)
