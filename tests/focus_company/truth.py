"""What every KPI must say, worked out from the generator's own objects; no SQL and nothing of the program."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.focus_company.catalogue import MANDATORY_TAGS
from tests.focus_company.commitments import Commitment
from tests.focus_company.ledger import Block, Ledger
from tests.focus_company.runs import Run
from tests.focus_company.usage import Spike

if TYPE_CHECKING:
    import duckdb

Key = tuple[str, str, str | None, str | None, str, str]


@dataclass
class MonthTruth:
    """The month's figures; money in USD, all without tax unless the name says otherwise.

    Attributes:
        effective, billed: of all charges but tax; tax_usd: the tax.
        list_cost, effective_on_list, contracted_cost, effective_on_contracted: over rows that have a price: neither
            tax, nor credits, nor purchases of commitments and of prepaid tokens.
        used, unused: effective cost per commitment; purchases: billed per commitment.
        covered_list, eligible_list: list cost of used commitments, and of that plus eligible use at standard price.
        tagged, taggable: effective cost with all mandatory tags / of all but tax, credits and unused commitments.
        spot_effective, spot_list, compute_effective: of Dynamic rows, and of all compute rows.
        gpu_hours, gpu_usd: accelerator hours paid for and their effective cost.
        units: (provider, sku, region, pricing category, service, unit) -> [quantity, effective] of rows with a unit.
        no_unit: effective cost of rows without one, per charge category.
        daily: effective cost per day of the month (index 0: day 1).
        by_service: effective per (provider, service).
    """

    rows: int = 0
    effective: float = 0.0
    billed: float = 0.0
    tax_usd: float = 0.0
    list_cost: float = 0.0
    effective_on_list: float = 0.0
    contracted_cost: float = 0.0
    effective_on_contracted: float = 0.0
    used: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    unused: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    purchases: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    covered_list: float = 0.0
    eligible_list: float = 0.0
    tagged: float = 0.0
    taggable: float = 0.0
    spot_effective: float = 0.0
    spot_list: float = 0.0
    compute_effective: float = 0.0
    gpu_hours: float = 0.0
    gpu_usd: float = 0.0
    units: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    no_unit: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    daily: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    by_service: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    @property
    def esr_list_ratio(self) -> float:
        """1 - effective over list."""
        return 1 - self.effective_on_list / self.list_cost

    @property
    def esr_contract_ratio(self) -> float:
        """1 - effective over contracted."""
        return 1 - self.effective_on_contracted / self.contracted_cost

    @property
    def utilisation_ratio(self) -> float:
        """Used over used and unused."""
        used, unused = sum(self.used.values()), sum(self.unused.values())
        return used / (used + unused)

    @property
    def coverage_ratio(self) -> float:
        """Covered over eligible, at list price."""
        return self.covered_list / self.eligible_list

    @property
    def allocation_ratio(self) -> float:
        """Tagged over taggable."""
        return self.tagged / self.taggable


@dataclass(frozen=True)
class Truth:
    """The company: its files and what is true of them."""

    months: tuple[date, ...]
    version: str
    files: tuple[Path, ...]
    datasets: tuple[Path, ...]
    month: dict[date, MonthTruth]
    commitments: tuple[Commitment, ...]
    runs: tuple[Run, ...]
    spike: Spike
    ledger: Ledger
    connection: duckdb.DuckDBPyConnection
    resources: dict[str, int]

    @property
    def rows(self) -> int:
        """Rows of all months."""
        return sum(len(b) for b in self.ledger.blocks)


def month_truths(ledger: Ledger) -> dict[date, MonthTruth]:
    """The truth of each month of charge."""
    out: dict[date, MonthTruth] = defaultdict(MonthTruth)
    complete = np.array([t is not None and set(MANDATORY_TAGS) <= t.keys() for t in ledger.tags])
    for block in ledger.blocks:
        _add(out[block.month], block, complete)
    return dict(sorted(out.items()))


def _add(month: MonthTruth, block: Block, complete: Any) -> None:
    named, facts = block.fields, block.facts
    effective, listed = float(block.effective.sum()), float(block.listed.sum())
    month.rows += len(block)
    if facts.get("tax"):
        month.tax_usd += effective
        return
    month.effective += effective
    month.billed += float(block.billed.sum())
    for day, cost in zip(block.day.tolist(), block.effective.tolist(), strict=True):
        month.daily[day] += cost
    month.by_service[named["ServiceProviderName"], named["ServiceName"]] += effective
    credit = named["ChargeCategory"] == "Credit"
    paid_ahead = facts.get("purchase") or facts.get("prepaid")
    if not credit and not paid_ahead:
        month.list_cost += listed
        month.effective_on_list += effective
        month.contracted_cost += float(block.contracted.sum())
        month.effective_on_contracted += effective
    _commitments(month, block, effective, listed)
    if not credit and facts.get("status") != "Unused" and not paid_ahead:
        month.taggable += effective
        month.tagged += float(block.effective[complete[block.tag]].sum())
    if named.get("ServiceCategory") == "Compute" and not paid_ahead:
        month.compute_effective += effective
        if named.get("PricingCategory") == "Dynamic":
            month.spot_effective += effective
            month.spot_list += listed
    if facts.get("gpus"):
        month.gpu_hours += float(block.quantity.sum()) * facts["gpus"]
        month.gpu_usd += effective
    if named.get("PricingUnit") and not paid_ahead:
        key = tuple(named.get(k) for k in _KEY)
        total = month.units[key]  # type: ignore[index]
        total[0] += float(block.quantity.sum())
        total[1] += effective
    elif not paid_ahead:
        month.no_unit[named["ChargeCategory"]] += effective


_KEY = ("ServiceProviderName", "SkuId", "RegionId", "PricingCategory", "ServiceName", "PricingUnit")


def _commitments(month: MonthTruth, block: Block, effective: float, listed: float) -> None:
    facts = block.facts
    one = facts.get("commitment")
    if one is not None and facts.get("purchase"):
        month.purchases[one.id] += float(block.billed.sum())
    elif one is not None and facts["status"] == "Used":
        month.used[one.id] += effective
        month.covered_list += listed
        month.eligible_list += listed
    elif one is not None:
        month.unused[one.id] += effective
    elif facts.get("eligible"):
        month.eligible_list += listed
