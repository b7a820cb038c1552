"""Exchange rates, and the power, hosting and server prices of owned machines."""

from __future__ import annotations

from decimal import Context, Decimal
from pathlib import Path

from tools.import_tariffs.rows import Row, provenance, read_rows


def convert_fx(source_dir: Path) -> list[Row]:
    """Return USD per unit of each currency and date, oldest first; 9 significant digits."""
    rows = read_rows(source_dir, "fx.csv", ("base", "quote", "rate", "as_of"))
    out: list[Row] = []
    for row in rows:
        if row["base"] == "USD":
            currency, rate, kind = (
                row["quote"],
                Context(prec=9).divide(Decimal(1), Decimal(row["rate"])),
                "market",
            )
        else:
            currency, rate, kind = row["base"], Decimal(row["rate"]), "factor_of_a_source"
        note = (
            row["note"]
            if kind != "market"
            else f"1 USD = {row['rate']} {currency}; ECB cross rate, month end"
        )
        out.append(
            {"currency": currency, "usd_per_unit": f"{rate:f}", "kind": kind, **provenance(row, note=note)}
        )
    return sorted(out, key=lambda row: (row["currency"], row["kind"], row["as_of"]))


def convert_power(source_dir: Path) -> list[Row]:
    """Return power draws, electricity, PUE, hosting and server prices, one fact per row."""
    rows = read_rows(source_dir, "power_and_hosting.csv", ("category", "item", "value", "unit", "region"))
    return [
        {
            "category": row["category"],
            "item": row["item"],
            "value": row["value"],
            "unit": row["unit"],
            "region": row["region"],
            "use": "no" if row["confidence"] in ("missing", "suspect") else "yes",
            **provenance(row),
        }
        for row in rows
    ]
