"""What a cluster needs of the account's quotas; a listed price is not availability."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from planner.plan.model import QuotaNeed

if TYPE_CHECKING:
    from planner.candidates.context import Context

UNKNOWN = "unknown quota"


def needed_quota(context: Context, row: int, nodes: int) -> QuotaNeed:
    """Return the quota that `nodes` instances of offer `row` count against, "not checked" unless declared.

    Args:
        context: offers, tariffs and the workload's declared quotas.
        row: offer.
        nodes: instances.
    """
    offer_set = context.offer_set
    kind = int(offer_set.type_of_offer[row])
    types, offers = offer_set.types, offer_set.offers
    provider = str(offers["provider"][row])
    family, accelerator = str(types["family"][kind]), str(types["accelerator"][kind])
    rule = context.tariffs.quota_rule(provider, family, accelerator, str(offers["purchase_option"][row]))
    if rule is None:
        return QuotaNeed(UNKNOWN, "", provider, "instances", float(nodes), None, "not checked")
    each = types["vcpus"][kind] if rule.unit == "vCPU" else types["accelerator_count"][kind]
    needed = float(each) * nodes
    limit = _declared(context, provider, str(offers["region"][row]), {rule.name, rule.code, family})
    status = (
        "not checked"
        if limit is None
        else ("within the declared limit" if needed <= limit else "above the limit")
    )
    return QuotaNeed(rule.name, rule.code, rule.scope, rule.unit, needed, limit, status)


def _declared(context: Context, provider: str, region: str, names: set[str]) -> float | None:
    limits = [
        quota.limit
        for quota in context.workload.constraints.quota
        if quota.provider == provider and fnmatchcase(region, quota.region) and quota.quota in names
    ]
    return min(limits) if limits else None
