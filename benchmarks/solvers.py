"""Figures of the optimisation core: `python -m benchmarks.solvers [--family fleet|hours|single] [--seed N]`.

Every case runs in a fresh process, so that CPU seconds include imports. Instances are synthetic, shaped on real
catalogs: a few dozen accelerator types sold in regions of different price level, by zone, on demand and spot;
capacities small for large machines, quotas Pareto-distributed in vCPU, a price for opening a region.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from planner.formulation.fleet_input import FleetInput

TYPES = np.array(
    # accelerators, relative throughput each, vCPU, accelerator GiB each, USD per hour
    [
        (1, 0.20, 4, 16, 0.53),
        (4, 0.20, 48, 16, 3.91),
        (1, 0.25, 8, 24, 1.21),
        (4, 0.25, 48, 24, 5.67),
        (8, 0.25, 192, 24, 16.29),
        (1, 0.33, 8, 24, 0.98),
        (4, 0.33, 48, 24, 4.60),
        (8, 0.33, 192, 24, 13.35),
        (1, 0.80, 8, 48, 2.24),
        (8, 0.80, 192, 48, 30.13),
        (1, 0.35, 8, 16, 3.06),
        (8, 0.35, 64, 16, 24.48),
        (1, 1.00, 12, 40, 3.67),
        (8, 1.00, 96, 40, 21.96),
        (8, 1.04, 96, 80, 27.45),
        (1, 2.60, 26, 80, 8.50),
        (8, 2.60, 192, 80, 55.04),
        (8, 2.85, 192, 141, 63.30),
        (8, 5.60, 192, 179, 113.93),
        (16, 0.28, 128, 32, 21.50),
    ]
)
SIZES = {
    "fleet": (200, 2_000, 7_000, 100_000),
    "hours": (200, 2_000, 7_000, 100_000),
    "single": (200, 2_000, 20_000),
}
LIMITS_S = {100_000: 10.0}


def fleet_instance(n_offers: int, seed: int, *, hours: bool = False) -> FleetInput:
    """A fleet question of `n_offers` offers over about 80 regions of three providers.

    `hours`: workers may stop early, with 0.5 to 4 % of the whole time as fixed hours.
    """
    random = np.random.default_rng([seed, n_offers])
    n_regions = 80
    level = np.round(random.uniform(1.0, 1.6, n_regions), 2)
    provider_of_region = random.integers(0, 3, n_regions)
    kind = random.integers(0, len(TYPES), n_offers)
    variant = random.uniform(0.85, 1.15, n_offers) if n_offers > 20_000 else np.ones(n_offers)
    region = random.integers(0, n_regions, n_offers)
    spot = random.random(n_offers) < 0.5
    accelerators, speed, vcpus, memory, price = TYPES[kind].T
    discount = np.where(spot, random.uniform(0.25, 0.8, n_offers), 1.0)
    interruption = np.where(spot, random.choice([0.03, 0.08, 0.13, 0.2], n_offers), 0.0)
    throughput = accelerators * speed * 100 * (1 - interruption) * random.uniform(0.97, 1.03, n_offers)
    large = accelerators >= 8
    capacity = np.where(large, random.integers(0, 9, n_offers), random.integers(0, 50, n_offers))
    group_code = (region * 4 + np.minimum(accelerators, 8) // 4) * 2 + spot
    group = np.unique(group_code, return_inverse=True)[1]
    quota = np.clip(np.rint(256 * (1 + random.pareto(1.1, int(group.max()) + 1))), 64, 6_000)
    cost = np.round(price * level[region] * discount * variant, 4)
    required = 40 * float(np.quantile(throughput, 0.75))
    return FleetInput(
        keys=tuple(range(n_offers)),
        cost_usd=cost,
        fixed_cost_usd=cost * np.random.default_rng(seed).uniform(0.005, 0.04, n_offers) if hours else None,
        throughput=np.round(throughput * variant, 3),
        required_throughput=round(required, 1),
        max_units=capacity.astype(float),
        region=region,
        provider=provider_of_region[region],
        is_spot=spot,
        memory_gib=accelerators * memory,
        quota_group=group,
        quota_units=vcpus,
        quota_limit=quota,
        region_cost_usd=np.round(random.uniform(0.5, 6.0, n_regions), 2),
        max_spot_share=0.6,
        max_share_per_region=0.5,
        max_share_per_offer=0.2,
        max_regions=4,
        min_total_memory_gib=32 * float(np.median(accelerators * memory)),
    )


def run_hours(n_offers: int, seed: int, gap: float, limit_s: float, backend: str) -> dict[str, Any]:
    """Solve one fleet question whose workers may stop early."""
    return run_fleet(n_offers, seed, gap, limit_s, backend, hours=True)


def run_fleet(
    n_offers: int, seed: int, gap: float, limit_s: float, backend: str, *, hours: bool = False
) -> dict[str, Any]:
    """Solve one fleet question; CPU of this process and its children."""
    from planner.formulation.fleet import solve_fleet
    from solvers.options import SolveOptions

    fleet = fleet_instance(n_offers, seed, hours=hours)
    before, began = _cpu_s(), time.perf_counter()
    result = solve_fleet(fleet, SolveOptions(gap=gap, time_limit_s=limit_s, backend=backend))
    wall = time.perf_counter() - began
    first = next((row for row in result.stages if row[2] <= result.objective_usd * 1.05), None)
    return {
        "status": result.status.value,
        "objective_usd": result.objective_usd,
        "bound_usd": result.bound_usd,
        "gap": result.gap,
        "cpu_s": _cpu_s() - before,
        "wall_s": wall,
        "columns": result.n_columns,
        "within_5_percent_after_s": first[1] if first else math.nan,
        "stages": result.stages,
    }


def run_single(n_candidates: int, seed: int, gap: float, limit_s: float, backend: str) -> dict[str, Any]:
    """Solve one single-job question and compare with plain enumeration."""
    from planner.formulation.single import SingleInput, solve_single
    from solvers.options import SolveOptions

    random = np.random.default_rng([seed, n_candidates])
    cost = np.round(random.lognormal(8, 1.5, n_candidates), 2)
    group = random.integers(-1, 40, n_candidates)
    units = np.asarray(random.integers(1, 64, n_candidates) * 8.0, dtype=np.float64)
    limit = np.asarray(np.rint(random.pareto(1.1, 40) * 256), dtype=np.float64)
    job = SingleInput(
        tuple(range(n_candidates)), cost, random.uniform(1, 500, n_candidates), group, units, limit
    )
    before = _cpu_s()
    options = SolveOptions(gap=gap, time_limit_s=limit_s, backend=backend)
    result = solve_single(job, options)
    fits = units <= np.append(limit, math.inf)[group]
    exact = float(cost[fits].min())
    return {
        "status": result.status.value,
        "objective_usd": result.objective_usd,
        "bound_usd": result.bound_usd,
        "gap": result.gap,
        "cpu_s": _cpu_s() - before,
        "wall_s": result.seconds,
        "columns": n_candidates,
        "equals_enumeration": result.objective_usd == exact,
    }


def _cpu_s() -> float:
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(item.ru_utime + item.ru_stime for item in used)


RUNNERS = {"fleet": run_fleet, "hours": run_hours, "single": run_single}


def run_case(family: str, size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one case in a fresh process."""
    limit_s = min(arguments.time_limit, LIMITS_S.get(size, math.inf))
    command = [
        sys.executable,
        "-m",
        "benchmarks.solvers",
        "--case",
        family,
        str(size),
        "--gap",
        str(arguments.gap),
    ]
    command += ["--seed", str(arguments.seed), "--time-limit", str(limit_s), "--backend", arguments.backend]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    case: dict[str, Any] = json.loads(done.stdout)
    return {"family": family, "size": size, "seed": arguments.seed, "limit_s": limit_s, **case}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=sorted(SIZES))
    parser.add_argument("--sizes", type=int, nargs="+", help="number of offers or candidates")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument(
        "--time-limit", type=float, default=60.0, help="seconds per case (100,000 offers: 10)"
    )
    parser.add_argument("--backend", default="scipy")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        family, size = arguments.case[0], int(arguments.case[1])
        runner = RUNNERS[family]
        case = runner(size, arguments.seed, arguments.gap, arguments.time_limit, arguments.backend)
        print(json.dumps({**case, "process_cpu_s": _cpu_s()}))
        return
    print(
        f"{'family':7}{'size':>8}{'objective':>13}{'bound':>13}{'gap':>9}{'status':>10}"
        f"{'cpu s':>8}{'process':>9}{'wall s':>8}{'limit':>7}{'5% at':>7}{'kept':>6}"
    )
    cases = []
    for family in [arguments.family] if arguments.family else sorted(SIZES):
        for size in arguments.sizes or SIZES[family]:
            case = run_case(family, size, arguments)
            kept = case["wall_s"] <= case["limit_s"] * 1.1
            print(
                f"{family:7}{size:8}{case['objective_usd']:13.4f}{case['bound_usd']:13.4f}{case['gap']:9.5f}"
                f"{case['status']:>10}{case['cpu_s']:8.2f}{case['process_cpu_s']:9.2f}{case['wall_s']:8.2f}"
                f"{case['limit_s']:7.0f}{case.get('within_5_percent_after_s', math.nan):7.2f}{kept!s:>6}",
                flush=True,
            )
            cases.append({**case, "kept": kept})
    if arguments.json:
        arguments.json.write_text(json.dumps(cases, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
