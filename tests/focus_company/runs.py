"""GPU training runs: what was planned, what was run, billed and of use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from tests.focus_company import fields
from tests.focus_company.catalogue import SKUS
from tests.focus_company.ledger import Ledger

GPUS_PER_NODE = 8


@dataclass(frozen=True)
class Run:
    """One training run: planned (`planned_*`) and as it happened.

    Hours are wall-clock from start to end; `lost_hours` of them were work lost to interruptions and done again.
    """

    run_id: str
    sku_code: str
    region: int
    purchase: str
    start: date
    nodes: int
    hours: float
    price: float
    interruptions: int
    lost_hours: float
    tokens: float
    planned_nodes: int
    planned_hours: float
    planned_price: float
    planned_lost_hours: float = 0.0
    tag_key: str = "run_id"

    @property
    def billed_usd(self) -> float:
        """Node hours times price."""
        return self.nodes * self.hours * self.price

    @property
    def planned_usd(self) -> float:
        """The plan's total."""
        return self.planned_nodes * self.planned_hours * self.planned_price

    @property
    def gpu_hours(self) -> float:
        """Paid accelerator hours."""
        return self.nodes * GPUS_PER_NODE * self.hours


def company_runs(months: tuple[date, ...]) -> tuple[Run, ...]:
    """Three runs in the newest month and one in the month before (if there is one)."""
    new = months[-1]
    old = months[max(0, len(months) - 2)]
    return (
        Run("run-7c1e00", "aws-gpu", 0, "on_demand", new + timedelta(days=2), 4, 60.0, 36.0, 0, 0.0, 9.0e10, 4, 52.0,
            36.0),
        Run("run-51a9d2", "gcp-gpu", 1, "spot", new + timedelta(days=9), 2, 100.0, 16.5, 3, 11.0, 7.0e10, 2, 90.0, 15.0,
            5.0),
        Run("run-0be4f3", "az-gpu", 0, "on_demand", new + timedelta(days=18), 3, 40.0, 38.0, 0, 0.0, 4.0e10, 2, 60.0,
            37.8),
        Run("run-a0a0a0", "aws-gpu", 1, "spot", old + timedelta(days=5), 2, 48.0, 15.5, 1, 2.0, 3.0e10, 2, 50.0, 16.0,
            1.0),
    )  # fmt: skip


def add_runs(ledger: Ledger, month: date, runs: tuple[Run, ...]) -> None:
    """Rows of the runs that start in the month: one per node and day."""
    for run in runs:
        if (run.start.year, run.start.month) == (month.year, month.month):
            _add(ledger, month, run)


def day_hours(run: Run) -> list[float]:
    """Hours on each day from the start."""
    whole = int(run.hours // 24)
    rest = run.hours - 24 * whole
    return [24.0] * whole + ([rest] if rest else [])


def _add(ledger: Ledger, month: date, run: Run) -> None:
    sku = next(s for s in SKUS if s.code == run.sku_code)
    contracted = round(sku.list_price * sku.contract_ratio, 12)
    named = {
        **fields.base(sku.provider), **fields.account(sku.provider, 2), **fields.region(sku.provider, run.region, "c"),
        **fields.sku_fields(sku, sku.list_price, contracted, run.purchase), "_resource": f"{run.run_id}-node-",
        "ChargeDescription": f"GPU machine of {run.run_id}",
    }  # fmt: skip
    if run.purchase == "spot":
        named |= {"PricingCategory": "Dynamic", "CommitmentProgramEligibilityDetails": None}
    hours = np.array(day_hours(run))
    day = np.repeat(np.arange(len(hours)) + run.start.day - 1, run.nodes)
    q = np.repeat(hours, run.nodes)
    tag = ledger.tag(team="research", env="dev", application="lab", **{run.tag_key: run.run_id})
    ledger.add(
        named, month, day=day, resource=np.tile(np.arange(run.nodes), len(hours)), tag=tag, quantity=q,
        listed=q * sku.list_price, contracted=q * contracted, effective=q * run.price, billed=q * run.price,
        eligible=run.purchase != "spot", gpus=GPUS_PER_NODE, run=run,
    )  # fmt: skip
