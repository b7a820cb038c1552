"""The answer of `planner tco`: every way to have the machine's work, what each costs, and what decides between them."""

from __future__ import annotations

from dataclasses import field
from datetime import date
from typing import TYPE_CHECKING

from planner.owning.checks import checks_of
from planner.owning.cloud import Market, market_of
from planner.owning.figures import figures_of, pairs_of
from planner.owning.handover import handover_of
from planner.owning.inputs import (
    accelerator_share,
    machine_factors,
    part_lines,
    quotes,
    resales,
    residual_years,
    site_factors,
    sites,
)
from planner.owning.model import (
    Bar,
    Check,
    Factor,
    Figures,
    Fixed,
    Handover,
    Pair,
    PartLine,
    Quote,
    Resale,
    Spread,
)
from planner.owning.tornado import ends_of, named, spreads, tornado
from planner.plan.model import CatalogSource
from planner.records import record
from planner.render.presentable import Presentable

if TYPE_CHECKING:
    from pathlib import Path

    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.inputs.tco_load import LoadedTco


@record(frozen=True)
class TcoAnswer(Presentable):
    """Buy or rent, over the machine's life.

    Attributes:
        sha256: of the question's file.
        start: of use.
        factors: every input with its range and origin.
        fixed: what has no range.
        figures: all ways with every factor at its centre.
        spreads: cost per useful hour of each way with the interval of all ranges together.
        own, rent: the cheapest site and the cheapest way to rent.
        pairs: every site against every way to rent.
        bars: what moves the saving of `own` against `rent` per useful hour, widest first.
        missing: options asked for that the catalog has no fitting price of.
    """

    REPORT = "planner.owning.report:tco_report"
    __repr__ = Presentable.__repr__

    name: str
    sha256: str
    created_at: str
    start: date
    accelerator: str
    factors: tuple[Factor, ...]
    fixed: Fixed
    figures: Figures
    spreads: tuple[Spread, ...]
    own: str
    rent: str
    pairs: tuple[Pair, ...]
    bars: tuple[Bar, ...]
    parts: tuple[PartLine, ...]
    quotes: tuple[Quote, ...]
    checks: tuple[Check, ...]
    resales: tuple[Resale, ...]
    handover: Handover
    missing: tuple[str, ...] = ()
    sources: tuple[CatalogSource, ...] = field(default=())

    @property
    def best(self) -> str:
        """Name of the way that costs least per useful hour."""
        ways = (*self.figures.own, *self.figures.rent)
        return min(ways, key=lambda way: (way.usd_per_useful_hour, way.name)).name

    @property
    def pair(self) -> Pair:
        """The cheapest site against the cheapest way to rent."""
        return next(pair for pair in self.pairs if (pair.own, pair.rent) == (self.own, self.rent))

    def spread(self, name: str) -> Spread:
        """Cost per useful hour of a way."""
        return next(item for item in self.spreads if item.name == name)


def plan_tco(loaded: LoadedTco, options: Options, *, catalog_dir: Path | None = None) -> TcoAnswer:
    """Answer a file of `planner tco`.

    Args:
        loaded: the file.
        options: the day whose prices count.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: an accelerator is not known, or nothing that could be rented fits.
        CatalogError: the catalog cannot be used.
    """
    from catalogs.store.load import load_catalog
    from planner.plan.model import sources_of

    refuse_unknown(loaded)
    tco, day = loaded.tco, options.now.date()
    catalog = load_catalog(catalog_dir, as_of=options.as_of)
    factors = [*machine_factors(loaded), *site_factors(tco)]
    years = next(factor.value for factor in factors if factor.key == "years")
    market = _market(loaded, options, catalog, tco.start or day, years, catalog_dir)
    factors += market.factors
    fixed = Fixed(
        tco.machine.accelerators, tco.machine.machines, tuple(name for name, _ in sites(tco)), accelerator_share(tco),
        float(tco.upkeep.warranty_years), residual_years(tco), market.rents,
    )  # fmt: skip
    values = {factor.key: factor.value for factor in factors}
    figures, ends = figures_of(values, fixed), ends_of(factors, fixed)
    best_site, rent = (_cheapest(figures, mine) for mine in (True, False))
    cost = named(figures, best_site).usd_per_useful_hour
    return TcoAnswer(
        tco.name, loaded.sha256, options.now.isoformat(timespec="minutes"), tco.start or day, tco.machine.accelerator,
        tuple(factors), fixed, figures, spreads(figures, ends), best_site, rent, pairs_of(values, fixed, figures),
        tornado(factors, ends, figures, best_site, rent), part_lines(tco), quotes(tco), checks_of(tco), resales(),
        handover_of(tco, best_site, values, fixed, cost), market.missing, sources_of(catalog),
    )  # fmt: skip


def _market(
    loaded: LoadedTco, options: Options, catalog: Catalog, start: date, years: float, catalog_dir: Path | None
) -> Market:
    if loaded.tco.cloud.workload is not None:
        from planner.owning.by_workload import market_by_workload

        return market_by_workload(loaded, options, catalog_dir)
    return market_of(loaded, catalog, options.now.date(), start, years)


def refuse_unknown(loaded: LoadedTco) -> None:
    """Refuse an accelerator that is not known.

    Raises:
        InputError: names the place and the nearest id.
    """
    from planner.market.names import accelerator_faults

    faults = accelerator_faults(("machine", "accelerator"), loaded.tco.machine.accelerator)
    if faults:
        raise loaded.document.source.error(faults)


def _cheapest(figures: Figures, own: bool) -> str:
    ways = figures.own if own else figures.rent
    return min(ways, key=lambda way: (way.usd_per_useful_hour, way.name)).name
