"""Check fetched rows before they are stored: what passes, what is refused, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from catalogs.errors import CatalogError
from catalogs.offers.flags import join_flags, split_flags
from catalogs.offers.racks import with_racks
from catalogs.offers.retirement import mark_retired
from catalogs.offers.suspicion import key_of, machine_in_region, price_of
from catalogs.providers.registry import BUILT_IN
from catalogs.store.validate import Fault, References, validate_rows
from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.model import PurchaseOption
from catalogs.tariffs import usd_per

Row = Mapping[str, str]
MAX_EXAMPLES = 10
DEAR_SPOT = "spot_equals_on_demand"
_VALUES = re.compile(r"'[^']*'|\"[^\"]*\"|-?\d[\d.e+-]*")


@dataclass(frozen=True)
class Checked:
    """Rows that may be stored, and the account of the others.

    Attributes:
        instance_types: text rows.
        offers: text rows.
        n_without_accelerator: types without an accelerator, left out with their offers; no fault.
        refused: reason (values taken out) to number of rows.
        examples: the first refused rows, in full.
        faults: every fault.
        refused_offers: the first of the refused offers of each key that no good row has, of machines that may be
            stored.
    """

    instance_types: list[dict[str, str]]
    offers: list[dict[str, str]]
    n_without_accelerator: int
    refused: Mapping[str, int]
    examples: tuple[str, ...]
    faults: tuple[Fault, ...]
    refused_offers: tuple[Row, ...] = ()


def check_fetched(types: Sequence[Row], offers: Sequence[Row], regions: Sequence[str] = ()) -> Checked:
    """Check text rows of one provider by the data dictionary, the known regions and plausible prices.

    A provider without a fetcher of its own here may have any region it lists itself.

    Args:
        types: rows of `instance_types`.
        offers: rows of `offers`.
        regions: region ids the provider listed.
    """
    plain = {_key(row) for row in types if _has_no_accelerator(row)}
    typed = [row for row in types if _key(row) not in plain]
    priced: list[dict[str, str]] = [dict(row) for row in offers if _key(row) not in plain]
    currencies = _rates({row.get("currency", "") for row in priced})
    accelerators = [{"accelerator": str(identifier)} for identifier in load_accelerators()["accelerator"]]
    good_types, type_faults = validate_rows(
        "instance_types", typed, References.of(accelerators, [], currencies)
    )
    today = datetime.now(UTC).date().isoformat()
    good_types, priced = mark_retired(with_racks(good_types), priced, today)
    references = _with_own_regions(References.of(accelerators, good_types, currencies), priced, regions)
    good_offers, offer_faults = validate_rows("offers", flag_dear_spot(priced), references)
    faults = (*type_faults, *offer_faults)
    return Checked(
        good_types,
        good_offers,
        len(plain),
        dict(Counter(reason_of(fault) for fault in faults).most_common()),
        tuple(str(fault) for fault in faults[:MAX_EXAMPLES]),
        faults,
        _refused(priced, good_offers, good_types),
    )


def _refused(offers: Sequence[Row], good: Sequence[Row], types: Sequence[Row]) -> tuple[Row, ...]:
    stored, machines = {key_of(row) for row in good}, {_key(row) for row in types}
    first: dict[tuple[str, ...], Row] = {}
    for row in offers:
        if key_of(row) not in stored and _key(row) in machines:
            first.setdefault(key_of(row), row)
    return tuple(first.values())


def flag_dear_spot(offers: Sequence[Row]) -> list[dict[str, str]]:
    """Flag spot offers that cost no less than on-demand of the same machine, region and currency.

    Where zones differ the dearest on-demand price counts: only a spot price above all of them is suspicious.
    """
    listed: dict[tuple[str, ...], float] = {}
    for row in offers:
        if row.get("purchase_option") == PurchaseOption.ON_DEMAND.value:
            place = machine_in_region(row)
            listed[place] = max(listed.get(place, 0.0), price_of(row))
    out = []
    for row in offers:
        dear = row.get("purchase_option") == PurchaseOption.SPOT.value and (
            price_of(row) >= listed.get(machine_in_region(row), float("inf"))
        )
        flags = join_flags((*split_flags(row.get("flags", "")), DEAR_SPOT)) if dear else row.get("flags", "")
        out.append({**row, "flags": flags})
    return out


def reason_of(fault: Fault) -> str:
    """The reason without its row's values, so that equal reasons count together."""
    text = _VALUES.sub("...", fault.reason)
    return f"{fault.table}.{fault.column}: {text}" if fault.column else f"{fault.table}: {text}"


def _key(row: Row) -> tuple[str, str]:
    return row.get("provider", ""), row.get("instance_type", "")


def _has_no_accelerator(row: Row) -> bool:
    """Whether a machine has none at all; one whose accelerator is not understood has a name or a count."""
    name = row.get("accelerator") or row.get("accelerator_name")
    return not name and row.get("accelerator_count", "") in ("", "0")


def _rates(currencies: Iterable[str]) -> dict[str, float]:
    """USD per unit of each currency that the dated table knows; the others are refused by validation."""
    rates: dict[str, float] = {}
    for currency in currencies:
        try:
            rates[currency] = float(usd_per(currency))
        except (CatalogError, KeyError, ValueError):
            continue
    return rates


def _with_own_regions(references: References, offers: Sequence[Row], regions: Sequence[str]) -> References:
    places = {(row.get("provider", ""), region) for row in offers[:1] for region in regions}
    places |= {
        (row.get("provider", ""), row.get("region", "")) for row in offers if row.get("region", "") in regions
    }
    return replace(references, regions=references.regions | {key for key in places if key[0] not in BUILT_IN})
