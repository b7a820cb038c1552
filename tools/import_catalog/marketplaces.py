"""Clouds of which recorded answers hold prices, but no list by region: Lambda, OCI, hosts of Vast.

A price without a place or stock is a class of its own: `place_not_stated` (a list price, in one row whatever the
number of regions) or `market_ask` (what a host asked on one day).
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from catalogs.tables.accelerators import canonical
from catalogs.tables.model import PurchaseOption
from catalogs.tables.normalize import decimal_text, family_of
from tools.import_catalog.rules import HERE, Row, read_json, read_rows

NOT_STATED = "not-stated"
_OCI = ("ewyluda/gpu-price-index@1e77fb7 tests/fixtures/oracle.json (OCI price list)", "2026-10-01")
_OCI_SHAPES = "docs.oracle.com: Compute Shapes; known values, page not read again"
_VAST = ("markrusch/Compute-Index@f656459 tests/fixtures/vast_bundles.json (Vast.ai bundles)", "2026-07")
_LAMBDA = ("inference-book/inference-plane (Lambda Cloud v1 instance-types, recorded)", "2026-08-15")
_GPU_FORMS = {"H100 SXM": "H100-80GB SXM", "H100 NVL": "H100NVL-94GB"}
_CENTI = Decimal("0.01")


def marketplace_types(catalog: Path) -> list[Row]:
    """Machines of OCI and Vast as rows of `instance_types`, without the columns that they leave empty."""
    return [*_oci_types(catalog), *(_vast_type(*item) for item in sorted(_vast_asks(catalog).items()))]


def marketplace_offers(catalog: Path) -> list[Row]:
    """Their prices, and those of Lambda's recorded answer, as rows of `offers`."""
    return [*_oci_offers(catalog), *_vast_offers(catalog), *_lambda_offers(catalog)]


def _oci_types(catalog: Path) -> Iterable[Row]:
    for shape in _oci_shapes(catalog):
        cells = {name: cell for name, cell in shape.items() if name not in ("display_name", "price")}
        yield {
            **cells, "provider": "oci", "family": family_of("oci", shape["instance_type"]), "arch": "x86_64",
            "accelerator_name": shape["display_name"].rpartition("GPU - ")[2], "source": _OCI_SHAPES,
            "as_of": "2026-11", "status": "current",
        }  # fmt: skip


def _oci_shapes(catalog: Path) -> list[Row]:
    """Shapes whose part is in the recorded price list, with the price of one accelerator."""
    path = catalog / "replies" / "marketplaces" / "oci_gpu_2026-10.json"
    if not path.is_file():
        return []
    prices = {
        item["displayName"]: str(rate["value"])
        for item in read_json(path)["items"]
        for local in item["currencyCodeLocalizations"]
        for rate in local["prices"]
        if local["currencyCode"] == "USD" and rate["model"] == "PAY_AS_YOU_GO"
    }
    shapes = read_rows(HERE / "oci_shapes.csv")
    return [{**row, "price": prices[row["display_name"]]} for row in shapes if row["display_name"] in prices]


def _oci_offers(catalog: Path) -> Iterable[Row]:
    for shape in _oci_shapes(catalog):
        price = Decimal(shape["price"]) * int(shape["accelerator_count"])
        yield _offer("oci", NOT_STATED, shape["instance_type"], price, _OCI, "place_not_stated")


def _vast_asks(catalog: Path) -> dict[str, list[dict[str, Any]]]:
    """Asks of verified hosts by machine: cards and their number."""
    asks: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((catalog / "replies" / "marketplaces").glob("vast_bundles_*.json")):
        for ask in read_json(path)["offers"]:
            if ask["verification"] == "verified" and ask["rentable"] and not ask["is_bid"]:
                asks.setdefault(f"{ask['num_gpus']}x-{ask['gpu_name'].replace(' ', '-')}", []).append(ask)
    return asks


def _vast_type(name: str, asks: list[dict[str, Any]]) -> Row:
    """The least that any host of such a machine has; hosts are not linked by more than the internet."""
    first = asks[0]
    word, _, form = _GPU_FORMS.get(first["gpu_name"], first["gpu_name"]).partition(" ")
    memory = min(Decimal(ask["gpu_ram"]) for ask in asks) / 1024
    host = min(Decimal(ask["cpu_ram"]) * Decimal(str(ask["gpu_frac"])) for ask in asks) / 1024
    return {
        "provider": "vastai", "instance_type": name, "family": family_of("vastai", name),
        "accelerator": canonical(word, "gpuhunt", form), "accelerator_name": first["gpu_name"],
        "accelerator_count": str(first["num_gpus"]), "accelerator_memory_gib": decimal_text(memory, _CENTI),
        "vcpus": str(int(min(ask["cpu_cores_effective"] for ask in asks))),
        "memory_gib": decimal_text(host, _CENTI), "arch": "x86_64",
        "intra_node": "single" if first["num_gpus"] == 1 else "unknown", "source": _VAST[0], "as_of": _VAST[1],
        "note": f"the least of {len(asks)} asks", "status": "current",
    }  # fmt: skip


def _vast_offers(catalog: Path) -> Iterable[Row]:
    """The cheapest ask of each machine in each country."""
    for name, asks in sorted(_vast_asks(catalog).items()):
        least: dict[str, Decimal] = {}
        for ask in asks:
            country, price = ask["geolocation"].rpartition(", ")[2], Decimal(str(ask["dph_total"]))
            least[country] = min(price, least.get(country, price))
        for country, price in sorted(least.items()):
            yield _offer("vastai", country, name, price, _VAST, "market_ask")


def _lambda_offers(catalog: Path) -> Iterable[Row]:
    """Prices in the regions that had capacity, else at no stated place."""
    path = catalog / "replies" / "marketplaces" / "lambda_instance_types_2026-08.json"
    if not path.is_file():
        return
    for name, one in sorted(read_json(path)["data"].items()):
        price = Decimal(one["instance_type"]["price_cents_per_hour"]) / 100
        regions = [region["name"] for region in one["regions_with_capacity_available"]]
        for region in regions or [NOT_STATED]:
            flag = "" if regions else "place_not_stated"
            yield _offer("lambda", region, name, price, _LAMBDA, flag)


def _offer(
    provider: str, region: str, instance_type: str, price: Decimal, came: tuple[str, str], flag: str
) -> Row:
    return {
        "provider": provider, "region": region, "zone": "", "instance_type": instance_type,
        "purchase_option": PurchaseOption.ON_DEMAND.value, "option_variant": "",
        "price_per_hour": decimal_text(price, Decimal("0.0001")), "currency": "USD", "upfront_per_instance": "",
        "term_hours": "", "capacity": "", "basis": "observed" if flag == "market_ask" else "list",
        "interruption_band": "", "flags": flag, "source": came[0], "as_of": came[1],
    }  # fmt: skip
