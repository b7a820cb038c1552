"""Certificates: what was proven, in a file that anyone re-checks with whole numbers and without a solver.

A certificate is a JSON object with `certificate_version`, its `kind`, `objective`, `bound` and `gap_ratio`. Each kind
is a module of this package of that name, with `check(certificate) -> list[str]`: every fault found, none when it holds,
and `set_of(certificate) -> str`: the set that its bound is true of.
Nothing here imports a solver, numpy, or the code that made the answer.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.render.claims import none_below

VERSION = 1
_UNITS = {
    "micro_usd": ("USD {:,.2f}", 1e-6), "usd": ("USD {:,.2f}", 1.0), "micro_hours": ("{:,.2f} h", 1e-6),
    "micro_kgco2e": ("{:,.3f} kgCO2e", 1e-6),
}  # fmt: skip


def kinds() -> tuple[str, ...]:
    """Return the kinds of certificate that can be checked: the modules of this package."""
    modules = pkgutil.iter_modules(__path__)
    return tuple(sorted(item.name for item in modules if not item.name.startswith("_")))


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


def write_certificate(path: Path, certificate: Mapping[str, Any]) -> None:
    """Write a certificate as compact JSON, whole or not at all."""
    from planner.files import write_atomically

    write_atomically(path, json.dumps(certificate, separators=(",", ":")) + "\n")


def summary(certificate: Mapping[str, Any]) -> str:
    """Return in one line what a certificate that holds has proven, and of which set."""
    form, scale = _UNITS.get(str(certificate.get("unit", "")), ("{:,.6f}", 1.0))
    figure = {"micro_hours": "takes", "micro_kgco2e": "emits"}.get(str(certificate.get("unit")), "costs")

    def shown(value: float) -> str:
        text = form.format(value * scale)
        return text if form in dict(_UNITS.values()) else text.rstrip("0").rstrip(".")

    objective, bound, gap = (certificate.get(name) for name in ("objective", "bound", "gap_ratio"))
    parts = [f"{certificate['kind']} certificate, whole numbers, no solver"]
    if objective is not None:
        parts.append(f"the plan {figure} {shown(objective)}")
    if bound is not None:
        parts.append(none_below(shown(bound), _set_of(certificate), figure=figure))
    if gap is not None:
        parts.append(f"proven gap {gap:.3%}")
    return "; ".join(parts)


def _set_of(certificate: Mapping[str, Any]) -> str:
    """The set that a certificate is about: what it holds itself."""
    module = importlib.import_module(f"{__name__}.{certificate['kind']}")
    return str(module.set_of(certificate))
