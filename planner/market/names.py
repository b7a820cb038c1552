"""Names in the workload that only the catalog can check: an unknown one is an error, never an empty result."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from catalogs.offers.flags import admit_offers
from catalogs.offers.naming import fitting_names
from catalogs.patterns import matches
from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.model import places_of
from catalogs.tables.table import distinct_values
from planner.inputs.faults import Fault, near
from planner.market.name_check import UNPRICED, NameCheck, residency_names, some_names
from planner.market.offers import match_globs, match_names
from planner.market.place_names import location_fault
from planner.market.quota import known_quotas
from planner.performance.constants import load_software

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from catalogs.tables.table import Bools, Table
    from catalogs.tariffs import Tariffs
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Constraints, QuotaLimit, Workload
    from planner.market.offers import OfferSet


def check_names(loaded: LoadedWorkload, offer_set: OfferSet, tariffs: Tariffs) -> None:
    """Refuse providers, regions, types, accelerators, groups and quotas that the catalog does not have.

    Patterns are checked too: one that matches nothing is most likely a typing error.

    Raises:
        InputError: every unknown name with its place and the nearest known one.
    """
    faults = name_faults(loaded.workload, offer_set, tariffs)
    if faults:
        raise loaded.error(faults)


def accelerator_faults(path: tuple[str | int, ...], name: str) -> list[Fault]:
    """The fault at `path` where `name` is not an accelerator id, with the nearest one; none where it is."""
    known = [str(one) for one in load_accelerators()["accelerator"]]
    if name in known:
        return []
    text = f"{name!r} is not an accelerator id; `planner catalog list --accelerator` knows them"
    return [Fault(path, text, near(name, known))]


def name_faults(workload: Workload, offer_set: OfferSet, tariffs: Tariffs) -> list[Fault]:
    """Every name of a workload that the catalog does not have, with the nearest known one."""
    offers, types = offer_set.offers, offer_set.types
    providers = sorted({*types.coded("provider").values, *offers.coded("provider").values} - {""})
    places = offer_set.once("place_names", lambda: sorted(places_of(offers).values))
    checks = [*_constraint_checks(workload.constraints, types, providers, places)]
    if workload.baseline is not None:
        base = workload.baseline
        kinds, place = types.coded("instance_type").values, f"{base.provider}/{base.region}"
        checks.append(
            NameCheck(("baseline", "instance_type"), [base.instance_type], kinds, "instance type", False)
        )
        checks.append(NameCheck(("baseline", "region"), [place], places, "region", False))
    faults = [fault for check in checks for fault in check.faults()]
    limits = workload.constraints
    if limits.obtainable or limits.waiting or limits.waited:
        # imports pydantic, which most questions do without
        from planner.market.capacity_names import capacity_faults

        faults += capacity_faults(limits, offers, providers, places)
    faults += quota_faults(workload.constraints.quota, ("constraints", "quota"), offers, types, tariffs)
    faults += _unpriced(workload.constraints, offer_set) if not faults else []
    providers_sold = {place.partition("/")[0] for place in places}
    lies = location_fault(("data", "location"), workload.data.location, providers_sold, places)
    faults += [lies] if lies is not None else []
    return faults


def _unpriced(limits: Constraints, offer_set: OfferSet) -> Iterator[Fault]:
    """Yield a fault where all that `allow` names is in the catalog, and no price of it is."""
    types = offer_set.types
    sold = np.zeros(types.n_rows, dtype=np.bool_)
    sold[offer_set.type_of_offer] = True
    for key, rule in (("accelerators", limits.accelerators), ("instance_types", limits.instance_types)):
        column = types.coded(key.removesuffix("s"))
        named = match_names(column, rule.allow or ())
        if rule.allow and named.any() and not (named & sold).any():
            found = sorted({column.values[code] for code in column.codes[named]})
            yield Fault(("constraints", key, "allow"), UNPRICED.format(", ".join(found)))
    yield from _unpriced_software(limits, offer_set, sold)
    missing = _options_without_price(limits, offer_set)
    if missing and len(missing) == len(set(limits.purchase_options or ())):
        yield Fault(("constraints", "purchase_options"), UNPRICED.format(", ".join(missing)))


def _options_without_price(limits: Constraints, offer_set: OfferSet) -> list[str]:
    """The purchase options asked for that nothing is priced by."""
    if not limits.purchase_options:
        return []
    options = offer_set.offers.coded("purchase_option")
    priced = {options.values[code] for code in set(options.codes[offer_set.usd_per_hour >= 0].tolist())}
    return [option for option in dict.fromkeys(limits.purchase_options) if option not in priced]


def _unpriced_software(limits: Constraints, offer_set: OfferSet, sold: Bools) -> Iterator[Fault]:
    """Yield a fault where no machine that runs the software asked for has a price."""
    vendors = offer_set.hardware.coded("vendor")
    runs = [load_software().get(vendor, "any") in (limits.software or ("any",)) for vendor in vendors.values]
    fits = np.asarray(runs, dtype=np.bool_)[vendors.codes][offer_set.hardware_of_type]
    if limits.software is None or "any" in limits.software or not fits.any() or (fits & sold).any():
        return
    column = offer_set.types.coded("accelerator")
    known = sorted({column.values[code] for code in column.codes[fits]})
    asked = f"software {' or '.join(limits.software)} ({', '.join(known)})"
    yield Fault(("constraints", "software"), UNPRICED.format(asked))


def name_notes(limits: Constraints, offer_set: OfferSet) -> Iterator[str]:
    """Yield what short names in `allow` and `deny` stand for, and which machines named have no price or are retired.

    Args:
        limits: the workload's limits.
        offer_set: what can be bought; offers in regions that are not allowed count as none.
    """
    for key, rule in (("accelerators", limits.accelerators), ("instance_types", limits.instance_types)):
        known = offer_set.types.coded(key.removesuffix("s")).values
        for side, names in (("allow", rule.allow or ()), ("deny", rule.deny)):
            found = {name: sorted(fitting_names(name, known)) for name in names if not set("*?[") & set(name)}
            said = [
                f"{name} stands for {some_names(fits)}"
                for name, fits in found.items()
                if name.lower() not in map(str.lower, fits)
            ]
            if said:
                yield f"{key}.{side}: {'; '.join(said)}"
    yield from _retired_alone(limits, offer_set.types)
    yield from _without_price(limits, offer_set)
    yield from _refused_alone(limits, offer_set)
    yield from _without_option(limits, offer_set)
    yield from _other_names(limits, offer_set)


def _retired_alone(limits: Constraints, types: Table) -> Iterator[str]:
    """Yield the patterns over instance types that only retired ones fit, which a pattern does not admit."""
    column, retired = types.coded("instance_type"), types.equals("status", "retired")
    for pattern in limits.instance_types.allow or ():
        fits = match_names(column, [pattern])
        if set("*?[") & set(pattern) and fits.any() and retired[fits].all():
            names = some_names({column.values[code] for code in column.codes[fits]})
            yield f"instance_types.allow: {pattern} fits retired types alone, used only by name: {names}"


def _other_names(limits: Constraints, offer_set: OfferSet) -> Iterator[str]:
    """Yield the providers that patterns over regions leave out by the way they name them, where none was chosen."""
    patterns = limits.regions or ()
    chosen = limits.providers is not None or limits.residency is not None
    if chosen or not patterns or any("/" in one or "*" not in one for one in patterns):
        return
    places = [place.partition("/")[::2] for place in places_of(offer_set.offers).values]
    counts = Counter(provider for provider, _ in places)
    fits = {provider for provider, region in places if any(matches(one, region) for one in patterns)}
    left_out = sorted(provider for provider, count in counts.items() if count > 1 and provider not in fits)
    if left_out:
        names = f"{', '.join(patterns)} fits no name of {', '.join(left_out)}"
        yield f"regions: {names}; residency names countries and groups of all providers"


def _without_option(limits: Constraints, offer_set: OfferSet) -> Iterator[str]:
    """Yield the purchase options asked for that nothing, or no machine named in `allow`, has a price of."""
    nowhere = _options_without_price(limits, offer_set)
    if nowhere:
        yield f"no price of {', '.join(nowhere)}, so not considered (planner catalog refresh)"
    if limits.purchase_options is None or not limits.instance_types.allow:
        return
    types, offers = offer_set.types, offer_set.offers
    named = match_names(types.coded("instance_type"), limits.instance_types.allow)
    mine = np.flatnonzero(named[offer_set.type_of_offer] & (offer_set.usd_per_hour >= 0))
    keys = offers.take(mine).distinct_keys("instance_type", "purchase_option")[1]
    for option in (one for one in limits.purchase_options if one not in nowhere):
        sold = {kind for kind, way in keys if way == option}
        missing = sorted({kind for kind, _ in keys} - sold)
        if missing:
            yield f"{option} is unpriced, so not considered, for {some_names(missing)}"


def _without_price(limits: Constraints, offer_set: OfferSet) -> Iterator[str]:
    """Yield the machines that `allow` names and that nobody prices in the requested regions."""
    types, offers = offer_set.types, offer_set.offers
    wanted = np.ones(types.n_rows, dtype=np.bool_)
    for column, rule in (("accelerator", limits.accelerators), ("instance_type", limits.instance_types)):
        if rule.allow:
            wanted &= match_names(types.coded(column), rule.allow)
    here = offer_set.usd_per_hour >= 0
    if limits.regions is not None:
        here = here & match_globs(places_of(offers), limits.regions)
    wanted[offer_set.type_of_offer[here]] = False
    if (limits.instance_types.allow or limits.accelerators.allow) and wanted.any():
        where = "" if limits.regions is None else " in the requested regions"
        names = sorted({str(name) for name in types["instance_type"][wanted]})
        yield f"no price{where}, so not considered: {some_names(names)}"


def _refused_alone(limits: Constraints, offer_set: OfferSet) -> Iterator[str]:
    """Yield what a limit names and of which every price carries a refusing flag: offers of hosts, say."""
    if limits.allow_flagged:
        return
    offers = offer_set.offers
    tolerated = frozenset({"retired"})  # of machines that a workload names
    admitted = offer_set.once(
        "sold_before", lambda: admit_offers(offers, allow_flagged=False, tolerated=tolerated).mask
    )
    named = [(name, offers.equals("provider", name)) for name in limits.providers or ()]
    for column, rule in (("accelerator", limits.accelerators), ("instance_type", limits.instance_types)):
        types = offer_set.types.coded(column)
        named += [(name, match_names(types, [name])[offer_set.type_of_offer]) for name in rule.allow or ()]
    alone = [name for name, mine in named if mine.any() and not (mine & admitted).any()]
    if alone:
        yield f"every price of {', '.join(alone)} has a refusing flag: `--allow-flagged` allows them"


def quota_faults(
    limits: Sequence[QuotaLimit],
    at: tuple[str | int, ...],
    offers: Table,
    types: Table,
    tariffs: Tariffs,
    sized: Collection[tuple[str, str]] = (),
) -> Iterator[Fault]:
    """Yield what is wrong with declared quotas: a name, region or provider that matches nothing, an unclear unit.

    Args:
        limits: the declared quotas.
        at: path of their list.
        offers: what can be bought.
        types: instance types.
        tariffs: quota rules.
        sized: (provider, name) that candidates sized elsewhere count against.
    """
    providers = {*types.coded("provider").values, *offers.coded("provider").values} - {""}
    known = {limit.provider: known_quotas(offers, types, tariffs, limit.provider) for limit in limits}
    for position, limit in enumerate(limits):
        path = (*at, position)
        if (limit.provider, limit.quota) in sized and limit.quota not in known[limit.provider]:
            continue
        if limit.provider not in providers:
            text = f"no provider called {limit.provider!r} in the catalog"
            yield Fault((*path, "provider"), text, near(limit.provider, providers))
            continue
        mine = offers.take(offers.equals("provider", limit.provider)).distinct_keys("region")[1]
        regions = sorted(region for (region,) in mine)
        if not any(matches(limit.region, region) for region in regions):
            text = f"no region of {limit.provider} matches {limit.region!r}"
            yield Fault((*path, "region"), text, near(limit.region, regions))
        yield from _quota_name_faults(limit, path, known[limit.provider], tariffs)


def _quota_name_faults(
    limit: QuotaLimit,
    path: tuple[str | int, ...],
    known: Mapping[str, Mapping[str, set[str]]],
    tariffs: Tariffs,
) -> Iterator[Fault]:
    name, provider = limit.quota, limit.provider
    where, option = (*path, "quota"), getattr(limit, "purchase_option", None)
    if name not in known:
        other = tariffs.unapplied_quota(provider, name)
        worded = [one for one in known if name.lower() in one.lower().split()]
        same = next((one for one in known if one.lower() == name.lower()), "")
        hint = "" if other else same or ("" if worded else near(name, known))
        if other:
            text = f"{name!r} ({other}) is not a quota that the planner can apply"
        else:
            text = f"no quota of {provider} is called {name!r}"
        if not hint:
            text += f"; write one of: {some_names(worded or known)}"
        yield Fault(where, text, hint)
        return
    units = {unit for unit, options in known[name].items() if option is None or option in options}
    if not units:
        options = sorted(set().union(*known[name].values()))
        text = f"nothing bought as {option} counts against {name!r}: it covers {', '.join(options)}"
        yield Fault((*path, "purchase_option"), text)
    elif len(units) > 1 and limit.unit is None:
        text = f"{name!r} counts in {' or '.join(sorted(units))}, by purchase option: set 'unit'"
        yield Fault(where, text)


def _constraint_checks(
    limits: Constraints, types: Table, providers: Sequence[str], places: Sequence[str]
) -> Iterator[NameCheck]:
    at = "constraints"
    yield NameCheck((at, "providers"), limits.providers or (), providers, "provider")
    regions = sorted({place.partition("/")[2] for place in places})
    for position, pattern in enumerate(limits.regions or ()):
        known = places if "/" in pattern else regions
        yield NameCheck((at, "regions", position), [pattern], known, "region", False)
    if limits.residency:
        groups = [name.lower() for name in limits.residency]
        how = "write a group such as eu or us, or a country by its two letters, such as de"
        yield NameCheck((at, "residency"), groups, residency_names(), "residency group", hint=how)
    rules = {"accelerators": limits.accelerators, "instance_types": limits.instance_types}
    known_by = {key: sorted(types.coded(key.removesuffix("s")).values) for key in rules}
    for (key, rule), other in zip(rules.items(), reversed(rules), strict=True):
        what = key.removesuffix("s").replace("_", " ")
        for side, names in (("allow", rule.allow), ("deny", rule.deny)):
            yield NameCheck(
                (at, key, side), names or (), known_by[key], what, is_machine=True,
                elsewhere=(f"{at}.{other}", known_by[other]),
            )  # fmt: skip


def unknown_part(
    offers: Table, provider: str | None, region: str | None, instance_type: str | None
) -> tuple[str, str]:
    """Which of an offer's names the catalog does not have, the first of them, and one that is written like it.

    Returns:
        `provider`, `region` or `instance_type`, empty where it has each; and the near name, empty without one.
    """
    rows = np.ones(offers.n_rows, dtype=np.bool_)
    for key, name in (("provider", provider), ("region", region), ("instance_type", instance_type)):
        if name is None:
            continue
        known = sorted({str(one) for one in distinct_values(offers[key][rows])})
        if name not in known:
            folded = next((one for one in known if one.casefold() == name.casefold()), "")
            return key, folded or near(name, known)
        if key == "provider":  # a region and a type are each the provider's, not one the other's
            rows = offers.equals(key, name)
    return "", ""
