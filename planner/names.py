"""Names in the workload that only the catalog can check: an unknown one is an error, never an empty result."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from planner.offers import places_of
from planner.workload.faults import Fault, near

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from catalogs.tariffs import Tariffs
    from planner.errors import InputError
    from planner.offers import OfferSet
    from planner.workload.load import LoadedWorkload


def placed(loaded: LoadedWorkload, error: InputError) -> InputError:
    """Give an error of `path: message` lines the places of those paths in the workload file."""
    faults = []
    for line in str(error).splitlines():
        path, colon, message = line.partition(": ")
        if not colon or " " in path:
            return error
        faults.append(Fault(tuple(path.split(".")), message))
    return loaded.error(faults)


def known_quotas(offer_set: OfferSet, tariffs: Tariffs, provider: str) -> list[str]:
    """Names, codes and families that a declared quota of `provider` may go by."""
    offers, types = offer_set.offers, offer_set.types
    options = sorted(set(offers.take(offers.equals("provider", provider))["purchase_option"]))
    mine = types.take(types.equals("provider", provider))
    _, machines = mine.distinct_keys("family", "accelerator")
    known = {family for family, _ in machines}
    for family, accelerator in machines:
        for option in options:
            rule = tariffs.quota_rule(provider, family, accelerator, option)
            known |= {rule.name, rule.code} if rule is not None else set()
    return sorted(known - {""})


def check_names(loaded: LoadedWorkload, offer_set: OfferSet, tariffs: Tariffs) -> None:
    """Refuse providers, regions, types, accelerators and groups that no offer or instance type has.

    Patterns are checked too: one that matches nothing is most likely a typing error.

    Raises:
        InputError: every unknown name with its place and the nearest known one.
    """
    from catalogs.regions import residency_groups

    workload, offers, types = loaded.workload, offer_set.offers, offer_set.types
    limits = workload.constraints
    providers = sorted({*types.coded("provider").values, *offers.coded("provider").values} - {""})
    places = sorted(places_of(offers).values)
    regions = sorted({place.partition("/")[2] for place in places})
    groups = sorted({group for group in residency_groups().values() if group} | _countries())
    kinds, accelerators = (
        sorted(types.coded("instance_type").values),
        sorted(types.coded("accelerator").values),
    )
    faults: list[Fault] = []
    at = "constraints"

    def check(
        path: tuple[str | int, ...],
        names: Sequence[str] | None,
        known: Iterable[str],
        what: str,
        *,
        listed: bool = True,
    ) -> None:
        for position, name in enumerate(names or ()):
            pool = list(known)
            if not any(fnmatchcase(item, name) for item in pool):
                where = (*path, position) if listed else path
                faults.append(Fault(where, f"no {what} called {name!r} in the catalog", near(name, pool)))

    check((at, "providers"), limits.providers, providers, "provider")
    for position, pattern in enumerate(limits.regions or ()):
        pool = places if "/" in pattern else regions
        if not any(fnmatchcase(item, pattern) for item in pool):
            text = f"no region matching {pattern!r} in the catalog"
            faults.append(Fault((at, "regions", position), text, near(pattern, pool)))
    check((at, "residency"), [name.lower() for name in limits.residency or ()], groups, "residency group")
    for what, rule, pool in (
        ("accelerator", limits.accelerators, accelerators),
        ("instance type", limits.instance_types, kinds),
    ):
        key = what.replace(" ", "_") + "s"
        check((at, key, "allow"), rule.allow, pool, what)
        check((at, key, "deny"), rule.deny, pool, what)
    if workload.baseline is not None:
        base = workload.baseline
        check(("baseline", "instance_type"), [base.instance_type], kinds, "instance type", listed=False)
        check(("baseline", "region"), [f"{base.provider}/{base.region}"], places, "region", listed=False)
    for position, quota in enumerate(limits.quota):
        check((at, "quota", position, "provider"), [quota.provider], providers, "provider", listed=False)
        check(
            (at, "quota", position, "quota"),
            [quota.quota],
            known_quotas(offer_set, tariffs, quota.provider),
            "quota",
            listed=False,
        )
    _check_location(workload.data.location, places, faults)
    if faults:
        raise loaded.error(faults)


def _check_location(location: str | None, places: list[str], faults: list[Fault]) -> None:
    """A place outside the catalog may still be priced by the transfer tables, but a misspelt one never is."""
    if location is None or location == "onprem" or location in places:
        return
    provider, _, region = location.partition("/")
    if not region or provider not in {place.partition("/")[0] for place in places}:
        text = f"{location!r} is not a place: write provider/region, or onprem"
        faults.append(Fault(("data", "location"), text, near(location, places)))


def _countries() -> set[str]:
    from catalogs.regions import load_regions

    table = load_regions()
    return {text.lower() for name in ("country", "continent") for text in table.coded(name).values if text}
