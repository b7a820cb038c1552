"""All that is known of one instance type, as plain values ready for printing."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from catalogs.errors import CatalogInputError
from catalogs.offers.derive import unknown_options
from catalogs.offers.flags import admit_offers, load_flags, split_flags
from catalogs.offers.naming import fitting_names
from catalogs.offers.query import near_misses, usd_per_hour
from catalogs.tables.model import Catalog
from catalogs.tables.table import Table

Values = dict[str, Any]
_SOME = 4  # machines that a message names


def find_types(catalog: Catalog, name: str, provider: str = "") -> list[Values]:
    """Rows of the instance type `name` (case does not matter), one per provider that has it.

    Raises:
        CatalogInputError: when there is none, with near misses.
    """
    types = catalog.instance_types
    names, providers = types["instance_type"], types["provider"]
    lowered = name.lower()
    at = [i for i, text in enumerate(names) if text.lower() == lowered and provider in ("", providers[i])]
    if not at:
        _refuse_accelerator(catalog, name, provider)
        within = {text for text in names if lowered in text.lower()}
        close = (
            near_misses(name, names)
            or sorted(within, key=lambda text: (text.lower().find(lowered), text))[:3]
        )
        hint = (
            f"did you mean {', '.join(close)}?"
            if close
            else "`planner catalog list` prints those with a price"
        )
        where = f" of {provider}" if provider else ""
        raise CatalogInputError(f"unknown instance type {name!r}{where} ({hint})")
    return [types.row(i) for i in at]


def _refuse_accelerator(catalog: Catalog, name: str, provider: str) -> None:
    """Raise where `name` is one of accelerators, as workloads write them, with machines that have them."""
    types, offers = catalog.instance_types, catalog.offers
    fitting = fitting_names(name, tuple(sorted({str(text) for text in types["accelerator"]} - {""})))
    sold = Counter(zip(offers["provider"].tolist(), offers["instance_type"].tolist(), strict=True))
    having = [
        (seller, machine)
        for seller, machine, chip in zip(
            types["provider"], types["instance_type"], types["accelerator"], strict=True
        )
        if chip in fitting and provider in ("", seller) and (seller, machine) in sold
    ]
    if having:
        having.sort(key=lambda key: (-sold[key], key))
        first = dict(reversed(having))  # the machine with most offers of each provider
        some = ", ".join(list(first.values())[::-1][:_SOME])
        raise CatalogInputError(
            f"{name!r} is an accelerator, in {len(having)} machines that are sold, such as {some}; "
            f"`planner catalog list --accelerator {name}` lists offers"
        )


def summarize_type(catalog: Catalog, machine: Values) -> Values:
    """Describe one machine: specifications, accelerator, offers by region and option, flags, sources.

    Args:
        catalog: the catalog.
        machine: a row of its instance types.

    Returns:
        `instance_type`, `accelerator`, `n_offers`, `offers` (one row per region and option with the number of
        zones and the lowest price), `unknown_options`, `flags` and `sources`; unknown values are None.
    """
    provider, name = machine["provider"], machine["instance_type"]
    offers = catalog.offers
    machine_offers = offers.take(offers.equals("provider", provider) & offers.equals("instance_type", name))
    chips = catalog.accelerators
    chip = chips.take(chips.equals("accelerator", machine["accelerator"]))
    return {
        "instance_type": _plain(machine),
        "accelerator": _plain(chip.row(0)) if chip.n_rows else None,
        "n_offers": machine_offers.n_rows,
        "offers": _by_option(machine_offers),
        "unknown_options": unknown_options(catalog, provider, name),
        "flags": _flags(machine_offers),
        "sources": _sources(machine_offers, machine),
    }


def _plain(row: Values) -> Values:
    return {key: None if _is_unknown(value) else value for key, value in row.items()}


def _is_unknown(value: Any) -> bool:
    return value == "" or (isinstance(value, float) and math.isnan(value))


def _by_option(offers: Table) -> list[Values]:
    groups: dict[tuple[str, ...], list[int]] = {}
    keys = offers.keys_of("region", "purchase_option", "option_variant", "basis")
    for at, key in enumerate(keys):
        groups.setdefault(key, []).append(at)
    usd = usd_per_hour(offers) if offers.n_rows else np.empty(0)
    mask = admit_offers(offers, allow_flagged=False).mask
    out = []
    for key in sorted(groups):
        rows = groups[key]
        # The lowest admitted price where there is one: a refused one must not look like a bargain.
        pool = [at for at in rows if mask[at]] or rows
        best = min(pool, key=lambda at: float(usd[at]))
        region, option, variant, basis = key
        flags = {flag for at in rows for flag in split_flags(offers["flags"][at])}
        out.append(
            {
                "region": region,
                "purchase_option": option,
                "option_variant": variant or None,
                "n_offers": len(rows),
                "price_per_hour": offers["price_per_hour"][best],
                "currency": offers["currency"][best],
                "usd_per_hour": float(usd[best]),
                "basis": basis,
                "admitted": bool(mask[best]),
                "interruption_band": offers["interruption_band"][best] or None,
                "flags": sorted(flags),
                "as_of": min(offers["as_of"][at] for at in rows),
            }
        )
    return sorted(out, key=lambda row: (row["purchase_option"], row["usd_per_hour"], row["region"]))


def _flags(offers: Table) -> list[Values]:
    definitions = load_flags()
    counts = admit_offers(offers, allow_flagged=False).counts
    return [
        {
            "flag": flag,
            "severity": str(definitions[flag].severity) if flag in definitions else "refuse",
            "n_offers": count,
            "description": definitions[flag].description
            if flag in definitions
            else "unknown to this version",
            "remedy": (definitions[flag].remedy if flag in definitions else "update the planner") or None,
        }
        for flag, count in counts.items()
    ]


def _sources(offers: Table, machine: Values) -> list[Values]:
    dates_of: dict[str, set[str]] = {machine["source"]: {machine["as_of"]}}
    for source, as_of in offers.keys_of("source", "as_of"):
        dates_of.setdefault(source, set()).add(as_of)
    return [{"source": source, "as_of": sorted(dates)} for source, dates in sorted(dates_of.items())]
