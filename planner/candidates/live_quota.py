"""`optimize --quota live`: the account's own limits as declared quotas. Never on the default path."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from catalogs.offers.overlays import PriceNote
from planner.market.quota import known_quotas

if TYPE_CHECKING:
    from catalogs.quotas import LiveQuotas
    from planner.candidates.context import Context


def with_live_quotas(context: Context) -> Context:
    """Return the run with the account's limits added to those the workload declares.

    Only quotas that the planner's rules know are taken; what could not be read is told as a warning and stays
    "not checked".
    """
    from catalogs.providers.registry import DEFAULT
    from catalogs.quotas import fetch_live_quotas

    allowed = context.asked.workload.constraints.providers
    providers = [name for name in DEFAULT if allowed is None or name in allowed]
    return apply_quotas(context, fetch_live_quotas(providers))


def apply_quotas(context: Context, live: LiveQuotas) -> Context:
    """Add the limits of `live` to the run's workload.

    Args:
        context: the planning run.
        live: what the account allows, and what could not be read.
    """
    from planner.inputs.schema import QuotaLimit

    providers = {quota.provider for quota in live.quotas}
    offers, types = context.market.offer_set.offers, context.market.offer_set.types
    known = {name: known_quotas(offers, types, context.market.tariffs, name) for name in providers}
    limits = []
    for quota in live.quotas:
        name = next((text for text in (quota.code, quota.quota) if text in known[quota.provider]), None)
        if name is not None:
            limits.append(
                QuotaLimit(
                    provider=quota.provider,
                    region=quota.region,
                    quota=name,
                    unit=quota.unit,
                    limit=quota.limit,
                )
            )
    constraints = context.asked.workload.constraints
    constraints = constraints.model_copy(update={"quota": (*constraints.quota, *limits)})
    notes = tuple(
        PriceNote(f"quota of {place} not read: {text}", is_warning=True)
        for place, text in sorted(live.failures.items())
    )
    workload = context.asked.workload.model_copy(update={"constraints": constraints})
    offer_set = replace(context.market.offer_set, notes=(*context.market.offer_set.notes, *notes))
    return context.with_asked(replace(context.asked, workload=workload), offer_set)
