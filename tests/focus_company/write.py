"""The generated bill as files of any FOCUS version."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.focus_company.ledger import Block, Ledger, next_month
from tests.focus_company.versions import NUMBERS, TIMES, columns, names

if TYPE_CHECKING:
    import duckdb

# share of a day's rows that is reported 0, 1, 2, ... days later: invented, in the shape of real re-statements
REPORTED = (0.12, 0.90, 0.978, 0.985, 0.99, 0.993, 0.995, 0.997)
SHORT = {"Google Cloud": "GOO", "Microsoft": "MIC"}


def invoice_id(issuer: str, billing_month: date) -> str:
    """The invoice of an issuer and month."""
    return f"INV-{SHORT.get(issuer, issuer.upper()[:3])}-{billing_month:%Y%m}"


def _line(number: int, block: Block) -> dict[str, Any]:
    issuer = block.fields["InvoiceIssuerName"]
    invoice = invoice_id(issuer, block.billing_month)
    return {
        **block.fields, "_line": number, "_month": block.month, "_span": block.span_days, "InvoiceId": invoice,
        "BillingPeriodStart": block.billing_month, "BillingPeriodEnd": next_month(block.billing_month),
        "InvoiceDetailId": f"{invoice}-{block.fields['ChargeCategory'].upper()[:3]}",
    }  # fmt: skip


def connect(ledger: Ledger, seed: int) -> duckdb.DuckDBPyConnection:
    """The ledger as tables `facts` (numbers of each row), `lines` and `tags`."""
    import duckdb
    import pandas as pd

    con = duckdb.connect()
    lines = pd.DataFrame([_line(i, b) for i, b in enumerate(ledger.blocks)])
    for name in [*columns("1.3"), *columns("1.4"), "_resource_id", "_resource", "_consumed", "_commitment_unit",
                 "_pricing_ratio"]:  # fmt: skip
        if name not in lines and name not in _ROW_COLUMNS:
            lines[name] = None
    for name in ("ListUnitPrice", "ContractedUnitPrice", "PricingCurrencyListUnitPrice",
                 "PricingCurrencyContractedUnitPrice", "_commitment_unit", "_pricing_ratio"):  # fmt: skip
        lines[name] = lines[name].astype(float)
    lines["_consumed"] = [bool(b.fields.get("_consumed")) for b in ledger.blocks]
    for name in ("_month", "BillingPeriodStart", "BillingPeriodEnd"):
        lines[name] = pd.to_datetime(lines[name])
    for name in lines.columns:
        if lines[name].isna().all():
            lines[name] = pd.Series([None] * len(lines), dtype="str")
    facts = _facts(ledger, seed)
    text = [None if t is None else json.dumps(t, separators=(",", ":")) for t in ledger.tags]
    tags = pd.DataFrame({"tag": np.arange(len(text)), "Tags": pd.Series(text, dtype="str")})
    for name, frame in (("lines", lines), ("facts", facts), ("tags", tags)):
        con.register(f"{name}_frame", frame)
        con.execute(f"create table {name} as select * from {name}_frame")
        con.unregister(f"{name}_frame")
    return con


_ROW_COLUMNS = frozenset(
    names(
        "BilledCost EffectiveCost ListCost ContractedCost PricingQuantity ConsumedQuantity "
        "CommitmentDiscountQuantity Tags ResourceId ChargePeriodStart ChargePeriodEnd PricingCurrencyEffectiveCost"
    )
)
_PARTS = ("day", "resource", "tag", "quantity", "listed", "contracted", "effective", "billed")


def _facts(ledger: Ledger, seed: int) -> Any:
    import pandas as pd

    blocks = ledger.blocks
    sizes = [len(b) for b in blocks]

    def joined(name: str) -> Any:
        return np.concatenate([getattr(b, name) for b in blocks])

    frame = {n: joined(n) for n in _PARTS}
    frame["line"] = np.repeat(np.arange(len(blocks)), sizes)
    late = np.random.default_rng(seed + 1).random(sum(sizes))
    frame["delay"] = np.searchsorted(np.asarray(REPORTED), late)
    frame["row"] = np.arange(sum(sizes))
    return pd.DataFrame(frame)


def _expression(name: str, csv: bool) -> str:
    """SQL of one column."""
    row = {
        "BilledCost": "f.billed", "EffectiveCost": "f.effective", "ListCost": "f.listed",
        "ContractedCost": "f.contracted", "PricingQuantity": "f.quantity",
        "ConsumedQuantity": "case when l._consumed then f.quantity end",
        "CommitmentDiscountQuantity": "f.quantity * l._commitment_unit",
        "PricingCurrencyEffectiveCost": "f.effective * coalesce(l._pricing_ratio, 1)", "Tags": "t.Tags",
        "ResourceId": "coalesce(l._resource_id, case when f.resource >= 0 then l._resource || f.resource end)",
        "ResourceName": "coalesce(l.ResourceName, case when f.resource >= 0 then l._resource || f.resource end)",
        "ChargePeriodStart": "l._month + to_days(f.day::int)",
        "ChargePeriodEnd": "l._month + to_days((f.day + l._span)::int)",
    }  # fmt: skip
    sql = row.get(name, f'l."{name}"')
    if name in NUMBERS and name in row:
        sql = f"case when isnan({sql}) then null else {sql} end"
    if name in TIMES:
        sql = f"strftime({sql}, '%Y-%m-%dT%H:%M:%SZ')" if csv else f"({sql})::timestamp"
    return f'{sql} as "{name}"'


def write_files(
    con: duckdb.DuckDBPyConnection,
    version: str,
    out: Path,
    *,
    fmt: str,
    months: Sequence[date],
    as_of: date | None,
) -> tuple[Path, ...]:
    """Write one file per billing month; rows not yet reported on `as_of` are left out."""
    out.mkdir(parents=True, exist_ok=True)
    chosen = ", ".join(_expression(n, fmt.startswith("csv")) for n in columns(version))
    seen = "" if as_of is None else (
        f" and l._month + to_days((f.day + f.delay)::int) < timestamp '{as_of} 00:00:00'"
    )  # fmt: skip
    options = {"parquet": "format parquet, compression zstd", "csv": "format csv, header", "csv.gz":
               "format csv, header, compression gzip"}[fmt]  # fmt: skip
    files = []
    for month in months:
        path = out / f"focus-{version}-{month:%Y-%m}.{fmt}"
        con.execute(
            f"copy (select {chosen} from facts f join lines l on l._line = f.line join tags t on t.tag = f.tag "
            f"where l.BillingPeriodStart = timestamp '{month} 00:00:00'{seen} order by f.row) to '{path}' ({options})"
        )
        files.append(path)
    return tuple(files)
