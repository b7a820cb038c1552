"""Interruption evidence: pooled traces, Spot Advisor bands turned into hourly rates, pessimistic priors.

Three kinds of evidence, three bases:

* `measured`: traces pooled over zones. rate = interruptions / up-hours; wait = down-hours / interruptions
  (zones that never had capacity are left out of the wait and said so). The gang exponent e of rate(n) =
  rate(1) n^e is the median over zones of ln(rate_n / rate_1) / ln n; the wait exponent the same for the mean
  down time.
* `band`: a band is the share s of instances reclaimed in a month out of all that ran, not an hourly rate.
  With exponential reclaim at rate r and run lengths that end on their own with mean L, s = r / (r + 1 / L),
  so r = s / ((1 - s) L). L is not published; it is set so that the open top band (p3: every type x region
  pair was in it) gives the rate measured on p3, and each band is taken at its upper edge. Both choices are
  pessimistic.
* `prior`: no evidence. The highest single-node pool measured (per provider where it has one).
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tools.import_tariffs.rows import Row, read_rows

_REQUIRED = (
    "provider",
    "accelerator",
    "family",
    "metric",
    "value",
    "sample",
    "region_or_zone",
    "nodes",
    "note",
)
_UPPER_EDGE = {"<5%": 0.05, "5-10%": 0.10, "10-15%": 0.15, "15-20%": 0.20, ">20%": 0.25}
# (provider, accelerator in the source, family glob, accelerator glob): which candidates a pool speaks for.
_POOLS = (
    ("aws", "V100", "p3", "v100-16gb*"),
    ("aws", "K80", "p2", "k80*"),
    ("gcp", "H100", "a3-*", "h100*"),
)


@dataclass
class _Spell:
    provider: str
    accelerator: str
    machine: str
    zone: str
    nodes: int
    trace: str
    source: str
    as_of: str
    interruptions: float = 0.0
    rate: float = 0.0
    up_hours: float = 0.0
    wait_hours: float = 0.0
    availability: float = math.nan


def convert(source_dir: Path) -> list[Row]:
    """Return our interruption rows: traces per zone, pools, bands, band shares per family and priors."""
    rows = read_rows(source_dir, "interruption_priors.csv", _REQUIRED)
    spells = _spells(rows)
    pools = _pools(spells)
    p3_rate = float(
        next(row for row in pools if row["provider"] == "aws" and row["family"] == "p3")["rate_per_hour"]
    )
    run_length = round(0.25 / 0.75 / p3_rate, 3)
    bands = _bands(run_length, pools)
    families = _families(rows, bands)
    return [
        *(_zone_row(spell) for spell in spells),
        *pools,
        *bands,
        *families,
        *_priors(pools),
        *_unknown(rows),
    ]


def _blank(provider: str, kind: str, **values: str) -> Row:
    names = (
        "family accelerator nodes zone band share_ratio rate_per_hour gang_exponent mean_wait_hours "
        "wait_exponent availability_ratio n_interruptions n_zones run_length_hours use confidence "
        "note source as_of"
    )
    row = {"provider": provider, "kind": kind} | dict.fromkeys(names.split(), "")
    return row | values


def _spells(rows: list[Row]) -> list[_Spell]:
    found: dict[tuple[str, ...], _Spell] = {}
    for row in rows:
        if row["confidence"] != "measured":
            continue
        key = (
            row["provider"],
            row["accelerator"],
            row["family"],
            row["region_or_zone"],
            row["nodes"],
            row["note"],
        )
        trace = row["note"].removeprefix("trace ")
        names = (row["provider"], row["accelerator"], row["family"], row["region_or_zone"])
        made = _Spell(*names, int(row["nodes"]), trace, row["source_url_or_repo"], row["as_of"])
        spell = found.setdefault(key, made)
        spell.interruptions = float(row["sample"].split()[0])
        value = float(row["value"] or "nan")
        if row["metric"] == "availability":
            spell.availability = value / 100
        elif row["metric"] == "preemptions per up-hour":
            spell.rate = value
        elif row["metric"] == "mean down time":
            spell.wait_hours = value
    for spell in found.values():
        spell.up_hours = spell.interruptions / spell.rate if spell.rate else 0.0
    return list(found.values())


def _zone_row(spell: _Spell) -> Row:
    return _blank(
        spell.provider,
        "trace",
        family=spell.machine,
        accelerator=spell.accelerator,
        nodes=str(spell.nodes),
        zone=spell.zone,
        rate_per_hour=f"{spell.rate:g}" if spell.rate else "",
        mean_wait_hours=f"{spell.wait_hours:g}",
        availability_ratio=f"{spell.availability:.3f}",
        n_interruptions=f"{spell.interruptions:g}",
        use="no",
        confidence="measured",
        note=f"trace {spell.trace}" + ("" if spell.rate else "; no capacity or no interruption seen"),
        source=spell.source,
        as_of=spell.as_of,
    )


def _pool(spells: list[_Spell]) -> tuple[float, float, float]:
    """Return (rate per up-hour, mean wait in hours, interruptions) of zones that ever had capacity."""
    live = [spell for spell in spells if spell.rate]
    count = sum(spell.interruptions for spell in live)
    rate = count / sum(spell.up_hours for spell in live)
    wait = sum(spell.interruptions * spell.wait_hours for spell in live) / count
    return rate, wait, count


def _exponents(spells: list[_Spell]) -> tuple[float, float, int]:
    """Median gang and wait exponents over zones seen at one node and at n > 1 nodes, and their number."""
    single = {(s.trace, s.zone, s.machine): s for s in spells if s.nodes == 1 and s.rate}
    gang, wait = [], []
    for spell in spells:
        base = single.get((spell.trace, spell.zone, spell.machine))
        if spell.nodes > 1 and spell.rate and base is not None:
            gang.append(math.log(spell.rate / base.rate) / math.log(spell.nodes))
            wait.append(math.log(spell.wait_hours / base.wait_hours) / math.log(spell.nodes))
    if not gang:
        return math.nan, math.nan, 0
    return max(0.0, statistics.median(gang)), max(0.0, statistics.median(wait)), len(gang)


def _pools(spells: list[_Spell]) -> list[Row]:
    out: list[Row] = []
    worst = _exponents([s for s in spells if s.accelerator == "H100"])
    for provider, accelerator, family, glob in _POOLS:
        mine = [s for s in spells if s.provider == provider and s.accelerator == accelerator]
        single = [s for s in mine if s.nodes == 1]
        rate, wait, count = _pool(single)
        gang, wait_exponent, pairs = _exponents(mine)
        said = f"gang exponent: median of {pairs} zone pairs"
        if not pairs:
            gang, wait_exponent = worst[:2]
            said = "no gang trace: exponents of the H100 gangs (the steepest measured)"
        never = sum(1 for s in single if not s.rate)
        sources = sorted({s.source for s in single})
        out.append(
            _blank(
                provider,
                "measured",
                family=family,
                accelerator=glob,
                nodes="1",
                rate_per_hour=f"{rate:.4f}",
                gang_exponent=f"{gang:.3f}",
                mean_wait_hours=f"{wait:.3f}",
                wait_exponent=f"{wait_exponent:.3f}",
                n_interruptions=f"{count:g}",
                n_zones=str(len(single)),
                use="yes",
                confidence="measured",
                note=f"pooled over zones and sizes of one node, {never} never available left out; {said}",
                source="; ".join(sources),
                as_of=max(s.as_of for s in single),
            )
        )
    return out


def _bands(run_length: float, pools: list[Row]) -> list[Row]:
    steepest = max(pools, key=lambda row: float(row["gang_exponent"]))
    wait = max(pools, key=lambda row: float(row["mean_wait_hours"]))["mean_wait_hours"]
    note = (
        f"monthly share s at the band's upper edge (open top taken as 0.25) to an hourly rate s/((1-s) L); "
        f"assumption: mean run length L = {run_length} h, set so that the top band gives the p3 trace rate"
    )
    out: list[Row] = []
    for band, share in _UPPER_EDGE.items():
        out.append(
            _blank(
                "aws",
                "band",
                family="*",
                accelerator="*",
                nodes="1",
                band=band,
                share_ratio=f"{share:g}",
                rate_per_hour=f"{share / (1 - share) / run_length:.4f}",
                gang_exponent=steepest["gang_exponent"],
                mean_wait_hours=wait,
                wait_exponent=steepest["wait_exponent"],
                run_length_hours=f"{run_length:g}",
                use="yes",
                confidence="assumed",
                note=note,
                source="AWS Spot Advisor band definition; p3 traces of skypilot-org/spot-traces",
                as_of="2025-06-28",
            )
        )
    return out


def _families(rows: list[Row], bands: list[Row]) -> list[Row]:
    shares: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["metric"].startswith("share of type x region pairs in band"):
            shares[row["family"]].append(row)
    rate = {row["band"]: float(row["rate_per_hour"]) for row in bands}
    out: list[Row] = []
    for family, members in shares.items():
        total = 0.0
        for row in members:
            band = row["metric"].removeprefix("share of type x region pairs in band ").replace(" ", "")
            total += float(row["value"]) * rate[band]
            out.append(_share_row(family, band, row))
        first = members[0]
        keep = {name: bands[0][name] for name in ("gang_exponent", "mean_wait_hours", "wait_exponent")}
        out.append(
            _blank(
                "aws",
                "family",
                family=family,
                accelerator="*",
                nodes="1",
                rate_per_hour=f"{total:.4f}",
                run_length_hours=bands[0]["run_length_hours"],
                n_zones=first["sample"],
                use="yes",
                confidence="assumed",
                note="no band for the region: band rates weighted by the family's type x region pairs",
                source=first["source_url_or_repo"],
                as_of=first["as_of"],
            )
            | keep
        )
    return out


def _share_row(family: str, band: str, row: Row) -> Row:
    return _blank(
        "aws",
        "band_share",
        family=family,
        accelerator=row["accelerator"],
        nodes="1",
        band=band,
        share_ratio=row["value"],
        n_zones=row["sample"],
        use="no",
        confidence=row["confidence"],
        note=row["note"],
        source=row["source_url_or_repo"],
        as_of=row["as_of"],
    )


def _priors(pools: list[Row]) -> list[Row]:
    """Pessimistic priors: the provider's worst pool, or the worst pool of all for `*`."""
    by_provider: dict[str, list[Row]] = defaultdict(list)
    for row in pools:
        by_provider[row["provider"]].append(row)
    out: list[Row] = []
    for provider, mine in [*by_provider.items(), ("*", pools)]:
        worst = max(mine, key=lambda row: float(row["rate_per_hour"]))
        scope = "of the provider" if provider != "*" else "of all providers"
        largest = {
            name: max((row[name] for row in pools), key=float)
            for name in ("gang_exponent", "mean_wait_hours", "wait_exponent")
        }
        out.append(
            _blank(
                provider,
                "prior",
                family="*",
                accelerator="*",
                nodes="1",
                rate_per_hour=worst["rate_per_hour"],
                use="yes",
                confidence="assumed",
                note=f"no evidence: highest single-node pool {scope}, longest wait, steepest exponents",
                source=worst["source"],
                as_of=worst["as_of"],
            )
            | largest
        )
    return out


def _unknown(rows: list[Row]) -> list[Row]:
    out: list[Row] = []
    for row in rows:
        if row["family"] == "any":
            source = row["source_url_or_repo"] or "not found in any readable source"
            values = {"family": "*", "accelerator": "*", "zone": row["region_or_zone"], "use": "no"}
            extra = {
                "confidence": row["confidence"],
                "note": f"{row['metric']}: {row['note']}",
                "source": source,
            }
            out.append(_blank(row["provider"], "missing", **values, **extra, as_of=row["as_of"] or "undated"))
    return out
