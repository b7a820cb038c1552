"""How far the cost of all jobs together may fall from what is expected, and how old the prices behind it are."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from planner.asked.assumptions import beside_by_default
from planner.candidates.plan_parts.spread import spread_of, together
from planner.plan.words import beside_steps
from planner.portfolios.shared_limits import MICRO

if TYPE_CHECKING:
    from planner.candidates.plan_parts.spread import Spread
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.portfolios.gather import Gathered
    from planner.portfolios.table import CandidateTable

MOST_KINDS = 100  # of candidates chosen: about 5 ms each


def between_usd(gathered: Gathered, table: CandidateTable) -> tuple[Decimal, Decimal] | None:
    """P10 and P90 of the cost of all jobs; None where all were sized elsewhere, or where too many kinds are chosen.

    Args:
        gathered: what the table's numbers mean.
        table: one candidate per job.
    """
    kinds = {
        (int(source), int(row)) for source, row in zip(table.source, table.row, strict=True) if source >= 0
    }
    if not kinds or len(kinds) > MOST_KINDS:
        return None
    spreads: list[Spread] = []
    certain = Decimal(0)
    known: dict[tuple[int, int], Spread] = {}
    for at, key in enumerate(zip(table.source.tolist(), table.row.tolist(), strict=True)):
        cost = Decimal(int(table.cost_micro_usd[at])) / MICRO
        if key not in kinds:
            certain += cost
            continue
        if key not in known:
            known[key] = spread_of(gathered.sources[key[0]], key[1], cost)
        spreads.append(known[key])
    return together(spreads, certain)


def price_dates(gathered: Gathered, table: CandidateTable) -> list[str]:
    """Dates of the prices of the offers chosen; those of jobs sized elsewhere are not known."""
    out = set[str]()
    for number, row in zip(table.source.tolist(), table.row.tolist(), strict=True):
        if number >= 0:
            source = gathered.sources[number]
            offers = source.context.market.offer_set.offers
            out |= {str(offers["as_of"][part.row]) for part in source.made.parts(row)}
    return sorted(out)


def beside_of(loaded: LoadedPortfolio) -> str:
    """What hours of its trainings have beside their steps by default, in words; empty where there is none."""
    beside = beside_by_default(loaded.workloads, (job.count for job in loaded.jobs))
    return beside_steps(beside.ratio, beside.whose("jobs"))
