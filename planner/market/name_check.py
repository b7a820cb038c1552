"""One check of names against those of the catalog: what matches nothing is a fault that says what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from catalogs.offers.naming import fits_name, known_accelerators
from catalogs.patterns import matches
from catalogs.tables.accelerators import load_accelerators
from planner.inputs.faults import Fault, near

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

_WILDCARDS = frozenset("*?[")
_LEAST_LETTERS = 4  # of a city or country that the names of regions are searched for
_FEW = 12  # names that a message lists whole
UNPRICED = "no offers with prices for {}: refresh the catalog, or name another"


class NameCheck(NamedTuple):
    """Names at `path` (a list's items where `listed`) that must each match one of `known`, as patterns.

    `elsewhere`: a key and names that may stand there: what matches those alone is sent to that key.
    """

    path: tuple[str | int, ...]
    names: Sequence[str]
    known: Sequence[str]
    what: str
    listed: bool = True
    is_machine: bool = False
    hint: str = "planner catalog list shows them"
    elsewhere: tuple[str, Sequence[str]] = ("", ())

    def faults(self) -> Iterator[Fault]:
        """Yield a fault per name that matches nothing, with the nearest known one."""
        for position, name in enumerate(self.names):
            if name in self.known and not _WILDCARDS & set(name):
                continue
            fits: Callable[[str, str], bool] = fits_name if self.is_machine else matches
            if not any(fits(name, item) for item in self.known):
                where = (*self.path, position) if self.listed else self.path
                hint = near(name, self.known)
                sold_nowhere = _sold_nowhere(name, hint) if self.what == "accelerator" else []
                text = f"no {self.what} called {name!r} in the catalog"
                if sold_nowhere:
                    text, hint = UNPRICED.format(", ".join(sold_nowhere)), ""
                elif moved := [item for item in self.elsewhere[1] if fits(name, item)]:
                    text, hint = f"{text}; {self.elsewhere[0]} has {some_names(moved)}", ""
                elif self.what == "region" and (meant := _places_meant(name, self.known)):
                    text, hint = f"{text}; {meant}", ""
                elif not hint:
                    few = len(self.known) <= _FEW
                    text += f"; there are {', '.join(self.known)}" if few else f"; {self.hint}"
                yield Fault(where, text, hint)


def _places_meant(name: str, known: Sequence[str]) -> str:
    """What to write for a group of regions, a country or a city that stands in place of a region; "" for others."""
    if name.lower() in residency_names():
        return f"it names a group of regions: write residency: [{name.lower()}]"
    # a city has neither hyphen nor figure: `us-west` is not the US-West of a GovCloud
    if len(name) < _LEAST_LETTERS or not name.replace(" ", "").isalpha():
        return ""
    from catalogs.tables.regions import load_regions

    there = [row for row in load_regions().rows() if name.lower() in str(row["location"]).lower()]
    places = [(f"{row['provider']}/{row['region']}", row["region"]) for row in there]
    sold = [place for place, region in places if place in known or region in known]
    return f"{name} is {some_names(sold)}" if sold else ""


def _sold_nowhere(name: str, sold: str) -> list[str]:
    """Accelerators without an offer that a name stands for; where nothing that is sold is like it, the one that is.

    Args:
        name: as written.
        sold: the accelerator with offers that is like it, if any.
    """
    if meant := known_accelerators(name):
        return meant
    alike = "" if sold else near(name, [str(one) for one in load_accelerators()["accelerator"]])
    return [alike] if alike else []


def residency_names() -> list[str]:
    """Countries, continents and groups that data may have to stay in, in small letters."""
    from catalogs.tables.regions import group_names

    return sorted(group_names())


def some_names(known: Collection[str]) -> str:
    """Some of the names, codes and official names first."""
    names = sorted(known)
    return ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
