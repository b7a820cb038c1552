"""Prices a plan does not hold: on-demand of the same type, and moving a checkpoint to another region."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.advice.saved_plan import SpotPlan


def with_prices(plan: SpotPlan, regions: Collection[str] = ()) -> tuple[SpotPlan, tuple[str, ...]]:
    """The plan with its on-demand price and the price of moving its checkpoint, and notes on where they come from.

    Args:
        plan: of a saved plan.
        regions: the job may run in; several make the checkpoint's transfer cost.

    Raises:
        CatalogError: the catalog cannot be read.
    """
    notes: list[str] = []
    if plan.on_demand_usd_per_hour is None:
        price, note = _on_demand(plan)
        notes += [note] if note else []
        plan = replace(plan, on_demand_usd_per_hour=price)
    return replace(plan, egress_usd=_egress_usd(plan, {plan.region, *regions})), tuple(notes)


def _on_demand(plan: SpotPlan) -> tuple[float | None, str]:
    """USD per hour of the gang on-demand: in the plan's region, else the provider's cheapest, else None."""
    catalog, note = _catalog(plan)
    offers = catalog.offers
    hit = (
        offers.equals("provider", plan.provider)
        & offers.equals("instance_type", plan.instance_type)
        & offers.equals("purchase_option", "on_demand")
    )
    near = hit & offers.equals("region", plan.region)
    if not near.any() and hit.any():
        note = f"no on-demand price of {plan.instance_type} in {plan.region}: the provider's cheapest is used"
    rows = np.flatnonzero(near if near.any() else hit)
    if not len(rows):
        return None, note
    from catalogs.offers.query import usd_per_hour

    usd = usd_per_hour(offers.take(rows))
    usd = usd[np.isfinite(usd)]
    return (float(usd.min()) * plan.nodes if len(usd) else None), note


def _catalog(plan: SpotPlan) -> tuple[Catalog, str]:
    """The catalog the plan was made from; today's where it is no longer stored."""
    from catalogs.errors import CatalogError
    from catalogs.store.history import catalog_by_hash
    from catalogs.store.load import load_catalog
    from catalogs.store.read import is_named

    if is_named(None):
        return load_catalog(), ""
    try:
        return catalog_by_hash(plan.hashes), ""
    except CatalogError:
        return load_catalog(), "the prices used for this plan are no longer stored: current prices are used"


def _egress_usd(plan: SpotPlan, regions: Collection[str]) -> float:
    """Dearest transfer of one checkpoint from the plan's region to another of `regions`; 0 where nothing moves."""
    others = set(regions) - {plan.region}
    if plan.checkpoint_gb is None or not others:
        return plan.egress_usd
    from catalogs.tariffs import load_tariffs

    tariffs, dearest = load_tariffs(), plan.egress_usd
    for region in others:
        curve = tariffs.transfer_curve(plan.provider, plan.region, plan.provider, region)
        curve = curve or tariffs.dearest_internet_curve()
        dearest = max(dearest, float(curve.cost_usd(Decimal(repr(plan.checkpoint_gb)))))
    return dearest
