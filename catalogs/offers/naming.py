"""How people name machines and accelerators: `H100`, `a100-80`, `p4d`, `gn7` match every name that starts with them."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from catalogs.patterns import matches
from catalogs.tables.columns import bundled_rows

_WILDCARDS = frozenset("*?[")
# What may follow a short name: another part of the id, or the unit of the memory (`a100-80` of `a100-80gb-sxm`).
_GOES_ON = ("-", ".", "gb")
# What Alibaba Cloud and Azure put before every type, and people leave out.
_PREFIXES = ("ecs.", "standard_")
# What drivers and shops write beside the model of a card: makers, product lines, kinds of memory.
_BESIDE = frozenset(
    {"nvidia", "amd", "intel", "tesla", "geforce", "quadro", "instinct", "hbm2", "hbm2e", "hbm3", "hbm3e"}
)
_PARTS = r"[a-z0-9]+"  # `re` compiles these when a name is not an id
_FORM = r"(?<=sxm)\d$"
_MEMORY = r"[0-9]+gb"
_SERIES = r"\brtx[ -](?=[a-z]?\d)"
_AFTER = r" (generation|\w+ edition)$"
_MAKERS = r"^(nvidia |amd |geforce |tesla |quadro |radeon (?!pro)|instinct )+"


@lru_cache(maxsize=1)
def _driver_names() -> dict[str, frozenset[str]]:
    """Accelerators by the name that a driver prints (`nvidia-smi -L`, `rocm-smi`), in lower case.

    Without the maker a name of several words counts too (`H100 80GB HBM3`), and without what says no more of the card
    (`RTX 6000 Ada`, a generation); `H200` alone may be any of its forms.
    """
    found: dict[str, set[str]] = {}
    for row in bundled_rows("driver_names.csv"):
        name = row["driver_name"].lower()
        short = re.sub(_MAKERS, "", name)
        names = {name, short} if len(re.findall(_PARTS, short)) > 1 else {name}
        for key in names | {re.sub(_AFTER, "", one) for one in names}:
            found.setdefault(key, set()).add(row["accelerator"])
    return {name: frozenset(ids) for name, ids in found.items()}


def fits_name(pattern: str, name: str, known: Collection[str] = ()) -> bool:
    """Whether a name in a user's file matches a name of the catalog; case does not matter.

    A glob fits as a glob. A plain word fits the name itself, and names that go on with another part; where it is one
    of `known` itself, only that one. What a driver calls a card (`driver_names.csv`) is that card; of
    other such names the cards that have all of their parts.

    >>> (
    ...     fits_name("H100", "h100-80gb-sxm"),
    ...     fits_name("a100-80", "a100-80gb-sxm"),
    ...     fits_name("p4d", "p4de.24xlarge"),
    ...     fits_name("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
    ... )
    (True, True, False, True)

    Args:
        pattern: a glob or a plain word.
        name: canonical accelerator id, or instance type.
        known: all names of its kind.
    """
    lowered = pattern.lower()
    return _fits(lowered, name.lower(), is_whole=_is_one_of(lowered, known))


@lru_cache(maxsize=256)
def fitting_names(pattern: str, known: tuple[str, ...]) -> frozenset[str]:
    """The names of the catalog that a user's name matches, by the rules of `fits_name`."""
    lowered = pattern.lower()
    whole = _by_text(known).get(lowered)
    if whole is not None and not _WILDCARDS & set(lowered):
        return whole
    return frozenset(name for name in known if _fits(lowered, name.lower(), is_whole=whole is not None))


@lru_cache(maxsize=8)
def _by_text(known: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Names by what they are called in full, in lower case, with and without what providers put before them."""
    found: dict[str, set[str]] = {}
    for name in known:
        for text in (name.lower(), _without_prefix(name.lower())):
            found.setdefault(text, set()).add(name)
    return {text: frozenset(names) for text, names in found.items()}


def _is_one_of(pattern: str, names: Collection[str]) -> bool:
    return any(pattern in (candidate.lower(), _without_prefix(candidate.lower())) for candidate in names)


@lru_cache(maxsize=1 << 14)  # a question asks the same few names of every machine of the catalog
def _fits(pattern: str, name: str, *, is_whole: bool) -> bool:
    """Whether a pattern fits a name, both in lower case; `is_whole`: it is a name itself."""
    if matches(pattern, name):
        return True
    short = _without_prefix(name)
    if _WILDCARDS & set(pattern):
        return matches(pattern, short)
    if is_whole:
        return short == pattern
    if (meant := _driver_names().get(pattern)) is not None:
        return name in meant
    return bool(pattern) and (
        any(_goes_on(text, pattern) for text in (name, short)) or _is_called(name, pattern)
    )


def _is_called(name: str, device: str) -> bool:
    """Whether an accelerator has the model, memory and form that a driver's or a shop's name says."""
    words = [
        re.sub(_FORM, "", word)
        for word in re.findall(_PARTS, re.sub(_SERIES, "rtx", device))
        if word not in _BESIDE
    ]
    parts = name.split("-")
    if not any(re.fullmatch(_MEMORY, part) for part in parts):
        return False  # a machine
    return bool(words) and words[0] == parts[0] and set(words) <= set(parts)


def _goes_on(name: str, pattern: str) -> bool:
    return name.startswith(pattern) and (name == pattern or name[len(pattern) :].startswith(_GOES_ON))


def _without_prefix(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def known_accelerators(name: str) -> list[str]:
    """Accelerators of the data dictionary that a name matches, sold or not."""
    from catalogs.tables.accelerators import load_accelerators

    ids = [str(identifier) for identifier in load_accelerators()["accelerator"]]
    fitting = fitting_names(name, tuple(ids))
    return [identifier for identifier in ids if identifier in fitting]


def accelerators_with(part: str) -> list[str]:
    """Accelerators of the data dictionary whose name has a part of at least three letters, sold or not."""
    from catalogs.tables.accelerators import load_accelerators

    wanted = part.lower().replace(" ", "")
    return [str(one) for one in load_accelerators()["accelerator"] if len(wanted) > 2 and wanted in str(one)]
