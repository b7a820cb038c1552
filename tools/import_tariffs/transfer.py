"""Data transfer prices: internet tiers, region pairs, the free directions."""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from itertools import product
from pathlib import Path

from tools.import_tariffs.rows import Row, provenance, read_rows

_REQUIRED = (
    "provider",
    "kind",
    "from_region_or_group",
    "to_region_or_group",
    "usd_per_gb",
    "unit",
    "confidence",
)
_REGION = re.compile(r"[a-z]+[a-z0-9-]*\d*")
# The collected table names groups in prose; ours names them as in region_groups.csv.
_GROUPS = {
    "US or Canada": "group:north_america",
    "Europe": "group:europe",
    "Asia": "group:asia",
    "South America": "group:south_america",
    "Indonesia or Oceania": "group:indonesia_or_oceania",
    "any, and back": "*",
    "any continent": "group:continent",
    "another continent (Oceania excluded)": "group:continent",
}
_AZURE_SAME_CONTINENT = {
    "North America or Europe": ("north_america", "europe"),
    "Asia, Middle East, Africa": ("asia", "middle_east", "africa"),
    "South America": ("south_america",),
}
_TO_ALL_OTHERS = "charged to the sender; one price from a continent to all others"
_INTERNET = {
    "internet": "internet",
    "internet (Microsoft network)": "internet",
    "internet worldwide except China and Australia (premium tier)": "internet",
    "Australia and New Zealand (premium tier)": "internet:oceania",
    "China except Hong Kong (premium tier)": "internet:china",
}


def convert(source_dir: Path) -> list[Row]:
    """Return our transfer rows, sorted by provider, kind, source, destination and tier."""
    rows = read_rows(source_dir, "transfer_prices.csv", _REQUIRED)
    free = _aws_free_allowance(rows)
    out: list[Row] = []
    suspects: dict[str, list[Row]] = defaultdict(list)
    zones: dict[str, list[str]] = {}
    for row in rows:
        if row["kind"] == "internet_egress":
            if row["confidence"] == "suspect":
                suspects[row["from_region_or_group"]].append(row)
            out.extend(_internet(row, free, zones))
        elif row["kind"] == "inter_region":
            out.extend(_inter_region(row))
        else:
            use = row["kind"] == "ingress"
            src = "*" if use else row["from_region_or_group"]
            kind = "ingress" if use else "cross_zone"
            out.append(_row(row, kind, src, row["to_region_or_group"], use=use))
    for region, tiers in suspects.items():
        out.append(_cautious(region, tiers))
    out += _between_azure_continents()
    out.append(_own_site())
    seen: dict[tuple[str, ...], Row] = {}
    for made in out:
        key = (made["provider"], made["kind"], made["src"], made["dst"], made["use"], made["tier_from"])
        seen.setdefault((*key, made["usd_per_unit"]), made)
    return sorted(seen.values(), key=_order)


def _order(row: Row) -> tuple[str, str, str, str, str, Decimal]:
    keys = (row["provider"], row["kind"], row["src"], row["dst"], row["use"])
    return (*keys, Decimal(row["tier_from"] or "0"))


def _row(row: Row, kind: str, src: str, dst: str, *, use: bool, **changed: str) -> Row:
    made = {
        "provider": row["provider"],
        "kind": kind,
        "src": src,
        "dst": dst,
        "tier_from": row["tier_from_gb"],
        "tier_to": row["tier_to_gb"],
        "usd_per_unit": row["usd_per_gb"],
        "unit": row["unit"],
        "use": "yes" if use and row["usd_per_gb"] else "no",
        **provenance(row),
    }
    return made | changed


def _aws_free_allowance(rows: list[Row]) -> Row:
    return next(
        r for r in rows if r["provider"] == "aws" and "all commercial regions" in r["from_region_or_group"]
    )


def _internet(row: Row, free: Row, zones: dict[str, list[str]]) -> list[Row]:
    dst = _INTERNET.get(row["to_region_or_group"])
    src = row["from_region_or_group"]
    if row is free or row["provider"] == "alibaba":
        return [_row(row, "internet", src, "internet", use=False)]
    if dst is None or row["confidence"] in ("suspect", "missing"):
        return [_row(row, "internet", src, dst or row["to_region_or_group"], use=False)]
    if src.startswith("zone-"):
        return _azure_zone(row, src, zones)
    if src == "all regions except asia-northeast3":
        return [_row(row, "internet", "group:not_seoul", dst, use=True)]
    if row["provider"] == "azure":
        note = f"{row['note']}; the free 100 GB of the zone's meter come first"
        return [_row(row, "internet", src, dst, use=True, note=note)]
    if row["tier_from_gb"] == "0":
        return _first_tier(row, src, dst, free)
    return [_row(row, "internet", src, dst, use=True)]


def _first_tier(row: Row, src: str, dst: str, free: Row) -> list[Row]:
    """Split off the free part that comes before the first paid tier."""
    if row["provider"] == "aws" and "-gov-" not in src:
        paid = _row(row, "internet", src, dst, use=True, tier_from=free["tier_to_gb"])
        return [_row(free, "internet", src, dst, use=True), paid]
    if "first 1 GiB a month free" in row["note"]:
        paid = _row(row, "internet", src, dst, use=True, tier_from="1")
        return [_row(row, "internet", src, dst, use=True, tier_to="1", usd_per_unit="0"), paid]
    return [_row(row, "internet", src, dst, use=True)]


def _azure_zone(row: Row, src: str, zones: dict[str, list[str]]) -> list[Row]:
    """Expand a zone into its member regions; the members stand in the note of the zone's free tier."""
    members = re.search(r"zone members: ([a-z0-9 ]+)\.", row["note"])
    if members:
        zones[src] = members.group(1).split()
    if not row["tier_from_gb"]:
        return [_row(row, "internet", src, "internet", use=False)]
    note = "tiers add up over all regions of the zone (one meter)" if members else row["note"]
    note = f"{src}: {note}"
    return [_row(row, "internet", region, "internet", use=True, note=note) for region in zones[src]]


def _cautious(region: str, tiers: list[Row]) -> Row:
    """One flat tier at the dearest figure seen, for a region whose listed tiers are out of order."""
    figures = [Decimal(tier["usd_per_gb"]) for tier in tiers]
    figures += [Decimal(text) for text in re.findall(r"\b0\.\d+", tiers[0]["note"].split("codes")[-1])]
    note = "listed tiers are out of order (destinations mixed): all traffic at the dearest figure seen"
    first = tiers[0]
    made = _row(first, "internet", region, "internet", use=True, tier_to="", usd_per_unit=str(max(figures)))
    return made | {"tier_from": "0", "confidence": "suspect", "note": note}


def _inter_region(row: Row) -> list[Row]:
    src, dst = row["from_region_or_group"], row["to_region_or_group"]
    if row["provider"] == "aws":
        return [_row(row, "inter_region", src, dst, use=True)]
    if row["provider"] == "gcp" and src in _GROUPS and dst in _GROUPS:
        made = _row(row, "inter_region", _GROUPS[src], _GROUPS[dst], use=True)
        if dst != "any, and back":
            return [made]
        return [made, made | {"src": "*", "dst": _GROUPS[src]}]
    if row["provider"] == "azure" and dst == "same continent":
        groups = [f"group:{name}" for name in _AZURE_SAME_CONTINENT[src]]
        return [_row(row, "inter_region", group, group, use=True) for group in groups]
    if row["provider"] == "azure" and dst == "another continent":
        return []  # without a price there; `_between_azure_continents` has them
    return [_row(row, "inter_region", src, dst, use=False)]


def _between_azure_continents() -> list[Row]:
    """What Azure charges from each continent to the others, and within those that the collected table leaves out."""
    prices = read_rows(Path(__file__).parent, "azure_continents.csv", ("continent", "usd_per_gb", "source"))
    out: list[Row] = []
    for src, dst in product(prices, prices):
        within = src is dst
        usd = src["within_usd_per_gb" if within else "usd_per_gb"]
        if usd:
            out.append(
                {
                    "provider": "azure",
                    "kind": "inter_region",
                    "src": f"group:{src['continent']}",
                    "dst": f"group:{dst['continent']}",
                    "tier_from": "0",
                    "tier_to": "",
                    "usd_per_unit": usd,
                    "unit": "GB",
                    "use": "yes",
                    "confidence": "read",
                    "note": "" if within else _TO_ALL_OTHERS,
                    "source": src["source"],
                    "as_of": src["as_of"],
                }
            )
    return out


def _own_site() -> Row:
    return {
        "provider": "onprem",
        "kind": "internet",
        "src": "*",
        "dst": "internet",
        "tier_from": "0",
        "tier_to": "",
        "usd_per_unit": "0",
        "unit": "GB",
        "use": "yes",
        "confidence": "declared",
        "note": "no provider charges for data leaving the user's own site; the site's line is not priced",
        "source": "definition: the source is not a provider",
        "as_of": "2026-11-20",
    }
