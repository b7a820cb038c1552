"""Prices nobody publishes: what can be derived from ratios (and says so), and which options stay unknown."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

from catalogs.offers.flags import admit_offers
from catalogs.tables.columns import DATA_DIRECTORY, bundled_rows, column_names, make_table, read_csv_table
from catalogs.tables.model import Catalog, PurchaseOption
from catalogs.tables.table import Table

DERIVED_FLAG = "derived_from_ratio"


@cache
def load_commitment_ratios() -> Table:
    """Load commitment_ratios.csv: median price of a commitment over on-demand, per type and option."""
    return read_csv_table("commitment_ratios", DATA_DIRECTORY / "commitment_ratios.csv")


def derive_offers(catalog: Catalog) -> Table:
    """Offers for commitments that a region has no published price for, for `--allow-derived`.

    Price = the region's on-demand price x the type's median ratio where both are published. The date is the
    older of the two, the basis is `derived` and the flag `derived_from_ratio` tells it on every line.

    Returns:
        An offers table with only the derived rows; concatenate it with the catalog's.
    """
    ratios: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in load_commitment_ratios().rows():
        ratios.setdefault((row["provider"], row["instance_type"]), []).append(row)
    offers = catalog.offers
    regional = ("provider", "region", "instance_type", "purchase_option", "option_variant")
    published = set(offers.keys_of(*regional))
    listed = offers.equals("purchase_option", PurchaseOption.ON_DEMAND.value)
    bases = offers.take(listed & admit_offers(offers, allow_flagged=False).mask)
    derived: dict[tuple[str, ...], dict[str, str]] = {}
    for base in bases.rows():
        for ratio in ratios.get((base["provider"], base["instance_type"]), ()):
            place = (base["provider"], base["region"], base["instance_type"])
            key = (*place, ratio["purchase_option"], ratio["option_variant"])
            if key not in published and (key not in derived or _dearer(derived[key], base, ratio)):
                derived[key] = _derived(base, ratio)
    names = column_names("offers")
    rows = [[derived[key].get(name, "") for name in names] for key in sorted(derived)]
    return make_table("offers", rows, "derived offers")


def _dearer(known: dict[str, str], base: dict[str, str], ratio: dict[str, str]) -> bool:
    """Whether another zone of the region has a higher price: the cautious one is taken."""
    return Decimal(_derived(base, ratio)["price_per_hour"]) > Decimal(known["price_per_hour"])


def _derived(base: dict[str, str], ratio: dict[str, str]) -> dict[str, str]:
    from catalogs.tables.normalize import decimal_text

    price = Decimal(base["price_per_hour"]) * Decimal(str(ratio["ratio"]))
    term = PurchaseOption(ratio["purchase_option"]).term_hours
    return {
        "provider": base["provider"],
        "region": base["region"],
        "zone": "",
        "instance_type": base["instance_type"],
        "purchase_option": ratio["purchase_option"],
        "option_variant": ratio["option_variant"],
        "price_per_hour": decimal_text(price),
        "currency": base["currency"],
        "term_hours": decimal_text(str(term)),
        "basis": "derived",
        "flags": DERIVED_FLAG,
        "source": f"on-demand ({base['source']}) x {ratio['ratio']}, the median ratio of {ratio['source']}",
        "as_of": min(base["as_of"], ratio["as_of"]),
    }


@cache
def _provider_options() -> tuple[tuple[str, str], ...]:
    rows = [(row["provider"], row["purchase_option"]) for row in bundled_rows("provider_options.csv")]
    return tuple(dict.fromkeys(rows))


def unknown_options(catalog: Catalog, provider: str, instance_type: str) -> list[str]:
    """Purchase options the provider has but no price of which is known for this type, in any region."""
    offers = catalog.offers
    is_of_type = offers.equals("provider", provider) & offers.equals("instance_type", instance_type)
    priced = set(offers.take(is_of_type)["purchase_option"])
    return [option for of, option in _provider_options() if of == provider and option not in priced]
