"""Reading a bulk price list of gigabytes: peak memory and speed on a generated file.

python -m benchmarks.bulk_price_list [--gib 1.0] [--keep FILE]

A process of its own reads the file in chunks of 64 KiB, as they come from the network, so its peak memory is
that of the reader alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LIMIT_MIB = 300.0
_REGION = "us-east-1"
_TYPES = 1300
_ROWS_PER_TYPE = 16
_HEADER = (
    "SKU,OfferTermCode,RateCode,TermType,PriceDescription,EffectiveDate,StartingRange,EndingRange,Unit,PricePerUnit,"
    "Currency,RelatedTo,LeaseContractLength,PurchaseOption,OfferingClass,Product Family,serviceCode,Location,"
    "Location Type,Instance Type,Current Generation,Instance Family,vCPU,Physical Processor,Clock Speed,Memory,Storage,"
    "Network Performance,Processor Architecture,Tenancy,Operating System,License Model,usageType,operation,"
    "CapacityStatus,Dedicated EBS Throughput,GPU,GPU Memory,MarketOption,Normalization Size Factor,Pre Installed S/W,"
    "Processor Features,Region Code,serviceName"
)
_COLUMNS = _HEADER.split(",")


def generate(path: Path, n_bytes: int) -> int:
    """Write a file of the list's shape and at least `n_bytes`; returns its rows.

    Args:
        path: where to.
        n_bytes: size wanted, bytes.
    """
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for name, value in (
            ("FormatVersion", "v1.0"),
            ("Disclaimer", "generated"),
            ("Publication Date", "2026-11-20"),
        ):
            file.write(f'"{name}","{value}"\n')
        file.write(_line(_COLUMNS))
        while file.tell() < n_bytes:
            file.write("".join(_block(rows)))
            rows += _TYPES * _ROWS_PER_TYPE
    return rows


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return ",".join(f'"{cell}"' for cell in cells) + "\n"


def _block(first: int) -> Iterator[str]:
    """All types once: one row as wanted, the others for other systems, tenancies and terms."""
    systems = ("Linux", "Windows", "RHEL", "SUSE")
    for number in range(_TYPES * _ROWS_PER_TYPE):
        kind, variant = divmod(number, _ROWS_PER_TYPE)
        name = f"p{kind % 10}.{kind}xlarge"
        cells = dict.fromkeys(_COLUMNS, "")
        cells |= {
            "SKU": f"{first + number:016X}",
            "OfferTermCode": "JRTCKXETXF",
            "RateCode": f"{first + number:016X}.JRTCKXETXF.6YS6EN2CT7",
            "TermType": "OnDemand" if variant < 4 else "Reserved",
            "PriceDescription": f"{name} instance hour in the region of the file, as listed",
            "EffectiveDate": "2026-11-01",
            "StartingRange": "0",
            "EndingRange": "Inf",
            "Unit": "Hrs",
            "PricePerUnit": f"{1 + kind / 100:.10f}",
            "Currency": "USD",
            "LeaseContractLength": "" if variant < 4 else "1yr",
            "PurchaseOption": "" if variant < 4 else "No Upfront",
            "OfferingClass": "" if variant < 4 else "standard",
            "Product Family": "Compute Instance",
            "serviceCode": "AmazonEC2",
            "Location": "US East (N. Virginia)",
            "Location Type": "AWS Region",
            "Instance Type": name,
            "Physical Processor": "Intel Xeon Scalable (Emerald Rapids)",
            "Memory": "128 GiB",
            "Network Performance": "Up to 50 Gigabit",
            "Tenancy": "Shared" if variant % 2 == 0 else "Dedicated",
            "Operating System": systems[variant % 4],
            "License Model": "No License required",
            "usageType": f"BoxUsage:{name}",
            "operation": "RunInstances",
            "CapacityStatus": "Used",
            "MarketOption": "OnDemand",
            "Pre Installed S/W": "NA",
            "Processor Features": "Intel AVX; Intel AVX2; Intel AVX512; Intel Turbo",
            "Region Code": _REGION,
            "serviceName": "Amazon Elastic Compute Cloud",
        }
        yield _line(list(cells.values()))


def chunks(path: Path, size: int = 1 << 16) -> Iterator[bytes]:
    """The file's bytes, a chunk at a time."""
    with path.open("rb") as file:
        while chunk := file.read(size):
            yield chunk


def measure(path: Path) -> dict[str, float]:
    """Read the file as the provider does: rows, offers, seconds, peak memory of this process (MiB)."""
    from catalogs.providers.aws_bulk import parse_bulk_csv
    from catalogs.providers.aws_public import text_lines

    wanted = {f"p{kind % 10}.{kind}xlarge" for kind in range(0, _TYPES, 15)}
    start = time.perf_counter()
    prices = parse_bulk_csv(
        text_lines(chunks(path)), _REGION, "2026-11-20", wanted, {"on_demand", "reserved_1y", "reserved_3y"}
    )
    seconds = time.perf_counter() - start
    return {
        "rows": prices.lines,
        "offers": len(prices.rows),
        "seconds": seconds,
        "rows_per_s": prices.lines / seconds,
        "mb_per_s": path.stat().st_size / 1e6 / seconds,
        "peak_rss_mib": peak_rss_mib(),
    }


def peak_rss_mib() -> float:
    """Most resident memory of this process so far, MiB.

    Linux carries `ru_maxrss` over from the process that started this one, so its own counter is read there.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(one for one in status.read_text().splitlines() if one.startswith("VmHWM:"))
        return float(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # macOS counts bytes, others KiB


def measure_in_a_process(path: Path) -> dict[str, float]:
    """`measure` in a fresh process, so that nothing else counts."""
    command = [sys.executable, "-m", "benchmarks.bulk_price_list", "--measure", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> int:
    """Generate, measure, print; 1 when the memory limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0, help="size of the file, GiB")
    parser.add_argument("--keep", type=Path, help="write the file here and keep it")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        path = options.keep or Path(directory) / "index.csv"
        rows = generate(path, int(options.gib * 2**30))
        found = measure_in_a_process(path)
        print(f"file            {path.stat().st_size / 2**30:.2f} GiB, {rows:,} rows")
    print(
        f"read            {found['rows']:,.0f} rows, {found['offers']:,.0f} offers wanted, {found['seconds']:.1f} s"
    )
    print(f"speed           {found['rows_per_s']:,.0f} rows/s, {found['mb_per_s']:.0f} MB/s")
    print(f"peak memory     {found['peak_rss_mib']:.0f} MiB (limit {LIMIT_MIB:.0f})")
    return int(found["peak_rss_mib"] > LIMIT_MIB)


if __name__ == "__main__":
    sys.exit(main())
