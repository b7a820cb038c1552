"""`optimize --quota live`: the account's own limits beside the declared ones. Never on the default path."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from catalogs.offers.overlays import PriceNote
from planner.inputs.schema import QuotaLimit
from planner.market.quota import known_quotas

if TYPE_CHECKING:
    from collections.abc import Iterable

    from catalogs.providers.quotas import LiveQuotas
    from planner.candidates.context import Context

KEY = "quota.live."  # and the provider: key of a note on what was not read


class AccountLimit(QuotaLimit):
    """A limit that the account's provider tells."""

    read_at: str

    @property
    def whose(self) -> str:
        """Whose limit it is, and when it was read."""
        return f"account's limit (read {self.read_at[:16].replace('T', ' ')} UTC)"


def with_live_quotas(context: Context) -> Context:
    """Return the run with the account's limits added to those the workload declares.

    Only quotas that the planner's rules know are taken; what could not be read is told as a warning and stays
    "not checked".
    """
    from catalogs.providers.quotas import fetch_live_quotas
    from planner.candidates.sources import asked_of

    asked = asked_of(context.asked.workload.constraints)
    return apply_quotas(context, fetch_live_quotas(asked.providers, asked.regions))


def apply_quotas(context: Context, live: LiveQuotas) -> Context:
    """Add the limits of `live` to the run's workload.

    Args:
        context: the planning run.
        live: what the account allows, and what could not be read.
    """
    providers = {quota.provider for quota in live.quotas}
    offers, types = context.market.offer_set.offers, context.market.offer_set.types
    known = {
        name: _spellings(known_quotas(offers, types, context.market.tariffs, name)) for name in providers
    }
    limits = []
    for quota in live.quotas:
        names = (known[quota.provider].get(_spelt(text)) for text in (quota.code, quota.quota) if text)
        name = next((text for text in names if text is not None), None)
        if name is not None:
            limits.append(
                AccountLimit(
                    provider=quota.provider, region=quota.region, quota=name, unit=quota.unit,
                    limit=quota.limit, read_at=quota.as_of,
                )
            )  # fmt: skip
    constraints = context.asked.workload.constraints
    constraints = constraints.model_copy(update={"quota": (*constraints.quota, *limits)})
    notes = tuple(
        PriceNote(f"quota of {place} not read: {text}", True, KEY + place.split()[0])
        for place, text in sorted(live.failures.items())
    )
    workload = context.asked.workload.model_copy(update={"constraints": constraints})
    offer_set = replace(context.market.offer_set, notes=(*context.market.offer_set.notes, *notes))
    return context.with_asked(replace(context.asked, workload=workload), offer_set)


def _spellings(names: Iterable[str]) -> dict[str, str]:
    """Names by their letters."""
    return {_spelt(name): name for name in names}


def _spelt(name: str) -> str:
    """A name by its letters: accounts spell one quota with other cases and blanks."""
    return name.replace(" ", "").lower()
