"""Names of places that stand outside the limits of a workload: where data lies, and where sized candidates run."""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from planner.inputs.faults import Fault, alike, by_provider, near
from planner.market.name_check import some_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from catalogs.tables.table import Table
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.inputs.portfolio_schema import SizedCandidate
    from planner.inputs.schema import OwnedCommitment

_MISSPELT = 0.9  # likeness of a name with two letters exchanged, as of `difflib`
_MISSPELT_PROVIDER = 0.85  # of a word with a letter too many or too few; `azure-stack` may be one's own
_MOST_PLACES = 500  # different ones of a file that are compared with the known ones: each takes a millisecond
_DIGITS = str.maketrans("", "", "0123456789")
AT_HOME = "onprem"
_Place = tuple[str, str]  # provider and region


def location_fault(
    path: tuple[str | int, ...], location: str | None, providers: Collection[str], places: Sequence[str] = ()
) -> Fault | None:
    """The fault at `path` where data lies in a place that is misspelt; None where it may be one.

    A place outside the catalog may still be priced by the transfer tables, but a misspelt one never is.

    Args:
        path: where the location is written.
        location: `provider/region`, `onprem`, or None (with the user).
        providers: those that may be named.
        places: known to be right, and suggested where a name is like them.
    """
    if location is None or location == AT_HOME or location in places:
        return None
    provider, _, region = location.partition("/")
    if not region or provider not in providers:
        text = f"{location!r} is not a place: write provider/region, or onprem"
        return Fault(path, text, near(location, [*places] or known_places()) or by_provider(location))
    meant = misspelt_region(location)
    return Fault(path, f"no region called {location!r} in the catalog", meant) if meant else None


def misspelt_region(place: str) -> str:
    """The known `provider/region` that `place` was meant for; "" where it is known, or is like none.

    One letter off a known region is misspelt; another number (ap-southeast-9) may be a region that is newer.
    """
    known = known_places()
    close = "" if place in known else near(place, known, cutoff=_MISSPELT)
    return close if close and _without_digits(close) != _without_digits(place) else ""


def check_portfolio_places(loaded: LoadedPortfolio) -> None:
    """Refuse misspelt places of the candidates that a portfolio lists, and of the data of its jobs.

    Raises:
        InputError: every such name with its place.
    """
    wrong = misspelt_places((item.provider, item.region) for job in loaded.jobs for item in job.candidates)
    own = {item.provider for job in loaded.jobs for item in job.candidates}
    lying = _misplaced(
        [job.data.location for job in loaded.jobs if job.data is not None], {*known_providers(), *own}
    )
    faults: list[Fault] = []
    listed = len(loaded.portfolio.jobs)
    for at, job in enumerate(loaded.jobs if wrong or lying else ()):
        faults += _candidate_faults(("jobs", at, "candidates"), job.candidates, wrong)
        found = None if job.data is None else lying.get(job.data.location)
        if found is not None:
            path = ("jobs", at, "data", "location") if at < listed else ("jobs_csv",)
            faults.append(Fault(path, found.message, found.did_you_mean))
    if faults:
        raise loaded.source.error(faults)


def check_pipeline_places(loaded: LoadedPipeline) -> None:
    """Refuse misspelt places of the candidates that a pipeline lists.

    Raises:
        InputError: every such name with its place.
    """
    tasks = loaded.pipeline.tasks
    wrong = misspelt_places((item.provider, item.region) for task in tasks for item in task.candidates)
    faults: list[Fault] = []
    for at, task in enumerate(tasks):
        faults += _candidate_faults(("tasks", at, "candidates"), task.candidates, wrong)
    if faults:
        raise loaded.source.error(faults)


def misspelt_places(places: Iterable[_Place]) -> dict[_Place, tuple[str, str, str]]:
    """Of places (provider and region) of sized candidates, those that are misspelt.

    Other places than the catalog's are the user's own, so only what is like a known name is refused; of very many
    different ones the first.

    Returns:
        By place: the field that is wrong, what is wrong, and what was meant.
    """
    found = {place: _misspelt_field(*place) for place in islice(dict.fromkeys(places), _MOST_PLACES)}
    return {place: wrong for place, wrong in found.items() if wrong is not None}


def _misspelt_field(provider: str, region: str) -> tuple[str, str, str] | None:
    known = known_providers()
    if provider not in known:
        same_letters = [name for name in known if sorted(name) == sorted(provider.lower())]
        close = alike(provider, same_letters, cutoff=0.5) or alike(provider, known, cutoff=_MISSPELT_PROVIDER)
        return ("provider", f"no provider called {provider!r} in the catalog", close) if close else None
    meant = misspelt_region(f"{provider}/{region}")
    if not meant:
        return None
    return "region", f"no region of {provider} called {region!r} in the catalog", meant.partition("/")[2]


def _misplaced(locations: Iterable[str], providers: Collection[str]) -> dict[str, Fault]:
    """The faults of places of data, by place."""
    different = islice(dict.fromkeys(locations), _MOST_PLACES)
    found = {location: location_fault((), location, providers) for location in different}
    return {location: fault for location, fault in found.items() if fault is not None}


def _candidate_faults(
    path: tuple[str | int, ...],
    candidates: Sequence[SizedCandidate],
    wrong: Mapping[_Place, tuple[str, str, str]],
) -> Iterator[Fault]:
    for at, item in enumerate(candidates if wrong else ()):
        found = wrong.get((item.provider, item.region))
        if found is not None:
            yield Fault((*path, at, found[0]), *found[1:])


def unlisted_names(candidates: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """Notes on providers and types of sized candidates that the catalog does not have, though they may be right.

    Of types only those are named that are like a known one, and nothing of what is paid already.

    Args:
        candidates: provider, instance type and purchase option of each.
    """
    from planner.inputs.checks_of_jobs import PAID_ALREADY

    names = dict.fromkeys(
        (provider, kind) for provider, kind, option in candidates if option not in PAID_ALREADY
    )
    types = _listed_types() if names else {}
    own = sorted({provider for provider, _ in names} - {*types, *known_providers()})
    notes = [f"not in the catalog, so treated as your own providers: {', '.join(own)}"] if own else []
    for provider, name in islice(names, _MOST_PLACES):
        known = types.get(provider, ())
        close = "" if name in known else alike(name, known, cutoff=_MISSPELT)
        if close and _without_digits(close) != _without_digits(name):
            notes.append(f"no {provider} machine called {name} in the catalog: is {close} meant?")
    return tuple(notes)


def unsold_fault(path: tuple[str | int, ...], wanted: OwnedCommitment, offers: Table) -> Fault:
    """The fault at `path` of a commitment that no offer is like: its provider, region or type, whichever is wrong."""
    known = offers.keys_of("provider", "region", "instance_type")
    names = (wanted.provider, wanted.region, wanted.instance_type)
    at = next((at for at in range(2) if all(one[: at + 1] != names[: at + 1] for one in known)), 2)
    sold = sorted({one[at] for one in known if one[:at] == names[:at]})
    field = ("provider", "region", "instance_type")[at]
    where = f" in {wanted.provider}/{wanted.region}" if field == "instance_type" else ""
    elsewhere = sorted(
        {region for provider, region, name in known if (provider, name) == (names[0], names[2])}
    )
    if field == "instance_type" and elsewhere:
        text = f"no offer of {names[at]}{where} in the catalog; {names[0]} has it in {some_names(elsewhere)}"
        return Fault((*path, field), text)
    text = (
        f"no offer of {names[at]}{where} in the catalog; check the names with `planner catalog list` or add it to "
        "prices.offers"
    )
    if AT_HOME in names or wanted.purchase_option == "owned":
        text = (
            f"no offer of {names[at]}{where} in the catalog; machines that you own are described in a file that "
            "prices.offers names (such as examples/onprem-machines.yaml)"
        )
    return Fault((*path, field), text, near(names[at], sold))


@cache
def known_places() -> tuple[str, ...]:
    """`provider/region` of every region that the catalog lists, sold there or not."""
    from catalogs.tables.regions import load_regions

    return tuple(f"{row['provider']}/{row['region']}" for row in load_regions().rows())


@cache
def _listed_types() -> dict[str, list[str]]:
    """Instance types of the newest catalog by provider."""
    from catalogs.store.load import load_catalog

    found: dict[str, list[str]] = {}
    for provider, name in load_catalog().instance_types.keys_of("provider", "instance_type"):
        found.setdefault(provider, []).append(name)
    return found


@cache
def known_providers() -> tuple[str, ...]:
    """Providers of the listed regions."""
    return tuple(sorted({place.partition("/")[0] for place in known_places()}))


def _without_digits(name: str) -> str:
    return name.translate(_DIGITS)
