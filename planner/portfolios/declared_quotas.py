"""The portfolio's quotas and commitments against the catalog and the candidates: names and units nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Table, distinct_values
from planner.inputs.checks import end_moment
from planner.inputs.checks_of_jobs import PAID_ALREADY
from planner.inputs.faults import Fault
from planner.market.names import quota_faults
from planner.market.place_names import unlisted_names
from planner.market.quota import GPU, VCPU
from planner.portfolios.sized import QUOTA_UNITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from catalogs.tables.model import Catalog
    from catalogs.tariffs import Tariffs
    from planner.candidates.context import Context
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.inputs.portfolio_schema import Portfolio
    from planner.portfolios.table import CandidateTable, Way, Ways


def type_amounts(
    portfolio: Portfolio, catalog: Callable[[], Catalog]
) -> Callable[[str, str], dict[str, float]]:
    """What an instance of a provider's type draws in vCPU and GPU; only where a quota counts so the catalog is read."""
    wanted = any(quota.unit in (VCPU, GPU) for quota in portfolio.quota)

    def amounts(provider: str, instance_type: str) -> dict[str, float]:
        if not wanted:
            return {}
        types = catalog().instance_types
        rows = np.flatnonzero(
            types.equals("provider", provider) & types.equals("instance_type", instance_type)
        )
        if not len(rows):
            return {}
        numbers = {VCPU: float(types["vcpus"][rows[0]]), GPU: float(types["accelerator_count"][rows[0]])}
        return {unit: number for unit, number in numbers.items() if number > 0}  # NaN: unknown

    return amounts


def check_quotas(
    loaded: LoadedPortfolio,
    ways: Ways,
    contexts: Sequence[Context],
    catalog: Callable[[], Catalog],
    tariffs: Tariffs,
) -> None:
    """Refuse quotas that match nothing and draws that no number converts into the quota's unit.

    Raises:
        InputError: every such quota with its place.
    """
    faults = [*_unknown_names(loaded, ways, contexts, catalog, tariffs), *_unknown_draws(loaded, ways)]
    if faults:
        raise loaded.source.error(faults)


def _unknown_names(
    loaded: LoadedPortfolio,
    ways: Ways,
    contexts: Sequence[Context],
    catalog: Callable[[], Catalog],
    tariffs: Tariffs,
) -> Iterator[Fault]:
    quotas = loaded.portfolio.quota
    sized = {(way.provider, name) for way in ways.all for name, unit in way.names if unit == QUOTA_UNITS}
    if all((quota.provider, quota.quota) in sized for quota in quotas) and not contexts:
        return
    sets = {id(item.market.offer_set): item.market.offer_set for item in contexts}  # runs share them
    tables: list[tuple[Table, Table]] = [(each.offers, each.types) for each in sets.values()]
    if not tables:
        tables = [(catalog().offers, catalog().instance_types)]
    # what one job's own offers name is known, whatever the other jobs may use
    first, *others = tables
    faults = list(quota_faults(quotas, ("quota",), *first, tariffs, sized))
    for pair in others:
        if not faults:
            return
        there = list(quota_faults(quotas, ("quota",), *pair, tariffs, sized))
        faults = [fault for fault in faults if fault in there]
    yield from faults


def _unknown_draws(loaded: LoadedPortfolio, ways: Ways) -> Iterator[Fault]:
    draws = ways.draws(loaded.portfolio.quota)
    for at, way in np.argwhere(np.isinf(draws.T)).tolist():
        quota, kind = loaded.portfolio.quota[at], ways.all[way].instance_type
        yield Fault(
            ("quota", at, "unit"),
            f"how many {quota.unit} a {kind} has is not known: give its candidates quota_units",
        )


def unused_quotas(loaded: LoadedPortfolio, ways: Ways) -> Iterator[str]:
    """Quotas that no candidate counts against."""
    used = ways.draws(loaded.portfolio.quota) > 0
    for at, quota in enumerate(loaded.portfolio.quota):
        if not used[:, at].any():
            yield f"no candidate counts against the quota {quota.provider}/{quota.region} {quota.quota}"


def over_before(portfolio: Portfolio, start: datetime) -> Iterator[str]:
    """Commitments that expire before the portfolio's start, mostly as their year is misspelt."""
    for own in portfolio.commitments:
        if own.expires is not None and end_moment(own.expires) <= start:
            name = f"{own.provider}/{own.region} {own.instance_type} ({own.purchase_option})"
            yield f"the commitment {name} expires before the start, {start:%Y-%m-%d}: no job runs on it; check its year"


def commitment_notes(
    portfolio: Portfolio, table: CandidateTable, ways: Sequence[Way], start: datetime
) -> Iterator[str]:
    """What the reader should know of commitments and candidates that do not match, or that the catalog does not have.

    Args:
        portfolio: its commitments, pools in their order.
        table: candidates of all jobs.
        ways: what the table's numbers mean.
        start: of the portfolio.
    """
    yield from over_before(portfolio, start)
    for number, own in enumerate(portfolio.commitments):
        if not (table.pool == number).any():
            name = f"{own.provider}/{own.region} {own.instance_type} ({own.purchase_option})"
            yield f"no candidate draws on the commitment {name}: compare its names with those of the candidates"
    sized = (table.source < 0)[:, None] & (table.way >= 0)
    listed = [ways[code] for code in distinct_values(table.way[sized]).tolist()]
    yield from unlisted_names((way.provider, way.instance_type, way.purchase_option) for way in listed)
    loose = sized & (table.pool < 0)
    for code in distinct_values(table.way[loose]).tolist():
        way = ways[code]
        if way.purchase_option in PAID_ALREADY:
            name = f"{way.provider}/{way.region} {way.instance_type} ({way.purchase_option})"
            yield f"as many {name} as wanted are assumed: no commitment of this file limits them; list it"
