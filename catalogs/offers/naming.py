"""How people name machines and accelerators: `H100`, `a100-80`, `p4d`, `gn7` stand for what goes on with them."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import lru_cache

_WILDCARDS = frozenset("*?[")
# What may follow a short name: another part of the id, or the unit of the memory (`a100-80` of `a100-80gb-sxm`).
_GOES_ON = ("-", ".", "gb")
# What Alibaba Cloud and Azure put before every type, and people leave out.
_PREFIXES = ("ecs.", "standard_")


def fits_name(pattern: str, name: str, known: Collection[str] = ()) -> bool:
    """Whether a name that a person wrote stands for a catalog's name; case does not count.

    A glob fits as a glob. A plain word fits the name itself, and names that go on with another part; where it is one
    of `known` itself, only that one.

    >>> (
    ...     fits_name("H100", "h100-80gb-sxm"),
    ...     fits_name("a100-80", "a100-80gb-sxm"),
    ...     fits_name("p4d", "p4de.24xlarge"),
    ... )
    (True, True, False)

    Args:
        pattern: a glob or a plain word.
        name: canonical accelerator id, or instance type.
        known: all names of its kind.
    """
    wanted = pattern.lower()
    return _fits(wanted, name.lower(), is_whole=_is_one_of(wanted, known))


@lru_cache(maxsize=256)
def fitting_names(pattern: str, known: tuple[str, ...]) -> frozenset[str]:
    """The names of a catalog that a person's one stands for, as `fits_name` says of each."""
    wanted = pattern.lower()
    is_whole = _is_one_of(wanted, known)
    return frozenset(name for name in known if _fits(wanted, name.lower(), is_whole=is_whole))


def _is_one_of(wanted: str, known: Collection[str]) -> bool:
    return any(wanted in (one.lower(), _without_prefix(one.lower())) for one in known)


@lru_cache(maxsize=1 << 14)  # a question asks the same few names of every machine of the catalog
def _fits(wanted: str, name: str, *, is_whole: bool) -> bool:
    """Whether a pattern fits a name, both in lower case; `is_whole`: it is a name itself."""
    if fnmatchcase(name, wanted):
        return True
    short = _without_prefix(name)
    if _WILDCARDS & set(wanted):
        return fnmatchcase(short, wanted)
    if is_whole:
        return short == wanted
    return bool(wanted) and any(_goes_on(text, wanted) for text in (name, short))


def _goes_on(name: str, wanted: str) -> bool:
    return name.startswith(wanted) and (name == wanted or name[len(wanted) :].startswith(_GOES_ON))


def _without_prefix(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def known_accelerators(name: str) -> list[str]:
    """Accelerators of the data dictionary that a name stands for, whether or not anything is sold with them."""
    from catalogs.tables.accelerators import load_accelerators

    ids = [str(one) for one in load_accelerators()["accelerator"]]
    fitting = fitting_names(name, tuple(ids))
    return [one for one in ids if one in fitting]
