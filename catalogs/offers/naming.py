"""How people name machines and accelerators: `H100`, `a100-80`, `V100`, `p4d` stand for what goes on with them."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

_WILDCARDS = frozenset("*?[")
# What may follow a short name: another part of the id, or the unit of the memory (`a100-80` of `a100-80gb-sxm`).
_GOES_ON = ("-", ".", "gb")


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
    wanted, name = pattern.lower(), name.lower()
    if fnmatchcase(name, wanted):
        return True
    if _WILDCARDS & set(wanted) or any(wanted == one.lower() for one in known):
        return False
    return bool(wanted) and name.startswith(wanted) and name[len(wanted) :].startswith(_GOES_ON)
