"""What lies beside the bill: saved plans of the runs, the utilisation file, budgets; and what follows from them."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.focus_company.catalogue import SKUS
from tests.focus_company.runs import GPUS_PER_NODE, Run, day_hours

STORAGE_USD = 12.5  # what every plan counts beside machines; the bill's run tags are on machines only
PROVIDER_IDS = {"AWS": "aws", "Google Cloud": "gcp", "Microsoft": "azure"}


def plan_json(run: Run) -> dict[str, Any]:
    """A plan as `planner optimize -o json` saves it, as far as it matters here."""
    sku = next(s for s in SKUS if s.code == run.sku_code)
    steps = run.planned_hours - run.planned_lost_hours - 2.0
    line = {
        "offer_id": f"{run.sku_code}/{run.purchase}", "provider": PROVIDER_IDS[sku.provider], "region": "somewhere",
        "instance_type": sku.details["InstanceType"], "purchase_option": run.purchase, "nodes": run.planned_nodes,
        "billed_hours": str(run.planned_hours), "price_per_hour": str(run.planned_price), "usd_per_currency": "1",
        "currency": "USD", "accelerators_per_node": float(GPUS_PER_NODE), "costs": [],
    }  # fmt: skip
    return {
        "schema_version": 1, "status": "planned", "workload": f"train-{run.run_id[-6:]}", "kind": "training",
        "created_at": "2026-09-01T00:00:00+00:00", "planner_version": "0.1.0", "run_id": run.run_id, "lines": [line],
        "total_usd": str(run.planned_usd + STORAGE_USD), "hours": run.planned_hours, "catalog": [],
        "risk": {"expected_lost_hours": run.planned_lost_hours},
        "timeline": [{"name": "provisioning", "hours": 2.0}, {"name": "training steps", "hours": steps}],
        "performance": {"unit": "tokens", "throughput_per_s": run.tokens / (steps * 3600)},
    }  # fmt: skip


def write_plans(folder: Path, runs: Sequence[Run]) -> tuple[Path, ...]:
    """One file per run."""
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for run in runs:
        path = folder / f"{run.run_id}.json"
        path.write_text(json.dumps(plan_json(run)), encoding="utf-8")
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
