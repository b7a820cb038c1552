"""Account quotas: which quota an instance counts against, in which unit, and how much of it.

Used by jobs, fleets, portfolios and pipelines. A quota is identified by its name or code, an instance family, an
accelerator (`h100-80gb-sxm`) or an accelerator family (`h100`). Its limit is in the declared `unit`, converted by the
figures of each instance type; without one, in the quota's own unit: the provider's for a name or code, GPU for an
accelerator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.patterns import matches
from catalogs.tables.table import Floats, Table, distinct
from planner.plan.model import QuotaNeed
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from catalogs.tariffs import QuotaRule, Tariffs
    from planner.inputs.schema import QuotaLimit
    from planner.market.offers import OfferSet


UNKNOWN = "unknown quota"
VCPU, GPU, INSTANCES = "vCPU", "GPU", "instances"
UNITS = (VCPU, GPU, INSTANCES)


@record(frozen=True)
class Machine:
    """One instance as quotas see it.

    Attributes:
        provider, region, purchase_option: as in the catalog.
        names: names of the quotas that it counts against, each with the quota's own unit.
        amounts: amount per instance in each unit; unknown ones are left out.
        rule: the provider's own quota, None where it is not known.
    """

    provider: str
    region: str
    purchase_option: str
    names: Mapping[str, str]
    amounts: Mapping[str, float]
    rule: QuotaRule | None = None

    def draws_on(self, limit: QuotaLimit) -> bool:
        """Whether it counts against a declared limit (of this region)."""
        option = getattr(limit, "purchase_option", None)
        return (
            limit.provider == self.provider
            and limit.quota in self.names
            and matches(limit.region, self.region)
            and option in (None, self.purchase_option)
        )

    def unit_on(self, limit: QuotaLimit) -> str:
        """Unit of a declared limit that it counts against."""
        return limit.unit or self.names[limit.quota]

    def draw_on(self, limit: QuotaLimit) -> float:
        """Units of a declared limit per instance: 0 if it does not count against it, infinity if unknown."""
        return self.amounts.get(self.unit_on(limit), np.inf) if self.draws_on(limit) else 0.0


def machine_names(
    tariffs: Tariffs, provider: str, family: str, accelerator: str, option: str
) -> tuple[dict[str, str], QuotaRule | None]:
    """Names of the quotas that such a machine counts against, each with its own unit, and the provider's own quota.

    An instance family takes precedence over an accelerator family of the same name (`trn1`).
    """
    rule = tariffs.quota_rule(provider, family, accelerator, option)
    units = (tariffs.quota_rule(provider, family, accelerator, way) for way in (option, "on_demand", "spot"))
    own = next((known.unit for known in units if known is not None), INSTANCES)
    names = {accelerator.partition("-")[0]: GPU, accelerator: GPU, family: own}
    if rule is not None:
        names |= {rule.name: own, rule.code: own}
    names.pop("", None)
    return names, rule


def machine_of(offer_set: OfferSet, tariffs: Tariffs, row: int) -> Machine:
    """Offer `row` as quotas see it."""
    offers, types, kind = offer_set.offers, offer_set.types, int(offer_set.type_of_offer[row])
    provider, option = str(offers["provider"][row]), str(offers["purchase_option"][row])
    names, rule = machine_names(
        tariffs, provider, str(types["family"][kind]), str(types["accelerator"][kind]), option
    )
    numbers = {
        VCPU: float(types["vcpus"][kind]),
        GPU: float(types["accelerator_count"][kind]),
        INSTANCES: 1.0,
    }
    amounts = {unit: amount for unit, amount in numbers.items() if np.isfinite(amount)}
    return Machine(provider, str(offers["region"][row]), option, names, amounts, rule)


def quota_units(offer_set: OfferSet, tariffs: Tariffs, limit: QuotaLimit) -> Floats:
    """Units of a declared limit per instance of each offer, shape `(n_offers,)`.

    0 for offers that do not count against it; more than the limit where the amount is unknown.
    """
    offers = offer_set.offers
    hit = offers.equals("provider", limit.provider)
    if limit.region != "*":
        regions = offers.coded("region")
        match = np.asarray([matches(limit.region, text) for text in (*regions.values, "")])
        hit &= match[regions.codes]
    units = np.zeros(offers.n_rows)
    # what one instance takes depends on its type and purchase option, not on the place
    rows = np.flatnonzero(hit)
    option = offers.coded("purchase_option")
    _, first, way = distinct((offer_set.type_of_offer * len(option.values) + option.codes)[rows])
    each = [machine_of(offer_set, tariffs, row).draw_on(limit) for row in rows[first].tolist()]
    units[rows] = np.minimum(np.asarray(each, dtype=np.float64), 2.0 * limit.limit + 1.0)[way]
    return units


def draws_on(
    limits: Sequence[QuotaLimit], offer_set: OfferSet, tariffs: Tariffs
) -> tuple[tuple[float, Floats], ...]:
    """Each declared limit with its units per instance of each offer (`quota_units`)."""
    return offer_set.once(
        ("draws", tariffs, *limits),
        lambda: tuple((limit.limit, quota_units(offer_set, tariffs, limit)) for limit in limits),
    )


def needed_quota(
    offer_set: OfferSet, tariffs: Tariffs, limits: Sequence[QuotaLimit], row: int, nodes: int
) -> QuotaNeed:
    """Return the quota that `nodes` instances of offer `row` count against, "not checked" unless a limit is declared.

    Of several declared limits, the tightest, in its own unit.

    Args:
        offer_set: what can be bought.
        tariffs: quota rules.
        limits: the declared quotas.
        row: offer.
        nodes: instances.
    """
    machine = machine_of(offer_set, tariffs, row)
    rule = machine.rule
    name, code, scope = (
        (UNKNOWN, "", machine.provider) if rule is None else (rule.name, rule.code, rule.scope)
    )
    declared = [limit for limit in limits if machine.draws_on(limit)]
    if not declared:
        unit = INSTANCES if rule is None else rule.unit
        needed = machine.amounts.get(unit, np.nan) * nodes
        return QuotaNeed(name, code, scope, unit, needed, None, "not checked")

    tightest = max(declared, key=lambda limit: machine.draw_on(limit) * nodes / max(limit.limit, 1e-300))
    needed = machine.draw_on(tightest) * nodes
    whose = getattr(tightest, "whose", "declared limit")  # what the account tells says so itself
    status = f"within the {whose}" if needed <= tightest.limit else "above the limit"
    return QuotaNeed(
        tightest.quota if rule is None else name,
        code,
        scope,
        machine.unit_on(tightest),
        needed,
        tightest.limit,
        status,
    )


def known_quotas(
    offers: Table, types: Table, tariffs: Tariffs, provider: str
) -> dict[str, dict[str, set[str]]]:
    """Names of the quotas of `provider`, each with its own units and, per unit, the purchase options that it covers."""
    mine = types.take(types.equals("provider", provider))
    _, machines = mine.distinct_keys("instance_type", "family", "accelerator")
    sold: dict[str, set[str]] = {}
    own = offers.take(offers.equals("provider", provider))
    for kind, option in own.distinct_keys("instance_type", "purchase_option")[1]:
        sold.setdefault(kind, set()).add(option)
    known: dict[str, dict[str, set[str]]] = {}
    for kind, family, accelerator in machines:
        for option in sold.get(kind, {"on_demand"}):
            names, _ = machine_names(tariffs, provider, family, accelerator, option)
            for name, unit in names.items():
                known.setdefault(name, {}).setdefault(unit, set()).add(option)
    return known
