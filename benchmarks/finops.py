"""Review queries over a large FOCUS bill: through `open_bill` and its view, and hand-written over the same Parquet.

`python -m benchmarks.finops --rows 10000000 [--folder DIR] [--json OUT]` generates the bill (38 columns, JSON tags,
300,000 resources, two months) unless the folder has it, and prints seconds, CPU seconds and the largest resident memory
of a process for each way. Hand-written is what an analyst with DuckDB would write: the same eight questions over
`read_parquet`, in one process with DuckDB's own settings for memory. The whole review is timed as well.

`python -m benchmarks.finops --vary --rows 300000` prints CPU seconds of the whole review and of its queries, and
its memory, for bills that differ in one thing: SKUs, regions, tags per row, commitments, accounts.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from planner.records import record

MONTHS = (date(2026, 9, 1), date(2026, 10, 1))
RESOURCES = 300_000
ROWS_PER_FILE = 5_000_000


@record(frozen=True)
class Shape:
    """How many different values a bill has; each of its SKUs is sold in every region, at the region's price."""

    skus: int = 400
    regions: int = 12
    tags: int = 3
    commitments: int = 80_000
    accounts: int = 60


VARIED = {"skus": (100, 10_000, 200_000, 1_000_000), "regions": (1, 60), "tags": (0, 20), "commitments": (10, 1000),
          "accounts": (1, 10_000)}  # fmt: skip
TAGS = (
    """'"team":"team-' || (r % 50) || '"'""",
    """'"env":"' || CASE WHEN r % 3 = 0 THEN 'prod' ELSE 'dev' END || '"'""",
    """'"cost-center":"cc-' || (r % 500) || '"'""",
    *(f"""'"key-{k}":"value-' || (r % {5 * k}) || '"'""" for k in range(4, 21)),
)

GENERATE = """
COPY (
  WITH n AS (SELECT range AS i, hash(range, {seed}) AS h, hash(range, 7919) AS g FROM range({low}, {high})),
  keys AS (
    SELECT i, h, g, CAST(h % {resources} AS INT) AS r, CAST(g % 1000 AS INT) AS c,
      TIMESTAMP '2026-09-01' + INTERVAL 1 HOUR * CAST(i * 1464 // {total} AS BIGINT) AS t,
      1 + (h >> 20) % 24 AS q
    FROM n
  ), priced AS (
    SELECT *, r % {skus} AS s, (r + r // {skus}) % {regions} AS place,
      (0.05 + r % {skus} % 400 * 0.013) * (1 + 0.02 * ((r + r // {skus}) % {regions} % 6)) AS p,
      CASE WHEN c < 250 THEN 'Used' WHEN c < 262 THEN 'Unused' END AS status
    FROM keys
  )
  SELECT
    'a-1' AS BillingAccountId, 'Company' AS BillingAccountName, 'USD' AS BillingCurrency,
    date_trunc('month', t) AS BillingPeriodStart, date_trunc('month', t) + INTERVAL 1 MONTH AS BillingPeriodEnd,
    t AS ChargePeriodStart, t + INTERVAL 1 HOUR AS ChargePeriodEnd,
    CASE WHEN c < 990 THEN 'Usage' WHEN c < 994 THEN 'Purchase' WHEN c < 997 THEN 'Credit' ELSE 'Tax' END
      AS ChargeCategory,
    CAST(NULL AS VARCHAR) AS ChargeClass, 'Usage of sku ' || s AS ChargeDescription, 'Usage-Based' AS ChargeFrequency,
    CASE WHEN c >= 994 AND c < 997 THEN -p * q WHEN status IS NOT NULL THEN 0 ELSE p * q * 0.95 END AS BilledCost,
    CASE WHEN c >= 994 AND c < 997 THEN -p * q WHEN status IS NOT NULL THEN p * q * 0.6 ELSE p * q * 0.95 END
      AS EffectiveCost,
    p * q AS ListCost, p * q * 0.95 AS ContractedCost, p AS ListUnitPrice, p * 0.95 AS ContractedUnitPrice,
    CASE WHEN status IS NOT NULL THEN 'Committed' WHEN c >= 900 AND c < 960 THEN 'Dynamic' ELSE 'Standard' END
      AS PricingCategory,
    CAST(q AS DOUBLE) AS PricingQuantity, 'Hours' AS PricingUnit, CAST(q AS DOUBLE) AS ConsumedQuantity,
    'Hours' AS ConsumedUnit,
    CASE WHEN status IS NOT NULL THEN 'cd-' || (r % {commitments}) END AS CommitmentDiscountId,
    status AS CommitmentDiscountStatus,
    CASE WHEN status IS NOT NULL THEN 'Savings Plan' END AS CommitmentDiscountType,
    'Cloud ' || (s % 3) AS ProviderName, 'Cloud ' || (s % 3) AS PublisherName, 'Cloud ' || (s % 3) AS InvoiceIssuerName,
    CASE s % 4 WHEN 0 THEN 'Compute' WHEN 1 THEN 'Storage' WHEN 2 THEN 'Networking' ELSE 'Databases' END
      AS ServiceCategory,
    'Service ' || (s % 40) AS ServiceName, 'sku-' || s AS SkuId, 'price-' || s AS SkuPriceId,
    CASE WHEN s % 4 = 0 THEN '{{"InstanceType":"type-' || s || '","GpuCount":' || (s % 9) || '}}' END
      AS SkuPriceDetails,
    'region-' || place AS RegionId, 'res-' || r AS ResourceId, 'account-' || (r % {accounts}) AS SubAccountId,
    {tags} AS Tags,
    'inv-' || strftime(t, '%Y-%m') AS InvoiceId
  FROM priced
) TO '{target}' (FORMAT parquet)
"""

# {focus} is the view of a bill, or the files themselves.
_NO_PURCHASE = (
    "ChargeCategory <> 'Tax' AND NOT (ChargeCategory = 'Purchase' AND CommitmentDiscountId IS NOT NULL)"
)
_NOW = "ChargePeriodStart >= TIMESTAMP '2026-10-01' AND ChargePeriodStart < TIMESTAMP '2026-11-01'"
QUESTIONS = {
    "totals": "SELECT date_trunc('month', ChargePeriodStart) AS m, SUM(BilledCost) AS b, SUM(EffectiveCost) AS e, "
    "1 - SUM(EffectiveCost) / SUM(ListCost) AS esr, 1 - SUM(EffectiveCost) / SUM(ContractedCost) AS esr_contract "
    f"FROM {{focus}} WHERE {_NO_PURCHASE} GROUP BY date_trunc('month', ChargePeriodStart) ORDER BY 1",
    "services": "SELECT date_trunc('month', ChargePeriodStart) AS m, ProviderName, ServiceName, "
    "SUM(EffectiveCost) AS e FROM {focus} GROUP BY date_trunc('month', ChargePeriodStart), ProviderName, ServiceName "
    "ORDER BY 1, 2, 3",
    "commitments": "SELECT CommitmentDiscountId, SUM(CASE WHEN CommitmentDiscountStatus = 'Used' THEN EffectiveCost "
    f"ELSE 0 END) AS used, SUM(EffectiveCost) AS paid FROM {{focus}} WHERE {_NOW} AND CommitmentDiscountId IS NOT NULL "
    "AND ChargeCategory = 'Usage' GROUP BY CommitmentDiscountId ORDER BY paid DESC, 1 LIMIT 20",
    "allocation": "SELECT json_extract_string(tag_text, '$.\"team\"') AS team, SUM(cost) AS cost FROM (SELECT Tags AS "
    f"tag_text, SUM(EffectiveCost) AS cost FROM {{focus}} WHERE {_NOW} GROUP BY Tags) AS texts "
    "GROUP BY json_extract_string(tag_text, '$.\"team\"') ORDER BY 1",
    "price_volume": "SELECT SkuId, RegionId, PricingCategory, PricingUnit, "
    f"SUM(CASE WHEN {_NOW} THEN PricingQuantity ELSE 0 END) AS q1, SUM(CASE WHEN {_NOW} THEN EffectiveCost ELSE 0 END) "
    f"AS e1, SUM(CASE WHEN {_NOW} THEN 0 ELSE PricingQuantity END) AS q0, "
    f"SUM(CASE WHEN {_NOW} THEN 0 ELSE EffectiveCost END) AS e0 "
    "FROM {focus} WHERE ChargeCategory = 'Usage' GROUP BY SkuId, RegionId, PricingCategory, PricingUnit "
    "ORDER BY 1, 2, 3, 4",
    "daily": "SELECT CAST(ChargePeriodStart AS DATE) AS d, SUM(EffectiveCost) AS e FROM {focus} "
    "GROUP BY CAST(ChargePeriodStart AS DATE) ORDER BY 1",
    "gpu_hours": "SELECT RegionId, SUM(quantity * CAST(json_extract_string(details, '$.\"GpuCount\"') AS DOUBLE)) AS h "
    "FROM (SELECT RegionId, SkuPriceDetails AS details, SUM(PricingQuantity) AS quantity FROM {focus} "
    f"WHERE {_NOW} AND SkuPriceDetails IS NOT NULL GROUP BY RegionId, SkuPriceDetails) AS texts "
    "GROUP BY RegionId ORDER BY 1",
    "resources": f"SELECT ResourceId, SUM(EffectiveCost) AS e FROM {{focus}} WHERE {_NOW} GROUP BY ResourceId "
    "ORDER BY e DESC, 1 LIMIT 50",
}  # fmt: skip


def generate(folder: Path, rows: int, shape: Shape) -> None:
    """Write the bill, a file per five million rows."""
    import duckdb

    pairs = " || ',' || ".join(TAGS[: shape.tags])
    tags = f"'{{' || {pairs} || '}}'" if pairs else "CAST(NULL AS VARCHAR)"
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(
        config={"memory_limit": "1GB", "temp_directory": str(folder / "spill")}
    ) as connection:
        for low in range(0, rows, ROWS_PER_FILE):
            target = folder / f"focus-{low // ROWS_PER_FILE:03d}.parquet"
            high = min(rows, low + ROWS_PER_FILE)
            connection.execute(
                GENERATE.format(
                    seed=11,
                    low=low,
                    high=high,
                    total=rows,
                    target=target,
                    resources=max(RESOURCES, shape.skus),
                    **vars(shape) | {"tags": tags},
                )
            )
            print(f"  {high:,} rows", file=sys.stderr, flush=True)


def _rows_key(frame: Any) -> list[list[Any]]:
    rows = frame.itertuples(index=False, name=None)
    return [[value if isinstance(value, float) else str(value) for value in row] for row in rows]


def _same(first: Any, second: Any) -> bool:
    """Whether answers agree to the cent: the order of a sum moves its last digits."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, float):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=0.005) or (
            first != first and second != second
        )
    return bool(first == second)


def run_by_hand(folder: Path) -> dict[str, Any]:
    """Answer the questions over the files themselves."""
    import duckdb

    times, answers = {}, {}
    focus = f"read_parquet('{folder}/*.parquet')"
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        for name, question in QUESTIONS.items():
            begun = time.perf_counter()
            answers[name] = _rows_key(connection.execute(question.format(focus=focus)).df())
            times[name] = time.perf_counter() - begun
    return {"times": times, "answers": answers}


def run_through_bill(folder: Path) -> dict[str, Any]:
    """Answer the questions through an open bill, opening and the data-quality gate included."""
    from planner.finops.quality import assess_quality
    from planner.finops.read import open_bill

    times, answers = {}, {}
    begun = time.perf_counter()
    with open_bill([folder]) as bill:
        times["open"] = time.perf_counter() - begun
        begun = time.perf_counter()
        assess_quality(bill, MONTHS[-1])
        times["gate"] = time.perf_counter() - begun
        for name, question in QUESTIONS.items():
            begun = time.perf_counter()
            frame = bill.engine.query(question.format(focus="focus"))
            times[name] = time.perf_counter() - begun
            answers[name] = _rows_key(frame)
    return {"times": times, "answers": answers}


def run_review(folder: Path) -> dict[str, Any]:
    """Make the whole review of the last month, and keep its queries for `run_same_by_hand`."""
    from planner.finops.engine.dialects import bind
    from planner.finops.read import open_bill
    from planner.finops.review.answer import review_bill

    times, asked = {"in_queries": 0.0, "in_queries_cpu": 0.0}, []
    begun = time.perf_counter()
    with open_bill([folder], tags_later=True) as bill:
        times["open"] = time.perf_counter() - begun
        engine: Any = bill.engine
        query, keep, register_view = engine.query, engine.keep, engine.register_view

        def timed(ask: Any, *arguments: Any) -> Any:
            started, cpu = time.perf_counter(), time.process_time()
            frame = ask(*arguments)
            times["in_queries"] += time.perf_counter() - started
            times["in_queries_cpu"] += time.process_time() - cpu
            return frame

        def asked_and_timed(sql: str, parameters: Any = None) -> Any:
            asked.append(bind(sql, parameters or {}).sql("duckdb"))
            return timed(query, sql, parameters)

        def kept_and_timed(name: str, sql: str, parameters: Any = None, **parts: Any) -> None:
            asked.append(f"CREATE TEMP TABLE {name} AS {bind(sql, parameters or {}).sql('duckdb')}")
            timed(partial(keep, **parts), name, sql, parameters)

        def viewed(name: str, sql: str) -> None:
            if name not in engine.kept:
                asked.append(f"CREATE TEMP VIEW {name} AS {sql}")
            register_view(name, sql)

        engine.query = asked_and_timed
        engine.keep = kept_and_timed
        engine.register_view = viewed
        begun = time.perf_counter()
        review_bill(bill, month=MONTHS[-1])
        times["review"] = time.perf_counter() - begun
    (folder / "_queries.json").write_text(json.dumps(asked), encoding="utf-8")
    return {"times": times, "answers": {}, "queries": len(asked)}


def run_same_by_hand(folder: Path) -> dict[str, Any]:
    """Ask the review's queries of a view that an analyst would write over the files."""
    import duckdb

    from planner.finops.read.columns import focus_columns
    from planner.finops.read.select import SQL_TYPES, of_unit_sql

    files = f"read_parquet('{folder}/*.parquet', filename = 'x_source')"
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false; SET TimeZone = 'UTC'")
        present = set(connection.sql(f"SELECT * FROM {files} LIMIT 0").columns)
        for dataset, columns in focus_columns().items():
            has = present if dataset == "CostAndUsage" else set()
            lacking = "".join(
                f", CAST(NULL AS {SQL_TYPES[c.kind]}) AS {c.name}"
                for c in columns.values()
                if c.name not in has
            )
            if has:
                lacking = lacking.replace(
                    "CAST(NULL AS VARCHAR) AS ServiceProviderName", "ProviderName AS ServiceProviderName"
                )
                source = (
                    "*, CAST(date_trunc('month', ChargePeriodStart) AS DATE) AS x_month, "
                    "CAST(ChargePeriodStart AS DATE) AS x_day, ListCost <> 0 AS x_list_known, "
                    "ContractedCost <> 0 AS x_contracted_known, '1.0' AS x_focus_version, "
                    f"{of_unit_sql('of')} AS x_hours_of, {of_unit_sql('hours')} AS x_unit_hours, "
                    f"1::BIGINT AS x_rows{lacking} FROM {files}"
                )
            else:
                source = f"NULL AS x_source{lacking} WHERE FALSE"
            name = "focus" if has else dataset
            connection.execute(f"CREATE VIEW {name} AS SELECT {source}")
        times = {}
        for number, text in enumerate(json.loads((folder / "_queries.json").read_text(encoding="utf-8"))):
            begun = time.perf_counter()
            connection.execute(text).df()
            times[f"query {number}"] = time.perf_counter() - begun
    return {"times": times, "answers": {}}


WAYS = {
    "by_hand": run_by_hand,
    "through_bill": run_through_bill,
    "review": run_review,
    "same_by_hand": run_same_by_hand,
}


def measure(way: str, folder: Path) -> dict[str, Any]:
    """Run one way in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.finops", "--way", way, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr else str(done.returncode)}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def print_varied(rows: int) -> None:
    """A table of the review's cost against each property of a bill."""
    print("| bill | review, CPU s | in its queries, CPU s | ratio | GB |")
    print("|---|---:|---:|---:|---:|", flush=True)
    shapes = {
        "usual": Shape(),
        "200,000 SKUs, 20 tags, 1,000 commitments": Shape(200_000, tags=20, commitments=1000),
    }
    shapes |= {
        f"{name} {n:,}": replace(Shape(), **{name: n}) for name, values in VARIED.items() for n in values
    }
    for label, shape in shapes.items():
        with tempfile.TemporaryDirectory() as folder:
            generate(Path(folder), rows, shape)
            found = measure("review", Path(folder))
        if "error" in found:
            print(f"| {label} | {found['error']} |")
            continue
        cpu, queries = found["cpu_s"], found["times"]["in_queries_cpu"]
        print(
            f"| {label} | {cpu:.1f} | {queries:.1f} | {cpu / queries:.2f} | {found['rss_gb']:.2f} |",
            flush=True,
        )


def main() -> None:
    """Generate, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "planner-benchmark-focus"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--way", choices=list(WAYS))
    parser.add_argument("--vary", action="store_true")
    given = parser.parse_args()
    if given.vary:
        print_varied(given.rows)
        return
    if given.way:
        begun = time.perf_counter()
        found = WAYS[given.way](given.folder)
        used = resource.getrusage(resource.RUSAGE_SELF)
        found |= {"wall_s": time.perf_counter() - begun, "cpu_s": used.ru_utime + used.ru_stime}
        print(json.dumps(found | {"rss_gb": used.ru_maxrss / 1e6}))
        return
    if not list(given.folder.glob("*.parquet")):
        generate(given.folder, given.rows, Shape())
    results = {way: measure(way, given.folder) for way in WAYS}
    hand, bill = results["by_hand"], results["through_bill"]
    if not _same(hand.get("answers"), bill.get("answers")):
        print("the answers differ", file=sys.stderr)
    for way, found in results.items():
        if "error" in found:
            print(f"{way:14} {found['error']}")
            continue
        found.pop("answers")
        print(f"{way:14} {found['wall_s']:7.1f} s {found['cpu_s']:7.1f} CPU-s {found['rss_gb']:6.2f} GB")
        print("   " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in found["times"].items()))
    if "times" in hand and "times" in bill:
        asked = sum(bill["times"][name] for name in QUESTIONS)
        by_hand = sum(hand["times"].values())
        print(
            f"questions alone {asked / by_hand:.2f}x, with opening and gate {bill['wall_s'] / hand['wall_s']:.2f}x"
        )
    review, same = results["review"], results["same_by_hand"]
    if "times" in review and "times" in same:
        ratio = review["times"]["in_queries"] / sum(same["times"].values())
        whole = review["wall_s"] / same["wall_s"]
        print(f"the review's {review['queries']} queries {ratio:.2f}x, the whole review {whole:.2f}x")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
