"""What a decision is: the accelerator, the provider, the region, the size and the way to buy it.

Candidates that agree in all five are one decision, whatever their zone, machine or layout. `list_decisions` gives the
decisions to show beside the best one, each with those folded into it; `KINDS` names kinds of plan that are compared
by name (the baseline, `why`, `explain`), so that every place that mentions the best of a kind mentions the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.rows import whole
from catalogs.tables.table import distinct
from planner.candidates.choose import best_where, rank_best
from planner.candidates.model import IN_TURN, MIXED, SINGLE
from planner.candidates.wanted import value_of
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Ints
    from catalogs.tariffs import OptionRule
    from planner.candidates.model import Candidates


# Decisions of one accelerator and provider whose cost and hours both differ by less are one to a buyer: prices and
# predictions are not known better.
HAIR_RATIO = 0.03
# What ends sooner, or costs less, by no more than this is not worth a row: nobody pays or waits for minutes or cents.
LEAST_HOURS = 0.25
LEAST_USD = 1.0


@record(frozen=True)
class Facet:
    """One thing that decisions differ in. `code`: equal for candidates that agree in it, shape `(n,)`."""

    id: str
    words: str
    code: Callable[[Candidates, Ints], Ints]


@record(frozen=True)
class Kind:
    """A kind of plan. `member`: mask of the candidates of this kind, shape `(n_candidates,)`."""

    id: str
    words: str
    member: Callable[[Candidates], Bools]


@record(frozen=True)
class Fold:
    """Decisions that a listed one stands for.

    Attributes:
        differs_in: id of the facet they differ in, `several` where in more than one, `machine` where in none.
        count: how many.
        best: position of the best of them.
    """

    differs_in: str
    count: int
    best: int


@record(frozen=True)
class Listed:
    """A decision to show.

    Attributes:
        at: position of its best candidate.
        brings: ids of the facets in which nothing above it is like it; empty for the first.
        folded: what it stands for beside itself.
    """

    at: int
    brings: tuple[str, ...]
    folded: tuple[Fold, ...]


def _accelerator(candidates: Candidates, at: Ints) -> Ints:
    return candidates.context.market.accelerator_of_offer[candidates.offer[at]]


def _provider(candidates: Candidates, at: Ints) -> Ints:
    return candidates.context.market.provider_of_offer[candidates.offer[at]]


def _region(candidates: Candidates, at: Ints) -> Ints:
    return candidates.context.market.region_of_offer[candidates.offer[at]]


def _size(candidates: Candidates, at: Ints) -> Ints:
    """Accelerators in all, told apart by thousandths: some offers are shares of one."""
    offer_set = candidates.context.market.offer_set
    each, _, of_type = distinct(np.asarray(offer_set.types["accelerator_count"], dtype=np.float64))
    nodes, _, of_row = distinct(candidates.nodes[at])
    count = np.round(nodes[:, None] * each * 1000.0).astype(np.int64)
    code = distinct(count.ravel())[2]  # few numbers, which are quicker told apart than thousandths
    return code.take(of_row * len(each) + of_type[offer_set.type_of_offer].take(candidates.offer[at]))


def _way(candidates: Candidates, at: Ints) -> Ints:
    """How it is bought: one option; spot in one zone or several, with or without a fall-back; the options of a mix."""
    own = candidates.context.market.option_of_offer
    ways, kind, detail = own[candidates.offer[at]], candidates.kind[at], candidates.detail[at]
    size = int(own.max(initial=0)) + 1
    if candidates.turns is not None:
        late = np.flatnonzero(kind == IN_TURN)
        mine = detail[late]
        ways[late] = size + candidates.turns.has_fallback[mine] + 2 * in_several_zones(candidates)[mine]
    mixed = np.flatnonzero(kind == MIXED)
    if candidates.mixes is not None and len(mixed):
        parts = candidates.mixes.offer[detail[mixed]]
        codes = np.sort(np.where(parts >= 0, own[parts] + 1, 0), axis=1)
        joint = np.zeros(len(mixed), dtype=np.int64)
        for column in range(codes.shape[1]):
            joint = joint * (size + 1) + codes[:, column]
        ways[mixed] = size + 4 + distinct(joint)[2]
    return ways


def in_several_zones(candidates: Candidates) -> Bools:
    """Whether spot is bought in more than one zone, per row of the table of what runs in turn."""
    assert candidates.turns is not None
    second = candidates.turns.offer[:, 1]
    return np.asarray((second >= 0) & candidates.context.market.is_spot[second], dtype=np.bool_)


FACETS = (
    Facet("accelerator", "another accelerator", _accelerator),
    Facet("provider", "another provider", _provider),
    Facet("region", "another region", _region),
    Facet("size", "another size", _size),
    Facet("way", "another purchase option", _way),
)
ACCELERATOR, PROVIDER, REGION, SIZE, WAY = range(len(FACETS))
PROVIDER_OF = FACETS[PROVIDER].code
_KIND = [ACCELERATOR, PROVIDER, WAY]


def _is_on_demand(candidates: Candidates) -> Bools:
    option = candidates.context.market.offer_set.offers.equals("purchase_option", "on_demand")
    return np.asarray((candidates.kind == SINGLE) & option[candidates.offer], dtype=np.bool_)


def _is_in_one_zone(candidates: Candidates) -> Bools:
    spot = candidates.context.market.is_spot[candidates.offer]
    one = (candidates.kind == SINGLE) & spot
    if candidates.turns is not None:
        late = np.flatnonzero(candidates.kind == IN_TURN)
        one[late] = ~in_several_zones(candidates)[candidates.detail[late]]
    return np.asarray(one, dtype=np.bool_)


def _is_firm(candidates: Candidates) -> Bools:
    spot = candidates.context.market.is_spot
    firm = (candidates.kind != IN_TURN) & ~spot[candidates.offer]
    if candidates.mixes is not None:
        mixed = np.flatnonzero(candidates.kind == MIXED)
        parts = candidates.mixes.offer[candidates.detail[mixed]]
        firm[mixed] = ~((parts >= 0) & spot[parts]).any(axis=1)
    return np.asarray(firm, dtype=np.bool_)


def _is_for_a_term(candidates: Candidates) -> Bools:
    """One offer that is paid for a whole term ahead: blocks, reservations, commitments; owned capacity is not."""
    return _is_new_with(candidates, lambda rule: rule.whole_term or bool(rule.block_hours))


def is_commitment(candidates: Candidates) -> Bools:
    """One offer of which the whole term is owed, a year or more, however short the job; owned ones are not."""
    return _is_new_with(candidates, lambda rule: rule.whole_term)


def _is_new_with(candidates: Candidates, holds: Callable[[OptionRule], bool]) -> Bools:
    """One offer, not owned, whose way to buy has a property."""
    offer_set = candidates.context.market.offer_set
    mine = np.asarray([holds(rule) for rule in offer_set.rules], dtype=np.bool_)[offer_set.rule_of_offer]
    mine &= np.isnan(offer_set.owned_share)
    return np.asarray((candidates.kind == SINGLE) & mine[candidates.offer], dtype=np.bool_)


def _is_on_known_prices(candidates: Candidates) -> Bools:
    """Every price was observed, or does not change until the run starts."""
    known = candidates.context.market.offer_set.book.is_known()
    every = known[candidates.offer]
    for kind, table in ((MIXED, candidates.mixes), (IN_TURN, candidates.turns)):
        if table is not None:
            mine = np.flatnonzero(candidates.kind == kind)
            parts = table.offer[candidates.detail[mine]]
            every[mine] = whole(np.append(known, True)[parts])
    return every


ON_DEMAND = Kind("on_demand", "on-demand alone", _is_on_demand)
ONE_ZONE = Kind("one_zone", "spot in one zone, alone or with a fall-back", _is_in_one_zone)
FIRM = Kind("firm", "capacity that is not taken back", _is_firm)
FOR_A_TERM = Kind("for_a_term", "a block, reservation or commitment", _is_for_a_term)
KNOWN_PRICES = Kind("known_prices", "observed or firm prices only", _is_on_known_prices)
KINDS = (ON_DEMAND, ONE_ZONE, FIRM, FOR_A_TERM)


def members_of(candidates: Candidates, kind: Kind) -> Bools:
    """Mask of the candidates of a kind, worked out once; nobody may change it."""
    if kind.member not in candidates.members:
        candidates.members[kind.member] = kind.member(candidates)
    return candidates.members[kind.member]


def best_of(candidates: Candidates, kind: Kind) -> int | None:
    """Position of the best feasible candidate of a kind by the objective asked for, None without one."""
    objective = candidates.context.asked.workload.preferences.objective
    return best_where(candidates, (candidates.bits == 0) & members_of(candidates, kind), objective)


def list_decisions(candidates: Candidates, limit: int) -> list[Listed]:
    """The best decision and those to show beside it, in the order of the objective.

    Listed are the best candidate of each accelerator, provider and way to buy that nothing above it has, and of the
    best decision's own accelerator, provider and way the best other region, and the best other size that is sooner (for
    the objective time: cheaper). One that differs from a listed one of its accelerator and provider by less than
    `HAIR_RATIO` in cost and hours is folded into it. After `limit` decisions only those follow that bring a provider
    or a way to buy. Every other decision is folded into the listed one above it that is most like it.

    Args:
        candidates: all candidates, at least one feasible.
        limit: decisions to show beside the best one; providers and ways to buy may add to them.
    """
    decisions, facets, copies = _decisions(candidates)
    shown = _shown(candidates, decisions, facets, limit)
    target = _targets(facets, shown)
    return [
        Listed(
            int(decisions[row]),
            _brings(facets, shown[:place], row),
            _folded(decisions, facets, row, target, copies),
        )
        for place, row in enumerate(shown)
    ]


def clearly_better(candidates: Candidates, at: int) -> Bools:
    """What is sooner than a candidate (unless cost is asked for: cheaper) by enough to be worth reading: `(n,)`.

    Args:
        candidates: all candidates.
        at: position of the one that they are compared with.
    """
    by_cost = candidates.context.asked.workload.preferences.objective == "cost"
    other, least = (candidates.hours, LEAST_HOURS) if by_cost else (candidates.cost_usd, LEAST_USD)
    better = other < min(other[at] * (1 - HAIR_RATIO), other[at] - least)
    return np.asarray(better, dtype=np.bool_)


def best_decisions(candidates: Candidates, limit: int) -> Ints:
    """Position of the best candidate of each of the first decisions, in the order of the objective.

    Args:
        candidates: all candidates, at least one feasible.
        limit: most decisions.
    """
    return _decisions(candidates)[0][:limit]


def count_near_ties(candidates: Candidates) -> int:
    """Feasible decisions whose cost (for the objective time: hours) is within a hair of the best one's; it aside."""
    value = value_of(candidates)
    feasible = np.flatnonzero(candidates.bits == 0)
    near = feasible[value[feasible] <= value[feasible].min() * (1 + HAIR_RATIO)]
    return int(_decision_of(_facets_of(candidates, near)).max())


def _decisions(candidates: Candidates) -> tuple[Ints, Ints, Ints]:
    """The best candidate of each decision in the order of the objective, its facets, and how many others are of it."""
    objective = candidates.context.asked.workload.preferences.objective
    feasible = np.flatnonzero(candidates.bits == 0)
    facets = _facets_of(candidates, feasible)
    decision = _decision_of(facets)
    place, own = rank_best(candidates, feasible, objective, decision)
    return feasible[place], facets[place], np.bincount(decision)[own] - 1


def _facets_of(candidates: Candidates, at: Ints) -> Ints:
    """Codes of the facets of candidates, shape `(n, n_facets)`."""
    return np.stack([facet.code(candidates, at) for facet in FACETS], axis=1)


def _decision_of(facets: Ints) -> Ints:
    """Number of each row's decision, from 0."""
    joint = np.zeros(len(facets), dtype=np.int64)
    for column in range(facets.shape[1]):
        _, _, code = distinct(facets[:, column])
        _, _, joint = distinct(joint * (int(code.max(initial=0)) + 1) + code)
    return joint


def _shown(candidates: Candidates, decisions: Ints, facets: Ints, limit: int) -> list[int]:
    """Rows of `decisions` to list."""
    new = np.zeros((len(decisions), len(FACETS)), dtype=np.bool_)
    for column in _KIND:
        new[distinct(facets[:, column])[1], column] = True
    for column, row in _of_own_kind(candidates, decisions, facets):
        new[row, column] = True
    shown = [0]
    for row in np.flatnonzero(new.any(axis=1)).tolist():
        if row == 0 or _is_near(candidates, decisions, facets, row, shown):
            continue
        if len(shown) <= limit or new[row, [PROVIDER, WAY]].any():
            shown.append(row)
    return shown


def _brings(facets: Ints, above: list[int], row: int) -> tuple[str, ...]:
    """Ids of the facets in which nothing above is like a listed row; of the best one's own kind: region or size."""
    if not above:
        return ()
    new = [column for column in _KIND if (facets[above, column] != facets[row, column]).all()]
    if not new:
        new = [REGION if facets[row, REGION] != facets[0, REGION] else SIZE]
    return tuple(FACETS[column].id for column in new)


def _of_own_kind(candidates: Candidates, decisions: Ints, facets: Ints) -> list[tuple[int, int]]:
    """Of the best decision's accelerator, provider and way: the best other region, and the best other size."""
    own = (facets[:, _KIND] == facets[0, _KIND]).all(axis=1)
    here = facets[:, REGION] == facets[0, REGION]
    better = own & here & clearly_better(candidates, int(decisions[0]))[decisions]
    found = [(REGION, np.flatnonzero(own & ~here)), (SIZE, np.flatnonzero(better))]
    return [(column, int(rows[0])) for column, rows in found if len(rows)]


def _is_near(candidates: Candidates, decisions: Ints, facets: Ints, row: int, shown: list[int]) -> bool:
    """Whether a decision is within a hair of a listed one of the same accelerator and provider."""
    like = [other for other in shown if (facets[other, :REGION] == facets[row, :REGION]).all()]
    at, others = decisions[row], decisions[like]
    near = np.ones(len(like), dtype=np.bool_)
    for value in (candidates.cost_usd, candidates.hours):
        near &= np.abs(value[at] - value[others]) <= HAIR_RATIO * value[others]
    return bool(near.any())


def _targets(facets: Ints, shown: list[int]) -> Ints:
    """The listed row that stands for each row: above it, most like it, at least of its accelerator; -1 without one."""
    out, most = np.full(len(facets), -1), np.zeros(len(facets), dtype=np.int64)
    rows = np.arange(len(facets))
    for row in shown:
        alike = (facets == facets[row]).sum(axis=1)
        better = (facets[:, ACCELERATOR] == facets[row, ACCELERATOR]) & (alike > most) & (rows >= row)
        out[better], most[better] = row, alike[better]
    return out


def _folded(decisions: Ints, facets: Ints, row: int, target: Ints, copies: Ints) -> tuple[Fold, ...]:
    """What listed row `row` stands for, grouped by what it differs in."""
    out = []
    mine = np.flatnonzero(target == row)
    mine = mine[mine != row]
    differs = facets[mine] != facets[row]
    differs[:, REGION] &= ~differs[:, PROVIDER]  # another provider's region is another one in any case
    count = differs.sum(axis=1)
    for column, facet in enumerate(FACETS):
        group = mine[differs[:, column] & (count == 1)]
        if len(group):
            out.append(Fold(facet.id, len(group), int(decisions[group[0]])))
    group = mine[count > 1]
    if len(group):
        out.append(Fold("several", len(group), int(decisions[group[0]])))
    if copies[row]:
        out.append(Fold("machine", int(copies[row]), int(decisions[row])))
    return tuple(out)
