"""What each pool costs by each option, and which pools a plan covers: from the question and the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.inputs.purchase_options import COMMIT_OPTIONS
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.inputs.commit_schema import CommitQuestion, Pool

HOURS_PER_YEAR = 8760
PLACES = 6  # prices are whole micro-dollars
_SAME_RATIO = 1e-9


@record(frozen=True)
class Term:
    """One way to pay for a unit of a pool; `years` is 0 without obligation."""

    option: str
    variant: str
    usd_per_hour: float
    upfront_usd: float
    source: str
    as_of: str

    @property
    def years(self) -> int:
        """Length of the term."""
        return {"1y": 1, "3y": 3}.get(self.option[-2:], 0)

    @property
    def all_in(self) -> float:
        """USD per hour with the upfront spread over the term."""
        return self.usd_per_hour + (self.upfront_usd / (self.years * HOURS_PER_YEAR) if self.years else 0.0)


@record(frozen=True)
class Rates:
    """The terms of a pool, by (option, variant); `family` groups machines that share committed resources."""

    terms: dict[tuple[str, str], Term]
    family: str

    @property
    def on_demand(self) -> float:
        """USD per unit-hour without obligation."""
        return next(term.usd_per_hour for (option, _), term in self.terms.items() if option == "on_demand")

    @property
    def spot(self) -> float | None:
        """USD per unit-hour of spot; None without."""
        return next((term.usd_per_hour for (option, _), term in self.terms.items() if option == "spot"), None)

    @property
    def committed(self) -> list[Term]:
        """Terms with an obligation, by option and variant."""
        return [
            term for key, term in sorted(self.terms.items()) if key[0] in COMMIT_OPTIONS and term.all_in > 0
        ]


@record(frozen=True)
class Plan:
    """Dollars per hour that pools draw on at their `rate` per unit-hour, by number of the pool.

    `base` is the number of the plan whose rates are a constant multiple of these (its own number if none before it),
    and a dollar of this plan is worth `capacity` dollars at the rates of that one.
    """

    provider: str
    option: str
    variant: str
    rate: dict[int, float]
    term: Term
    base: int
    capacity: float


def rates_of(catalog: Catalog | None, pool: Pool, file: str) -> Rates:
    """Terms of a pool: those of the question come before the catalog's cheapest admitted ones."""
    terms, family = ({}, "") if catalog is None or pool.instance_type is None else _listed(catalog, pool)
    for option, usd in pool.prices.items():
        terms = {key: term for key, term in terms.items() if key[0] != option}
        upfront = next((float(due) for name, due in pool.upfront_usd.items() if name == option), 0.0)
        terms[option, ""] = Term(option, "", round(float(usd), PLACES), upfront, f"given in {file}", "")
    if not any(option == "on_demand" and term.usd_per_hour > 0 for (option, _), term in terms.items()):
        raise InputError(f"pool {pool.name}: the catalog has no on-demand price of {pool.instance_type}")
    return Rates(terms, family)


def _listed(catalog: Catalog, pool: Pool) -> tuple[dict[tuple[str, str], Term], str]:
    from catalogs.offers.flags import admit_offers
    from catalogs.tariffs import load_tariffs

    offers = catalog.offers
    hit = admit_offers(offers, allow_flagged=False).mask.copy()
    for name in ("provider", "region", "instance_type"):
        hit &= offers.equals(name, getattr(pool, name))
    rows = []
    for row in offers.take(hit.nonzero()[0]).rows():
        # the newest dated rate: a question about years to come is of no single day
        rate = float(load_tariffs().usd_per(str(row["currency"]), None).rate)
        ids = (row[name] or "-" for name in ("region", "zone", "purchase_option", "option_variant"))
        rows.append((float(row["price_per_hour"]) * rate, "/".join(map(str, ids)), rate, row))
    terms: dict[tuple[str, str], Term] = {}
    for usd, _, rate, row in sorted(rows, key=lambda one: one[:2]):
        option = str(row["purchase_option"])
        key = (option, str(row["option_variant"] or ""))
        if key in terms or not usd > 0 or option not in ("on_demand", "spot", *COMMIT_OPTIONS):
            continue
        upfront = float(row["upfront_per_instance"] or 0.0)
        upfront = 0.0 if isnan(upfront) else upfront * rate
        terms[key] = Term(*key, round(usd, PLACES), round(upfront, 2), str(row["source"]), str(row["as_of"]))
    kinds = catalog.instance_types
    of = kinds.equals("provider", pool.provider) & kinds.equals("instance_type", str(pool.instance_type))
    at = of.nonzero()[0]
    return terms, str(kinds.row(int(at[0]))["family"]) if len(at) and rows else ""


def plans_of(question: CommitQuestion, rates: Sequence[Rates]) -> list[Plan]:
    """Plans that several pools draw on: savings plans of a provider, committed use of a family in a region."""
    allowed = {*question.options.allow, *(commitment.purchase_option for commitment in question.commitments)}
    groups: dict[tuple[str, ...], dict[int, Term]] = {}
    for number, (pool, rate) in enumerate(zip(question.pools, rates, strict=True)):
        for term in rate.committed:
            if term.option in allowed and not term.option.startswith("reserved"):
                cud = term.option.startswith("cud")
                scope = (pool.region, rate.family or f"pool {number}") if cud else ()
                groups.setdefault((term.option, term.variant, pool.provider, *scope), {})[number] = term
    plans: list[Plan] = []
    for (option, variant, provider, *place), terms in groups.items():
        if place and len(terms) == 1:  # of a single pool: bought by the unit
            continue
        usd = {number: round(term.all_in, PLACES) for number, term in terms.items()}
        base, capacity = _base(plans, usd)
        plans.append(Plan(provider, option, variant, usd, next(iter(terms.values())), base, capacity))
    return plans


def _base(plans: Sequence[Plan], rate: dict[int, float]) -> tuple[int, float]:
    for at, plan in enumerate(plans):
        if plan.base == at and plan.rate.keys() == rate.keys():
            ratios = [plan.rate[number] / rate[number] for number in rate]
            if max(ratios) - min(ratios) <= _SAME_RATIO * max(ratios):
                return at, ratios[0]
    return len(plans), 1.0


def owned_plan(plans: Sequence[Plan], provider: str | None, option: str) -> Plan:
    """The plan that an owned savings plan is of."""
    for plan in plans:
        if (plan.provider, plan.option) == (provider, option):
            return plan
    raise InputError(f"commitments: no pool of {provider} has a price for {option}")
