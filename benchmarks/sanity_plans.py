"""Prices and whole plans that must come out right: the second table of docs/sanity.md (`benchmarks.sanity`)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from catalogs.offers.flags import load_flags
from catalogs.store.load import load_catalog
from catalogs.tables.model import Severity
from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.plan.ids import TimePartId
from planner.plan.model import Plan
from planner.workloads.answer import optimize

EXAMPLES = Path(__file__).parents[1] / "examples"
DAY = datetime(2026, 11, 20, tzinfo=UTC)


class Check(NamedTuple):
    """One thing that must hold, what came out, and whether it does."""

    what: str
    expected: str
    ours: str
    holds: bool


def checks() -> list[Check]:
    """All checks on prices and plans."""
    return [_p4d_price(), _gpt3_plan(), _a100_plan()]


def _p4d_price() -> Check:
    offers = load_catalog().offers
    hit = offers.equals("instance_type", "p4d.24xlarge") & offers.equals("region", "us-east-1")
    prices = sorted(set(offers.take(hit & offers.equals("purchase_option", "on_demand"))["price_per_hour"]))
    text = ", ".join(prices)
    return Check(
        "p4d.24xlarge on demand in us-east-1, USD per hour", "21.957642", text, prices == ["21.957642"]
    )


def _gpt3_plan() -> Check:
    plan = optimize(load_workload(EXAMPLES / "gpt3-175b.yaml"), Options(DAY)).plan
    devices = sum(line.accelerators for line in plan.lines)
    steps = sum(part.hours for part in plan.timeline if part.id == TimePartId.TRAINING_STEPS)
    days, whole = (hours / 24 * devices / 1024 for hours in (steps, plan.hours))
    what = "GPT-3 175B on 300 B tokens planned on A100-80GB, days of 1,024 of them: the steps, as the published figure"
    ours = f"{days:.1f} ({whole:.1f} with all that comes beside the steps) on {_place(plan)}"
    return Check(what, "28 to 40 (published: about 34)", ours, 28 <= days <= 40)


def _a100_plan() -> Check:
    """Eight A100-40GB on demand: a list that shows the queued (DWS) price as on-demand would send this to GCP."""
    loaded = load_workload(EXAMPLES / "bert-large.yaml")
    only = {
        "purchase_options": ("on_demand",),
        "accelerators": loaded.workload.constraints.accelerators.model_copy(
            update={"allow": ("a100-40gb-*",)}
        ),
        "max_nodes": 1,
    }
    limits = loaded.workload.constraints.model_copy(update=only)
    plan = optimize(
        replace(loaded, workload=loaded.workload.model_copy(update={"constraints": limits})), Options(DAY)
    ).plan
    flags = load_flags()
    refused = [flag for line in plan.lines for flag in line.flags if flags[flag].severity is Severity.REFUSE]
    holds = bool(plan.lines) and plan.lines[0].provider != "gcp" and not refused
    return Check(
        "BERT-large on one machine with A100-40GB, on demand, is not sent to GCP by a queued (DWS) price",
        "not gcp, no refused price",
        _place(plan),
        holds,
    )


def _place(plan: Plan) -> str:
    if not plan.lines:
        return "no plan"
    line = plan.lines[0]
    price = f"{line.price_per_hour} {line.currency}/h"
    return f"{line.nodes} x {line.instance_type} in {line.provider}/{line.region} at {price}"


def render() -> list[str]:
    """The table's lines in Markdown."""
    rows = [f"| {c.what} | {c.expected} | {c.ours} | {'yes' if c.holds else 'NO'} |" for c in checks()]
    return [
        "## Prices and whole plans",
        "",
        "| what | expected | ours | holds |",
        "| --- | --- | --- | --- |",
        *rows,
    ]
