"""Certificates: what was proven, in a file that anyone re-checks with whole numbers and without a solver.

A certificate is a JSON object with `certificate_version`, its `kind`, `objective`, `bound` and `gap_ratio`. Each kind
is a module of this package of that name, with `check(certificate) -> list[str]`: every fault found, none when it holds.
Nothing here imports a solver, numpy, or the code that made the answer.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

VERSION = 1


def kinds() -> tuple[str, ...]:
    """Return the kinds of certificate that can be checked: the modules of this package."""
    found = pkgutil.iter_modules(__path__)
    return tuple(sorted(item.name for item in found if not item.name.startswith("_")))


def is_certificate(content: object) -> bool:
    """Whether a JSON value is a certificate (of whatever kind and version)."""
    return isinstance(content, Mapping) and "certificate_version" in content


def check_certificate(certificate: Mapping[str, Any]) -> list[str]:
    """Return every fault of a certificate; an empty list means that what it claims is proven."""
    if certificate.get("certificate_version") != VERSION:
        return [
            f"certificate_version is {certificate.get('certificate_version')!r}, this planner reads {VERSION}"
        ]
    kind = certificate.get("kind")
    if kind not in kinds():
        return [f"kind is {kind!r}; this planner checks: {', '.join(kinds())}"]
    check = importlib.import_module(f"{__name__}.{kind}").check
    try:
        faults: list[str] = check(certificate)
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        OverflowError,
        ZeroDivisionError,
    ) as error:
        return [f"not a {kind} certificate this version can read: {type(error).__name__}: {error}"]
    return faults
