"""How people name machines and accelerators: `H100`, `a100-80`, `p4d`, `gn7` stand for what goes on with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from itertools import compress

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
    return _fits(wanted, name.lower(), is_name=_is_name(wanted, known))


def fitting_names(pattern: str, names: Sequence[str]) -> list[bool]:
    """`fits_name` of each of `names`, which are all names of their kind."""
    wanted = pattern.lower()
    is_name = _is_name(wanted, names)
    return [_fits(wanted, name.lower(), is_name=is_name) for name in names]


def _is_name(wanted: str, known: Collection[str]) -> bool:
    return any(wanted in (one, _without_prefix(one)) for one in map(str.lower, known))


def _fits(wanted: str, name: str, *, is_name: bool) -> bool:
    if fnmatchcase(name, wanted):
        return True
    short = _without_prefix(name)
    if _WILDCARDS & set(wanted):
        return fnmatchcase(short, wanted)
    if is_name:
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
    return list(compress(ids, fitting_names(name, ids)))
