"""`planner serving`: from a loaded question to the answer."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from planner.inputs.faults import Fault
from planner.records import record
from planner.render.presentable import Presentable
from planner.serving.change import Change, least_change
from planner.serving.model import ServingResult, solve_serving
from planner.serving.proof import Proof, prove
from planner.serving.question import ServingInput
from planner.serving.speeds import Speed, predict_speeds, speed_doubts
from solvers.problem.solution import Status
from solvers.search.search import Clock

if TYPE_CHECKING:
    from datetime import date

    from catalogs.tables.model import Catalog
    from catalogs.tables.table import Table
    from planner.inputs.serving_load import LoadedServing
    from planner.inputs.serving_schema import Machine
    from solvers.problem.options import SolveOptions


@record(frozen=True)
class Price:
    """Price of one machine, what is paid at the start spread over the term, where it is from, and how it is bought.

    Provider and region are empty where a machine with a price of its own names none.
    """

    usd_per_hour: Decimal
    provider: str
    region: str
    source: str
    as_of: str
    option: str

    @property
    def place(self) -> str:
        """`aws/us-east-1`, or the part of it that is known."""
        return "/".join(part for part in (self.provider, self.region) if part)


@record(frozen=True)
class Line:
    """One kind of machine in the fleet; `load_ratio` is how busy it is, `buckets` what it serves (shares)."""

    name: str
    count: int
    price: Price
    usd_per_hour: Decimal
    load_ratio: float
    buckets: dict[str, float]


@record(frozen=True)
class ServingAnswer(Presentable):
    """The answer; `lines` are empty where nothing fits.

    `sha256` is the question's, `on` the day of exchange rates, `sources` the price snapshots used (none where all
    prices are given), `gap_asked` the gap at which the search may stop, `proof` a bound that is proven, `speeds` those
    that were predicted, which hold with `confidence`, `doubts` why they are unsure, in words, where the limits leave no
    fleet, `changes` those to change and `needed` the cheapest fleet then.
    """

    REPORT = "planner.serving.report:serving_report"
    __repr__ = Presentable.__repr__

    name: str
    lines: tuple[Line, ...]
    total_usd_per_hour: Decimal | None
    single_kind: tuple[str, Decimal] | None
    result: ServingResult
    headroom_ratio: float
    sha256: str = ""
    on: str = ""
    sources: tuple[dict[str, str], ...] = ()
    gap_asked: float = 0.0
    proof: Proof | None = None
    speeds: tuple[Speed, ...] = ()
    confidence: float = 0.0
    doubts: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    needed: tuple[Line, ...] = ()

    @property
    def proven_gap(self) -> float | None:
        """Relative gap to the bound that is proven; None without a fleet."""
        if self.proof is None or not self.total_usd_per_hour:
            return None
        total = float(self.total_usd_per_hour)
        return max(0.0, (total - self.proof.bound_usd_per_hour) / total)


def plan_serving(
    loaded: LoadedServing, options: SolveOptions, *, on: date, as_of: date | None = None,
    catalog_dir: Path | None = None,
) -> ServingAnswer:  # fmt: skip
    """Plan a serving fleet.

    Args:
        loaded: the question.
        options: gap, time limit, backend.
        on: date of exchange rates.
        as_of: prices as known on this day; None: the newest.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: a machine names an offer that the catalog does not have.
    """
    serving = loaded.serving
    catalog = _catalog(loaded, as_of, catalog_dir)
    prices = _prices(loaded, on, catalog)
    machines = serving.machines
    predicted = () if catalog is None else predict_speeds(loaded, catalog)
    speeds = {**loaded.speeds, **{(item.machine, item.bucket): item.requests_per_s for item in predicted}}
    speed = [[speeds.get((m.name, b.name), 0.0) for b in serving.buckets] for m in machines]
    question = ServingInput(
        buckets=tuple(b.name for b in serving.buckets),
        rate=np.asarray([float(b.requests_per_s) for b in serving.buckets], dtype=np.float64),
        keys=tuple(m.name for m in machines),
        usd_per_hour=np.asarray([float(price.usd_per_hour) for price in prices], dtype=np.float64),
        speed=np.asarray(speed, dtype=np.float64),
        limit=np.asarray([float(m.max_nodes or math.inf) for m in machines], dtype=np.float64),
        max_nodes=float(serving.max_nodes or math.inf),
        headroom=float(serving.headroom_ratio),
    )
    clock = Clock(options.time_limit_s)
    result = solve_serving(question, replace(options, time_limit_s=clock.for_next_s()))
    lines = _lines(question, result, prices)
    total = sum((line.usd_per_hour for line in lines), Decimal(0)) if lines else None
    if total is not None and abs(float(total) - result.usd_per_hour) > 1e-9 * max(1.0, float(total)):
        raise AssertionError(f"the fleet's lines cost {total}, its objective was {result.usd_per_hour}")
    manifests = () if catalog is None else catalog.manifests
    changes, needed = _change(question, result, prices, options, clock)
    proof = None
    if total is not None:
        proof = prove(question, float(total), options.gap, clock.for_next_s(), options.backend)
    return ServingAnswer(
        serving.name, lines, total, _single(question, prices), result, float(serving.headroom_ratio),
        sha256=hashlib.sha256(loaded.document.data).hexdigest(), on=on.isoformat(),
        sources=tuple({"provider": m.provider, "sha256": m.sha256} for m in manifests),
        gap_asked=options.gap,
        proof=proof,
        speeds=predicted, confidence=float(serving.confidence), doubts=speed_doubts(serving, predicted),
        changes=changes, needed=needed,
    )  # fmt: skip


def _catalog(loaded: LoadedServing, as_of: date | None, catalog_dir: Path | None) -> Catalog | None:
    """The catalog where a machine's price or speed is to be looked up."""
    if not loaded.predicted and all(machine.usd_per_hour is not None for machine in loaded.serving.machines):
        return None
    from catalogs.store.load import load_catalog

    return load_catalog(catalog_dir, as_of=as_of)


def _prices(loaded: LoadedServing, on: date, catalog: Catalog | None) -> list[Price]:
    machines = loaded.serving.machines
    out = []
    for at, machine in enumerate(machines):
        if machine.usd_per_hour is not None:
            place = machine.provider or "", machine.region or ""
            out.append(Price(machine.usd_per_hour, *place, "given", "", machine.purchase_option))
            continue
        assert catalog is not None
        price = _offer_price(machine, catalog, on)
        if price is None:
            from planner.market.names import unknown_part

            text = f"the catalog has no admitted {machine.purchase_option} price of {machine.instance_type}"
            where = f" in {machine.provider}" + (f"/{machine.region}" if machine.region else "")
            key, close = unknown_part(catalog.offers, machine.provider, machine.region, machine.instance_type)
            path = ("machines", at, key or "instance_type")
            raise loaded.document.source.error([Fault(path, text + where, close)])
        out.append(price)
    return out


def _offer_price(machine: Machine, catalog: Catalog, on: date) -> Price | None:
    """The cheapest admitted offer of the machine, in USD."""
    from catalogs.offers.flags import admit_offers
    from catalogs.tables.partitions import not_asked
    from catalogs.tariffs import load_tariffs

    offers = catalog.offers
    mask = admit_offers(offers, allow_flagged=False).mask.copy()
    criteria = {"provider": machine.provider, "region": machine.region, "instance_type": machine.instance_type,
              "purchase_option": machine.purchase_option}  # fmt: skip
    for name, value in criteria.items():
        if value is not None:
            mask &= offers.equals(name, value)
    if machine.region is None:
        mask &= ~not_asked(offers)
    rows = np.flatnonzero(mask)
    if not len(rows):
        return None
    tariffs = load_tariffs()
    usd = [_hourly(offers, int(row)) * tariffs.usd_per(str(offers["currency"][row]), on).rate for row in rows]
    best = min(range(len(rows)), key=lambda k: (usd[k], str(offers["region"][rows[k]])))
    row = rows[best]
    provider, region, source, as_of = (
        str(offers[name][row]) for name in ("provider", "region", "source", "as_of")
    )
    return Price(usd[best], provider, region, source, as_of, machine.purchase_option)


def _hourly(offers: Table, row: int) -> Decimal:
    """What an hour of the term costs in the offer's currency, its part of the upfront payment included."""
    upfront = Decimal(str(offers["upfront_per_instance"][row]) or "0")
    spread = upfront / Decimal(str(offers["term_hours"][row])) if upfront else upfront
    return Decimal(str(offers["price_per_hour"][row])) + spread


def _lines(question: ServingInput, result: ServingResult, prices: list[Price]) -> tuple[Line, ...]:
    out = []
    for at, key in enumerate(question.keys):
        count = result.counts.get(key, 0)
        if not count:
            continue
        shares = {bucket: share for (bucket, kind), share in result.shares.items() if kind == key}
        needed = question.machines[at]
        load = sum(share * needed[question.buckets.index(bucket)] for bucket, share in shares.items())
        busy = float(load) / count * (1.0 - question.headroom)
        price = prices[at]
        out.append(Line(str(key), count, price, price.usd_per_hour * count, busy, shares))
    return tuple(sorted(out, key=lambda line: -line.usd_per_hour))


def _change(
    question: ServingInput, result: ServingResult, prices: list[Price], options: SolveOptions, clock: Clock
) -> tuple[tuple[Change, ...], tuple[Line, ...]]:
    """The limits to change where they leave no fleet, and the fleet that carries the load then."""
    if result.status is not Status.INFEASIBLE or result.unserved:
        return (), ()
    found = least_change(question, options, clock)
    if found is None:
        return (), ()
    changes, changed, fleet = found
    return changes, _lines(changed, fleet, prices)


def _single(question: ServingInput, prices: list[Price]) -> tuple[str, Decimal] | None:
    """The cheapest fleet of one kind only, for comparison; None where no kind can serve all within its limit."""
    best: tuple[str, Decimal] | None = None
    for at, key in enumerate(question.keys):
        load = float(question.machines[at].sum())
        if not math.isfinite(load):
            continue
        count = math.ceil(load - 1e-9)
        cost = prices[at].usd_per_hour * count
        if count <= min(question.limit[at], question.max_nodes) and (best is None or cost < best[1]):
            best = str(key), cost
    return best
