"""Laws of what candidates rest on: memory, speed and transfer prices, for drawn workloads over the bundled catalog.

Property tests of the performance model and of the tariffs hold the same laws on models and machines that they draw.
Here they are held on every machine and place of the catalog, for the job as a user's file asks for it; no plan is asked
for. Each returns what it finds wrong, in words.
"""

from __future__ import annotations

import csv
import functools
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tariffs import TierCurve
from planner.candidates.sizes import coarse_node_counts, estimate_all
from planner.market.moved_data import Moves, moves_of
from planner.market.place_prices import curves_of
from planner.performance.kernels import lacks_flash
from planner.performance.layouts import Layouts
from planner.performance.search import estimate_layouts
from planner.performance.search_job import build_job
from tests.conftest import ROOT

if TYPE_CHECKING:
    from catalogs.tables.table import Table
    from planner.candidates.context import Context

NONE = Decimal(0)
CLOSE = 1e-9
MOST = 3  # faults named of one workload
LOCATIONS = ("aws/us-east-1", "aws/sa-east-1", "gcp/us-central1", "gcp/asia-northeast1", "azure/eastus")
# of 16 and 32 bits: no drawn workload trains in less
_PEAKS = ("fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops")
_LAYOUT = {
    "tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep", "zero": "zero_stage", "micro_batch": "micro_batch",
    "interleave": "interleave", "sequence_parallel": "sequence_parallel",
}  # fmt: skip
List = tuple[tuple[Decimal, Decimal], ...]  # lower edge and price of each tier


def shapes_of(context: Context) -> Table:
    """The layouts chosen on every machine at the sizes that are searched first."""
    most = context.asked.workload.constraints.max_nodes
    return estimate_all(context.asked, context.market, coarse_node_counts(most))


def _spread(shapes: Table, rows: Any, factor: float) -> Layouts:
    """Layouts of some rows on `factor` times the nodes, at the same global batch."""
    kept = {name: shapes[column][rows].astype(np.float64) for name, column in _LAYOUT.items()}
    return Layouts(
        hardware=shapes["hardware_row"][rows].astype(np.int64),
        nodes=shapes["nodes"][rows] * factor, dp=shapes["dp"][rows] * factor,
        micro_batches=shapes["grad_accum"][rows] / factor,
        recompute=shapes.coded("recompute").codes[rows].astype(np.float64), **kept,
    )  # fmt: skip


def _needs(context: Context, layouts: Layouts) -> Any:
    """Memory per accelerator of layouts, GiB; old accelerators, without kernels of new ones, apart."""
    job, hardware = context.asked.job, context.market.offer_set.hardware
    old = lacks_flash(hardware)[layouts.hardware]
    needs = np.full(layouts.n_rows, np.nan)
    for rows in (np.flatnonzero(old), np.flatnonzero(~old)):
        if len(rows):
            machines, at = np.unique(layouts.hardware[rows], return_inverse=True)
            part = replace(layouts.take(rows), hardware=at.astype(np.int64))
            table = estimate_layouts(job.model, job.training, hardware.take(machines), part)
            needs[rows] = table["memory_needed_gib"]
    return needs


def memory_headroom(context: Context, shapes: Table) -> list[str]:
    """At equal layout and global batch more nodes never need more memory per accelerator."""
    rows = np.flatnonzero(np.asarray(shapes["fits"]) & (shapes["grad_accum"] % 2 == 0))
    if not len(rows):
        return []
    own, twice = (_needs(context, _spread(shapes, rows, factor)) for factor in (1.0, 2.0))
    told = shapes["memory_needed_gib"][rows]
    wrong = [f"row {rows[at]} needs {own[at]} GiB, the search said {told[at]}" for at in
             np.flatnonzero(~(np.abs(own - told) <= CLOSE * told))]  # fmt: skip
    return (wrong + [f"row {rows[at]} needs {own[at]} GiB, on twice the nodes {twice[at]}" for at in
                     np.flatnonzero(~(twice <= own * (1 + CLOSE)))])[:MOST]  # fmt: skip


def roofline(context: Context, shapes: Table) -> list[str]:
    """No cluster computes more FLOPs per second than its accelerators' published dense peaks."""
    rows = np.flatnonzero(np.asarray(shapes["fits"]))
    if not len(rows):
        return []
    job, hardware = context.asked.job, context.market.offer_set.hardware
    work = build_job(job.model, job.training, hardware.take(np.zeros(1, dtype=np.int64)))
    # NaN: a format that an accelerator does not have
    best = np.fmax.reduce([hardware[name] for name in _PEAKS]) * hardware["accelerator_count"]
    most = best[shapes["hardware_row"][rows].astype(np.int64)] * shapes["nodes"][rows] * 1e12
    fastest = job.training.global_batch / shapes["step_time_low_s"][rows]
    wrong = []
    for name, rate in (("predicted", shapes["samples_per_s"][rows]), ("at the interval's end", fastest)):
        done = float(work.flops_per_sample[0]) * rate
        wrong += [
            f"row {rows[at]}, {name}: {done[at]:g} FLOP/s of {most[at]:g} at most"
            for at in np.flatnonzero(~(done <= most * (1 + CLOSE)))
        ]
    return wrong[:MOST]


@functools.cache
def listed() -> dict[str, set[List]]:
    """Tiers that the list of each provider has, read from the file as it is."""
    rows: dict[tuple[str, ...], list[tuple[Decimal, Decimal]]] = defaultdict(list)
    with (ROOT / "catalogs/data/tariffs/transfer.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["use"] == "yes":
                tier = Decimal(row["tier_from"]), Decimal(row["usd_per_unit"])
                rows[row["provider"], row["kind"], row["src"], row["dst"]].append(tier)
    found: dict[str, set[List]] = defaultdict(set)
    for key, tiers in rows.items():
        found[key[0]].add(tuple(sorted(tiers)))
    return found


def _charge(tiers: List, quantity: Decimal) -> Decimal:
    """What a month's first `quantity` costs by a list of tiers, added up tier by tier."""
    edges = [low for low, _ in tiers[1:]] + [None]
    parts = [
        max(NONE, (quantity if high is None else min(quantity, high)) - low) * price
        for (low, price), high in zip(tiers, edges, strict=True)
    ]
    return sum(parts, NONE)


def transfer_prices(context: Context, dice: np.random.Generator) -> list[str]:
    """What moving data to and from every place costs: the list's own charge at any amount after any earlier use."""
    offers, tariffs = context.market.offer_set, context.market.tariffs
    location = str(dice.choice(LOCATIONS))
    _, places = offers.offers.distinct_keys("provider", "region")
    curves = curves_of(tariffs, location, places)
    known = sorted({float(edge) for pair in curves for curve in pair if curve for edge in curve.edges_gb})
    edges = [edge * times for edge in known if edge for times in (1.0, 1.0 + 1e-9)]
    amounts = sorted([*edges, *(10.0 ** dice.uniform(-2.0, 7.0, 3)).tolist()])
    earlier = float(10.0 ** dice.uniform(0.0, 6.0))
    job = replace(context.asked.job, location=location, stream=False, export_gb=0.0)
    wrong: list[str] = []
    for used in (0.0, earlier):
        last = np.zeros(len(places))
        for amount in amounts:
            asked = replace(job, data_gb=amount, egress_used_gb=used)
            last = _checked(moves_of(offers, asked, tariffs), [into for into, _ in curves], places, location,
                            (amount, used), last, wrong)  # fmt: skip
    for amount in amounts:
        asked = replace(job, data_gb=0.0, export_gb=amount)
        _checked(moves_of(offers, asked, tariffs), [out for _, out in curves], places, "",
                 (amount, 0.0), np.zeros(len(places)), wrong)  # fmt: skip
    return wrong[:MOST]


def _checked(
    moves: Moves, curves: list[TierCurve | None], places: Any, location: str, asked: tuple[float, float],
    last: Any, wrong: list[str],
) -> Any:  # fmt: skip
    """Compare the cost at every place with the list's, and with that of less, `last`; returns it."""
    amount, used = asked
    known = dict[int, tuple[List, float]]()  # tiers of a curve, and what is owed by them
    for at, (place, curve) in enumerate(zip(places, curves, strict=True)):
        if curve is None or "/".join(place) == location:
            continue
        source = location.partition("/")[0] if location else place[0]
        if id(curve) not in known:  # many places have the same
            tiers: List = tuple(zip(curve.edges_gb, curve.usd_per_gb, strict=True))
            gb, before = curve.quantity(Decimal(repr(amount))), curve.quantity(Decimal(repr(used)))
            known[id(curve)] = tiers, float(_charge(tiers, before + gb) - _charge(tiers, before))
        tiers, owed = known[id(curve)]
        if any(curve.usd_per_gb) and tiers not in listed()[source]:
            wrong.append(f"{location or place}: tiers {tiers} are not in the list of {source}")
        if not abs(float(moves.usd[at]) - owed) <= CLOSE * owed + 1e-6:
            wrong.append(
                f"{location} {place}, {amount:g} GB after {used:g}: {moves.usd[at]}, the list {owed}"
            )
        if moves.usd[at] < last[at] * (1 - CLOSE):
            wrong.append(
                f"{location} {place}, {amount:g} GB after {used:g}: {moves.usd[at]}, less {last[at]}"
            )
    return moves.usd
