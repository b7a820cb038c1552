"""What lies beside the bill: saved plans of the runs, the utilisation file, budgets; and what follows from them."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from planner.plan.ids import TimePartId
from planner.plan.model import Performance, Plan, Risk, TimePart
from tests.focus_company.catalogue import SKUS
from tests.focus_company.runs import GPUS_PER_NODE, Run, day_hours
from tests.saved_plans import plan_line, saved_plan

STORAGE_USD = 12.5  # what every plan counts beside machines; the bill's run tags are on machines only
PROVIDER_IDS = {"AWS": "aws", "Google Cloud": "gcp", "Microsoft": "azure"}


def plan_of(run: Run) -> Plan:
    """The plan of a run as it was saved before the run."""
    sku = next(s for s in SKUS if s.code == run.sku_code)
    steps = run.planned_hours - run.planned_lost_hours - 2.0
    line = plan_line(
        run.planned_nodes, run.planned_hours, run.planned_price, provider=PROVIDER_IDS[sku.provider],
        region="somewhere", instance_type=sku.details["InstanceType"], purchase_option=run.purchase,
        accelerators_per_node=float(GPUS_PER_NODE),
    )  # fmt: skip
    usd, speed = Decimal(repr(run.planned_usd + STORAGE_USD)), run.tokens / (steps * 3600)
    return saved_plan(
        line, workload=f"train-{run.run_id[-6:]}", created_at="2026-09-01T00:00:00+00:00", stated_run_id=run.run_id,
        total_usd=usd,
        risk=Risk(None, 0.0, run.planned_lost_hours, run.planned_hours, run.planned_hours, usd, usd, ""),
        timeline=(TimePart(TimePartId.PROVISIONING, "provisioning", 2.0, "default"),
                  TimePart(TimePartId.TRAINING_STEPS, "training steps", steps, "model")),
        performance=Performance("tokens", speed, speed, speed, None, None, None, None, ""),
    )  # fmt: skip


def write_plans(folder: Path, runs: Sequence[Run]) -> tuple[Path, ...]:
    """One file per run."""
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for run in runs:
        path = folder / f"{run.run_id}.json"
        path.write_text(json.dumps(plan_of(run).to_dict()), encoding="utf-8")
        out.append(path)
    return tuple(out)


def useful_hours(run: Run) -> tuple[float, float, float, float]:
    """Allocated, busy, useful and lost GPU-hours of a run: 98 %, 90 %, and busy less what was lost."""
    paid = run.gpu_hours
    lost = run.lost_hours * run.nodes * GPUS_PER_NODE
    return 0.98 * paid, 0.9 * paid, 0.9 * paid - lost, lost


def write_utilisation(path: Path, runs: Sequence[Run]) -> Path:
    """The utilisation file, a row per run and day in proportion to its hours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["date", "run_id", "allocated_gpu_hours", "busy_gpu_hours", "goodput_gpu_hours",
                         "lost_gpu_hours", "tokens"])  # fmt: skip
        for run in runs:
            for number, hours in enumerate(day_hours(run)):
                share = hours / run.hours
                cells = [repr(v * share) for v in (*useful_hours(run), run.tokens)]
                writer.writerow([(run.start + timedelta(days=number)).isoformat(), run.run_id, *cells])
    return path


def effects_of(run: Run) -> dict[str, float]:
    """Billed less planned by cause: each cause's change in all orders in which they can come, averaged."""
    names = ("price", "nodes", "work", "lost")
    before = {"price": run.planned_price, "nodes": float(run.planned_nodes),
              "work": run.planned_hours - run.planned_lost_hours, "lost": run.planned_lost_hours}  # fmt: skip
    after = {
        "price": run.price,
        "nodes": float(run.nodes),
        "work": run.hours - run.lost_hours,
        "lost": run.lost_hours,
    }

    def cost(values: dict[str, float], hours: float) -> float:
        return values["price"] * values["nodes"] * hours

    out = dict.fromkeys(names, 0.0)
    orders = list(itertools.permutations(("price", "nodes", "hours")))
    for order in orders:
        now, hours = dict(before), before["work"] + before["lost"]
        for name in order:
            old = cost(now, hours)
            if name == "hours":
                rate = now["price"] * now["nodes"]
                for part in ("work", "lost"):
                    out[part] += (after[part] - before[part]) * rate / len(orders)
                hours = after["work"] + after["lost"]
            else:
                now[name] = after[name]
                out[name] += (cost(now, hours) - old) / len(orders)
    return out
