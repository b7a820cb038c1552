"""The generator of examples/focus: `python -m tests.notebooks.example_bill`; a part of the generated company."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
from pathlib import Path

import duckdb

from tests.focus_company import make_company

FOLDER = Path(__file__).parents[2] / "examples" / "focus"
_COLUMNS = (
    "BillingAccountId", "BillingCurrency", "BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart",
    "ChargePeriodEnd", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "BilledCost",
    "EffectiveCost", "ListCost", "ContractedCost", "ListUnitPrice", "ContractedUnitPrice", "PricingCategory",
    "PricingQuantity", "PricingUnit", "ConsumedQuantity", "ConsumedUnit", "CommitmentDiscountId",
    "CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType", "CommitmentDiscountCategory",
    "InvoiceId", "InvoiceIssuerName", "ProviderName", "PublisherName", "RegionId", "ResourceId", "ResourceName",
    "ServiceCategory", "ServiceName", "SkuId", "SkuMeter", "SkuPriceId", "SkuPriceDetails", "SubAccountId",
    "SubAccountName", "Tags",
)  # fmt: skip
# One group of machines of each kind, all accelerators, all that is committed, and all that is not use.
_KEPT = """
    ChargeCategory <> 'Usage' OR CommitmentDiscountId IS NOT NULL OR SkuId LIKE '%gpu%'
    OR ResourceId IS NULL OR ResourceId LIKE '%-00-_'
"""
_ORDER = "SkuPriceId NULLS FIRST, RegionId, ResourceId, ChargePeriodStart, Tags, BilledCost, PricingQuantity"
_NUMBERS = frozenset(name for name in _COLUMNS if name.endswith(("Cost", "Quantity", "Price")))


def write_example(folder: Path, months: int = 3) -> list[Path]:
    """Write one gzip file per billing month; the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with tempfile.TemporaryDirectory() as scratch:
        truth = make_company(months, rows_per_month=4000, version="1.2", out=Path(scratch))
        for file in truth.files:
            month = Path(file).stem[-7:]
            columns = ", ".join(f'"{name}"' for name in _COLUMNS)
            sql = f"SELECT {columns} FROM '{file}' WHERE {_KEPT} ORDER BY {_ORDER}"
            rows = duckdb.connect().execute(sql).fetchall()
            path = folder / f"bill-{month}.csv.gz"
            path.write_bytes(gzip.compress(_text(rows).encode(), 9, mtime=0))
            written.append(path)
    return written


def _text(rows: list[tuple[object, ...]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        writer.writerow([_cell(value, name) for value, name in zip(row, _COLUMNS, strict=True)])
    return out.getvalue()


def _cell(value: object, name: str) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if name in _NUMBERS and isinstance(value, float) else str(value)


if __name__ == "__main__":
    for made in write_example(FOLDER):
        print(made, made.stat().st_size)
