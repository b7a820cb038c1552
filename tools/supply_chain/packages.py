"""Packages the project asks for, what they bring, and what their metadata says of their licences."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
TEST_EXTRA = "test"
_EVERYTHING = "all"  # the extra that only sums up others


def normal(name: str) -> str:
    """A package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def reviewed(table: str) -> dict[str, dict[str, str]]:
    """Rows of a table in this folder, by normalised package name."""
    with (HERE / table).open(encoding="utf-8", newline="") as file:
        return {normal(row["package"]): row for row in csv.DictReader(file)}


def declared() -> dict[str, tuple[str, ...]]:
    """Packages of pyproject.toml with the extras that bring them; `default` is what everybody gets."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = {}
    groups = {"default": project["dependencies"], **project["optional-dependencies"]}
    for extra, texts in groups.items():
        for text in texts:
            found = extras.setdefault(Requirement(text).name, [])
            if extra != _EVERYTHING:
                found.append(extra)
    return {name: tuple(found) for name, found in extras.items()}


def shipped() -> list[str]:
    """Declared packages that a user may install: all but what only tests need."""
    return [name for name, extras in declared().items() if set(extras) != {TEST_EXTRA}]


def closure(names: Iterable[str]) -> dict[str, metadata.Distribution]:
    """Installed packages that `names` bring, themselves included, by normalised name; others are left out."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [(name, frozenset[str]()) for name in names]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = waiting.pop()
        if (normal(name), extras) in seen:
            continue
        seen.add((normal(name), extras))
        try:
            one = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found[normal(name)] = one
        waiting += [(wanted.name, frozenset(wanted.extras)) for wanted in _requirements(one, extras)]
    return found


def _requirements(one: metadata.Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    for text in one.requires or ():
        wanted = Requirement(text)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield wanted


_CLASSIFIERS = {
    "MIT License": "MIT",
    "BSD License": "BSD",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0",
}
_TEXTS = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "bsd": "BSD",
    "bsd 3-clause": "BSD-3-Clause",
    "mit license": "MIT",
    "new bsd": "BSD-3-Clause",
}
UNKNOWN = "unknown"


def licence_of(name: str, one: metadata.Distribution) -> str:
    """An SPDX expression by the package's metadata, else by the reviewed table, else `unknown`.

    `BSD` stands where the metadata does not say which of the BSD licences it is.
    """
    about = one.metadata
    if "License-Expression" in about:
        return str(about["License-Expression"])
    stated = [
        text.rpartition(" :: ")[2]
        for text in about.get_all("Classifier") or []
        if text.startswith("License ::")
    ]
    known = sorted({_CLASSIFIERS.get(text, UNKNOWN) for text in stated if text != "OSI Approved"})
    if known and UNKNOWN not in known:
        return " AND ".join(known)
    text = str(about["License"]).strip() if "License" in about else ""
    if text and "\n" not in text and len(text) <= 40:
        return _TEXTS.get(text.lower(), text)
    row = reviewed("licences.csv").get(normal(name))
    return row["licence"] if row else UNKNOWN


PERMISSIVE = frozenset(
    {
        *(
            "0BSD",
            "Apache-2.0",
            "BSD",
            "BSD-2-Clause",
            "BSD-3-Clause",
            "CC0-1.0",
            "CNRI-Python",
            "HPND",
            "ISC",
            "MIT",
        ),
        *("MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
        "MPL-2.0",  # binds changes to its files, which are not changed here
    }
)


def is_allowed(expression: str) -> bool:
    """Whether a licence lets anyone use, change and pass on the whole.

    Of `A OR B` one must be permissive, of `A AND B` each, of an expression in brackets every licence that it names.
    """
    if "(" in expression:
        return set(re.findall(r"[A-Za-z0-9.+-]+", expression)) - {"AND", "OR"} <= PERMISSIVE
    choices = [choice.split(" AND ") for choice in expression.split(" OR ")]
    return any(all(part.strip() in PERMISSIVE for part in parts) for parts in choices)
