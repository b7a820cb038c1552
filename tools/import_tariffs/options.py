"""Purchase-option rules and quota rules.

The collected tables hold prose ("1-day steps to 14 days, ..."); what each row means for billing or which
families a quota covers is transcribed in `option_terms.csv` and `quota_scopes.csv` beside this module, one
line per meaning, and joined here to its source row by (provider, option) or quota name.
"""

from __future__ import annotations

import csv
from pathlib import Path

from catalogs.errors import CatalogInputError
from tools.import_tariffs.rows import Row, provenance, read_rows

_HERE = Path(__file__).parent


def _terms(name: str) -> list[Row]:
    with (_HERE / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def convert_options(source_dir: Path) -> list[Row]:
    """Return one row per (provider, purchase option, variant), the defaults of any provider (`*`) last."""
    rows = read_rows(
        source_dir, "purchase_options.csv", ("provider", "option", "billing_granularity_s", "upfront")
    )
    found = {(row["provider"], row["option"], row["upfront"]): row for row in rows}
    out: list[Row] = []
    for term in _terms("option_terms.csv"):
        origin: Row | None = None
        if term["source_option"]:
            matches = [
                row
                for (provider, option, upfront), row in found.items()
                if provider == term["provider"]
                and option == term["source_option"]
                and term["source_upfront"] in ("", upfront)
            ]
            if not matches:
                raise CatalogInputError(
                    f"purchase_options.csv: {term['provider']} {term['source_option']} is missing"
                )
            origin = matches[0]
        out.append(_option(term, origin))
    return out


def _option(term: Row, origin: Row | None) -> Row:
    def value(name: str, column: str) -> str:
        return term[name] or (origin[column] if origin else "")

    own = {"confidence": "assumed", "note": "", "source": "planner default, not a provider's statement"}
    end = provenance(origin) if origin else own | {"as_of": "2026-11-20"}
    end["note"] = "; ".join(text for text in (term["note"], end["note"]) if text)
    cancellable = origin["cancellable"] if origin else ""
    minimum = value("minimum_charge_s", "minimum_charge_s")
    return {
        "provider": term["provider"],
        "purchase_option": term["purchase_option"],
        "option_variant": term["option_variant"],
        "billing_granularity_s": value("billing_granularity_s", "billing_granularity_s"),
        "minimum_charge_s": minimum if minimum.isdigit() else "",
        "min_term_hours": value("min_term_hours", "min_term_hours"),
        "max_term_hours": value("max_term_hours", "max_term_hours"),
        "block_hours": term["block_hours"],
        "max_instances": value("max_instances", "max_instances"),
        "notice_s": value("notice_s", "interruption_notice_s"),
        "whole_term": term["whole_term"],
        "upfront": term["upfront"] or "none",
        "cancellable": cancellable if cancellable in ("yes", "no") else "",
        "book_days": term["book_days"],
        "list_ratio": origin["price_ratio_to_on_demand"] if origin else "",
        **end,
    }


def convert_quotas(source_dir: Path) -> list[Row]:
    """Return quota rules; lookup takes the first row whose patterns match."""
    rows = read_rows(source_dir, "quota_rules.csv", ("provider", "scope", "quota_name", "quota_code", "unit"))
    found = {(row["provider"], row["quota_name"]): row for row in rows}
    out: list[Row] = []
    used: set[tuple[str, str]] = set()
    out.extend(_terms("quota_names.csv"))  # names that accounts answer with, not among the collected rows
    for term in _terms("quota_scopes.csv"):
        key = (term["provider"], term["source_name"])
        if key not in found:
            raise CatalogInputError(f"quota_rules.csv: {key} is missing")
        used.add(key)
        out.append(_quota(found[key], term))
    unused = dict.fromkeys(("family", "accelerator", "options", "name", "code", "also"), "")
    out.extend(_quota(row, unused) for key, row in found.items() if key not in used)
    return out


def _quota(row: Row, term: Row) -> Row:
    return {
        "provider": row["provider"],
        "family": term["family"],
        "accelerator": term["accelerator"],
        "options": term["options"],
        "name": term["name"] or row["quota_name"],
        "code": "" if term["code"] == "-" else term["code"] or row["quota_code"],
        "scope": row["scope"],
        "unit": row["unit"],
        "default_value": row["default_value"],
        "use": "yes" if term["family"] else "no",
        **provenance(row, note="; ".join(filter(None, (term["also"], row["note"].strip())))),
    }
