"""Two pools by deadlines, checked on random jobs: by the judge, by all pairs, and a later deadline never costs more.

Each job is a random workload of reinforcement learning on a few types and regions, planned by rising deadlines. Every
answer goes through `planner verify`; the pair of the search is compared with the cheapest of all pairs of sizes and
ways by ten deadlines each, without any bound but that a pool beside another costs no less than alone by the same room.

    python -m benchmarks.pools_check [--n 20] [--first 0] [--ending]

`--ending`: two machines of each type are paid already, for as long as half of each deadline and for all of it.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from catalogs.offers.query import OfferQuery, query_offers
from catalogs.store.load import load_catalog
from planner.asked.options import Options
from planner.cli import main as planner
from planner.inputs.load import load_workload
from planner.pipelines.pools import PoolsQuestion
from planner.pipelines.pools_asked import Ask
from planner.pipelines.pools_by_deadline import ByDeadline

DAY = date(2026, 11, 20)
SHARES = tuple(np.linspace(0.1, 1.0, 10).tolist())  # of the room that the deadline leaves
TIMES = (1.6, 2.2, 3.0, 5.0, 9.0)  # deadlines over the work of the cheapest pair without one
_AT_ONCE = 256


def job(seed: int) -> dict[str, Any]:
    """A random workload of reinforcement learning without a deadline."""
    draw = random.Random(seed)
    mean = draw.choice((300, 800, 2_000, 5_000))
    ahead = draw.choice((0, 0, 1, 2))
    rollouts: dict[str, Any] = {
        "prompt_tokens": {"mean": 200, "max": 1_024}, "samples_per_prompt": 16, "engine": "vllm",
        "response_tokens": {"mean": mean, "p95": int(2.2 * mean), "max": 4 * mean},
    }  # fmt: skip
    if ahead:
        rollouts |= {"placement": "disaggregated", "steps_off_policy": ahead}
    two = draw.sample(["h100*", "a100*", "l40s*", "h200*"], 2)
    return {
        "version": 1, "name": f"job {seed}",
        "model": {"preset": draw.choice(("qwen2.5-1.5b", "qwen2.5-7b", "llama-3.1-8b", "qwen2.5-14b"))},
        "training": {
            "objective": draw.choice(("grpo", "grpo", "ppo")), "steps": draw.choice((60, 200, 600)),
            "global_batch": draw.choice((256, 512, 1_024)), "rollouts": rollouts,
        },
        "data": {"samples": 20_000, "location": "aws/us-east-1"},
        "constraints": {
            "regions": draw.sample(["aws/us-east-1", "aws/us-west-2", "aws/us-east-2", "gcp/us-central1"], 2),
            "accelerators": {"allow": two}, "max_nodes": draw.choice((2, 3, 4)),
        },
    }  # fmt: skip


def ending(workload: dict[str, Any], hours: float) -> list[dict[str, Any]]:
    """Commitments of the cheapest on-demand machines of each type in the job's first AWS region, by a deadline."""
    limits = workload["constraints"]
    here = next((region for region in limits["regions"] if region.startswith("aws/")), "")
    catalog = load_catalog(None, as_of=DAY)
    out = []
    for accelerator, share in zip(limits["accelerators"]["allow"], (0.5, 1.0), strict=True):
        query = OfferQuery(accelerators=(accelerator,), regions=(here,), purchase_options=("on_demand",))
        offers = query_offers(catalog, query).offers
        if offers.n_rows:
            end = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC) + timedelta(hours=share * hours)
            out.append({
                "provider": "aws", "region": here.removeprefix("aws/"), "nodes": 2,
                "instance_type": str(offers["instance_type"][0]), "purchase_option": "reserved_1y",
                "expires": end.isoformat(timespec="minutes"),
            })  # fmt: skip
    return out


def question(workload: dict[str, Any], path: Path) -> PoolsQuestion:
    """The question of a workload, which is written to a file."""
    path.write_text(yaml.safe_dump(workload), encoding="utf-8")
    now = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
    options = Options(now, as_of=DAY)
    return PoolsQuestion(load_workload(path), load_catalog(None, as_of=DAY), options)


def cheapest_of_all(pairs: ByDeadline, below_usd: float, shares: Sequence[float] = SHARES) -> float:
    """What the cheapest of all pairs of sizes and ways costs by deadlines that leave some shares of the room, USD.

    Infinite where none costs less than `below_usd`.
    """
    works = [work for work in map(pairs.work, _rows(pairs)) if work.half_hours > 0]
    ended = [work.ending(work.hours + share * 2.0 * work.half_hours) for work in works for share in shares]
    asked = []
    for beside in (0, 1):
        alike = [own for own in ended if not beside or own.sizes[0][0] == own.sizes[1][0]]
        each = [
            pairs.bounds.asked[n].all([
                Ask(own.sizes[n], own.step_s, own.by(pairs.level, 1.0), below_usd, beside * own.sizes[1 - n][1])
                for own in alike
            ])
            for n in (0, 1)
        ]  # fmt: skip
        for own, t, r in zip(alike, *each, strict=True):
            usd = np.where(t.region[:, None] == r.region, t.usd[:, None] + r.usd, np.inf)
            for a, b in zip(*np.nonzero(usd < below_usd), strict=True):
                ways = (t.offers(int(a)), r.offers(int(b)))
                if pairs.bounds.share_offers(ways) == bool(beside):
                    asked.append((own, ways))
    least = np.inf
    for first in range(0, len(asked), _AT_ONCE):
        priced = pairs.ended.at(asked[first : first + _AT_ONCE], below_usd)
        least = min([least, *(one.usd for one in priced if one is not None)])
    return least


def _rows(pairs: ByDeadline) -> list[tuple[int, int]]:
    """A row of every pair of sizes that keeps the limits on nodes, in time or not."""
    points, terms = pairs._points, pairs.terms
    return [
        (a, b)
        for a in range(len(points[0].at))
        for b in range(len(points[1].at))
        if points[0].nodes[a] + points[1].nodes[b] <= terms.most_nodes
        and points[0].accelerators[a] + points[1].accelerators[b] <= terms.most_accelerators
        and points[0].rate[a] > 0 and points[1].rate[b] > 0
    ]  # fmt: skip


def holds(path: Path, answer: Path) -> bool:
    """Whether `planner verify` agrees with what `planner pools` answers."""
    for arguments in (
        ["pools", str(path), "-o", "json", "--out", str(answer), "--as-of", DAY.isoformat()],
        [
            "verify",
            str(answer),
            "--workload",
            str(path),
            "-o",
            "json",
            "--out",
            str(answer.with_suffix(".verdict")),
        ],
    ):
        if planner(arguments):
            return False
    return True


def main() -> None:
    """Print each job and deadline, and what disagrees."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--first", type=int, default=0)
    reader.add_argument("--n", type=int, default=20)
    reader.add_argument("--ending", action="store_true")
    given = reader.parse_args()
    asked, faults, later, over, under = 0, 0, 0, 0, 0
    gaps: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path, answer = Path(folder) / "job.yaml", Path(folder) / "pools.json"
        for seed in range(given.first, given.first + given.n):
            workload = job(seed)
            free = question(workload, path)._cheapest()[0]
            if free is None:
                print(f"job {seed}: no pair without a deadline", flush=True)
                continue
            last = np.inf
            for times in TIMES:
                hours = times * free["step_s"] * free["pools"][0].hours / free["pools"][0].paced_s
                workload["constraints"]["deadline"] = f"{hours:.2f}h"
                if given.ending:
                    workload["commitments"] = ending(workload, hours)
                asking = question(workload, path)
                pairs = asking.by_deadline
                assert pairs is not None
                found = pairs.cheapest(np.inf)
                usd = np.inf if found.pair is None else found.pair.cost_usd
                least = cheapest_of_all(pairs, min(usd, 3.0 * float(free["cost_usd"])))
                verified = found.pair is None or holds(path, answer)
                asked, faults = asked + 1, faults + (not verified)
                later += usd > last * (1 + 1e-4)
                over += least < usd * (1 - 6e-3)
                under += least < found.bound_usd * (1 - 1e-9)
                if np.isfinite(usd):
                    gaps.append(1.0 - found.bound_usd / usd)
                last = usd
                print(
                    f"job {seed} by {hours:7.1f} h: {usd:10.2f}, bound {found.bound_usd:10.2f}, all {least:10.2f},"
                    f" {'holds' if verified else 'FAULT'}", flush=True,
                )  # fmt: skip
            del workload["constraints"]["deadline"]
            workload.pop("commitments", None)
    spread = f"gap {np.median(gaps):.2%} in the median, {max(gaps):.2%} at most" if gaps else "no pair"
    print(
        f"{asked} answers: {faults} do not hold, {later} cost more than by an earlier deadline, {over} pairs of all are"
        f" cheaper by more than 0.5 %, {under} are below the bound; {spread}"
    )


if __name__ == "__main__":
    main()
