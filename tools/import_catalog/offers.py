"""Offers: one row per way to buy, from the collected price lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from catalogs.offers.flags import join_flags
from catalogs.offers.retirement import retirement_of
from catalogs.offers.suspicion import flag_suspicious
from catalogs.tables.model import OFFER_KEY, PurchaseOption
from catalogs.tables.normalize import decimal_text, split_date
from tools.import_catalog.marketplaces import NOT_STATED, marketplace_offers
from tools.import_catalog.rules import IMPORT_DAY, Row, options_of, origin, read_json, read_rows, rule

PLACELESS = "place_not_stated"
# The list's own remarks -> our flags; the price remark about system disks is decided by region instead.
_REMARKS = {
    "vendor_hides_gpu_model": "hidden_model",
    "suspect_DWS_sku_mispriced": "dws_priced_as_on_demand",
    "region_availability_not_reflected": PLACELESS,
    "no_on_demand_price_published": "no_on_demand_price_published",
}
_GN7 = re.compile(r"ecs\.(ebm)?gn7[-.]")
_ULTRA_SERVERS = {"u-p6e-gb200x36": ("p6e-gb200.36xlarge", 9), "u-p6e-gb200x72": ("p6e-gb200.36xlarge", 18)}
_REGION = re.compile(r"[a-z]+-[a-z]+-\d+")  # a local zone is named after its region: us-east-1-dfw-2a
_DWS = "suspect_DWS_sku_mispriced"
_CNY_PLACES = Decimal("0.0001")
_FLOOR_TOLERANCE = Decimal("0.0001")
_SPOT, _ON_DEMAND = "price_spot_usd_hr", "price_on_demand_usd_hr"


def build_offers(catalog: Path) -> list[Row]:
    """Build the offers rows of every provider, sorted by offer_id, each once.

    Args:
        catalog: directory of the collected lists.
    """
    found: dict[tuple[str, ...], Row] = {}
    listed = read_rows(catalog / "offers.csv")
    for row in [
        *listed,
        *_further_blocks(catalog),
        *_azure_racks(catalog),
        *_calculator_commitments(catalog, listed),
    ]:
        for option in options_of(row["provider"]):
            if row.get(option["price"]):
                offer = _offer(row, option)
                found.setdefault(tuple(offer[name] for name in OFFER_KEY), offer)
    recorded = marketplace_offers(catalog)
    newer = {(offer["provider"], offer["instance_type"]) for offer in recorded}
    found = {key: offer for key, offer in found.items() if (key[0], key[3]) not in newer}
    for offer in [*_collected_gn7(catalog), *recorded]:
        found.setdefault(tuple(offer[name] for name in OFFER_KEY), offer)
    return flag_suspicious([found[key] for key in sorted(found)])


def _offer(row: Row, option: Row) -> Row:
    provider, price = row["provider"], option["price"]
    flags, remarks = _flags(row, price)
    derived = price == _SPOT and (row["spot_source"].startswith("derived") or "administered_floor" in flags)
    came = origin(provider, row["source"], "derived_spot" if derived else price)
    as_of, _ = split_date(came.as_of or row["as_of"])
    amount, currency, disk_flags = _price(row, row[price])
    term = PurchaseOption(option["purchase_option"]).term_hours
    return {
        "provider": provider,
        "region": NOT_STATED if PLACELESS in flags else row["region"],
        "zone": "" if option["regional"] == "yes" else row["zone"],
        "instance_type": row["instance_type"],
        "purchase_option": option["purchase_option"],
        "option_variant": option["option_variant"],
        "price_per_hour": amount,
        "currency": currency,
        "upfront_per_instance": "",
        "term_hours": decimal_text(str(term)) if term > 0 else "",
        "capacity": "",
        "basis": came.basis,
        "interruption_band": row["spot_interruption_band"] if price == _SPOT else "",
        "flags": join_flags((*flags, *disk_flags)),
        "source": "; ".join([came.source, *remarks]),
        "as_of": as_of,
    }


def _flags(row: Row, price: str) -> tuple[list[str], list[str]]:
    """Flags of one offer, and remarks for its source text."""
    provider, flags, remarks = row["provider"], [], []
    for remark in row["price_flag"].split(";"):
        # What is wrong with a list's on-demand price says nothing of its spot price.
        if remark in _REMARKS and not (remark == _DWS and price == _SPOT):
            flags.append(_REMARKS[remark])
        if remark.startswith("sources_disagree_"):
            flags.append("sources_disagree")
            low, high = remark.removeprefix("sources_disagree_").split("_vs_")
            remarks.append(f"sources disagree: {low} and {high} USD/h")
    if retirement_of(provider, row["instance_type"], IMPORT_DAY) is not None:
        flags.append("retired")
    if rule("restricted_region", provider, row["region"]) is not None:
        flags.append("restricted_region")
    if rule("disk_only", provider, row["region"]) == row[price]:
        flags.append("disk_only")
    if price == _SPOT and row[_ON_DEMAND]:
        share = Decimal(row[_SPOT]) / Decimal(row[_ON_DEMAND])
        floor = rule("spot_floor", provider, row["region"])
        if share >= 1:
            flags.append("spot_equals_on_demand")
        if floor and abs(share - Decimal(floor)) < _FLOOR_TOLERANCE:
            flags.append("administered_floor")
    return flags, remarks


def _price(row: Row, usd: str) -> tuple[str, str, tuple[str, ...]]:
    """Price in the list's own currency, without the system disk where its price is known."""
    provider, region = row["provider"], row["region"]
    conversion = rule("currency", provider, region)
    if conversion is None:
        return decimal_text(usd), "USD", ()
    currency, rate = conversion.split()
    amount = Decimal(usd) / Decimal(rate)
    disk = rule("system_disk", provider, region)
    if usd == rule("disk_only", provider, region) or disk is None:
        return decimal_text(amount, _CNY_PLACES), currency, ()
    if not disk:
        return decimal_text(amount, _CNY_PLACES), currency, ("system_disk_included",)
    return decimal_text(amount - Decimal(disk), _CNY_PLACES), currency, ("system_disk_separate",)


def _further_blocks(catalog: Path) -> Iterable[Row]:
    """Capacity blocks of Trainium2 and of UltraServers, which the price list has no other price for."""
    listed = read_json(catalog / "raw" / "koyakimu" / "capacity-blocks-pricing.json")["instance_types"]
    for name in sorted(_ULTRA_SERVERS.keys() & listed.keys()):
        machine, count = _ULTRA_SERVERS[name]
        for price in listed[name]["pricing"]:
            region = _REGION.match(price["region_code"])
            hourly = decimal_text(Decimal(str(price["hourly_rate_usd"])) / count)
            yield _bare_row(
                "aws", region.group() if region else price["region_code"], machine, "koyakimu"
            ) | {"price_capacity_block_usd_hr": hourly}
    for name in sorted(name for name in listed if name.startswith("trn2.")):
        for price in listed[name]["pricing"]:
            yield _bare_row("aws", price["region_code"], name, "koyakimu") | {
                "price_capacity_block_usd_hr": str(price["hourly_rate_usd"])
            }


def _azure_racks(catalog: Path) -> Iterable[Row]:
    """On-demand prices of ND GB200 v6, which the price list leaves out as it names no accelerator."""
    for row in read_rows(catalog / "raw" / "karpenter_azure" / "ondemand.csv"):
        if row["instance_type"] == "Standard_ND128isr_NDR_GB200_v6":
            bare = _bare_row("azure", row["region"], row["instance_type"], "karpenter cross-checked")
            yield bare | {_ON_DEMAND: row["price_on_demand_usd_hr"], "as_of": "2026-06-18"}


def _calculator_commitments(catalog: Path, listed: Iterable[Row]) -> Iterable[Row]:
    """Savings plans and further reservations from the recorded Azure calculator response (Poland Central).

    The response names sizes by slugs; a slug is a size's when its leading letters and digits and its
    on-demand price are those of the price list.
    """
    folder = catalog / "raw" / "azure_calculator_polandcentral"
    path = folder / "az_azure_sku_region_linux_poland-central_20260126133107.json"
    slugs = {slug: prices for slug, prices in read_json(path).items() if prices and "perhour" in prices}
    columns = {
        "perhouroneyearreserved": "price_1y_usd_hr",
        "perhourthreeyearreserved": "price_3y_usd_hr",
        "perunitoneyearsavings": "price_savings_1y_usd_hr",
        "perunitthreeyearsavings": "price_savings_3y_usd_hr",
    }
    for row in listed:
        if (row["provider"], row["region"]) != ("azure", "polandcentral") or not row[_ON_DEMAND]:
            continue
        stem = re.match(r"standard_(n[a-z]+\d+)", row["instance_type"].lower())
        for slug, prices in slugs.items():
            same = stem and re.match(rf"linux-{stem.group(1)}(?!\d)", slug)
            if same and Decimal(str(prices["perhour"])) == Decimal(row[_ON_DEMAND]):
                found = {ours: str(prices[theirs]) for theirs, ours in columns.items() if theirs in prices}
                yield _bare_row("azure", row["region"], row["instance_type"], "calculator") | found


def _collected_gn7(catalog: Path) -> Iterable[Row]:
    """On-demand prices of GN7 in mainland China, which the price list has no row for, from collected answers.

    They are of the machine alone: those of other families equal the price list's less its system disk.
    """
    path = catalog / "replies" / "alibaba_ecs" / "on_demand_gpu_prices_karpenter.json"
    if not path.is_file():
        return
    came = origin("alibaba", "cloudpilot-ai/karpenter", _ON_DEMAND)
    for region, prices in sorted(read_json(path).items()):
        for name, price in sorted(prices.items()):
            if region.startswith("cn-") and _GN7.match(name) and price > 0:
                yield {
                    "provider": "alibaba",
                    "region": region,
                    "zone": "",
                    "instance_type": name,
                    "purchase_option": PurchaseOption.ON_DEMAND.value,
                    "option_variant": "",
                    "price_per_hour": decimal_text(str(price)),
                    "currency": "CNY",
                    "upfront_per_instance": "",
                    "term_hours": "",
                    "capacity": "",
                    "basis": came.basis,
                    "interruption_band": "",
                    "flags": "system_disk_separate",
                    "source": came.source,
                    "as_of": came.as_of,
                }


def _bare_row(provider: str, region: str, instance_type: str, source: str) -> Row:
    """A row of the price list with no price yet."""
    return {
        "provider": provider,
        "region": region,
        "zone": "",
        "instance_type": instance_type,
        "spot_source": "",
        "price_flag": "",
        "source": source,
        "as_of": "",
        _ON_DEMAND: "",
        _SPOT: "",
    }
