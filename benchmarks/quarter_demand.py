"""A quarter of demand to judge schedulers by: jobs that arrive over time, and how long they really run.

Fixed before any policy was scored; seeds from 101 on are for trying policies out, those below for scores. Teams submit
jobs as a Poisson process with a weekly rhythm; a job is one of five trainings, its work is log-normal, its ways to run
are those that `planner` works out for the training on the bundled catalog, longer and dearer in proportion. The
quarter's load on what is owned is drawn, so some quarters are slack and some are crowded, and some weeks are a rush.
How long a job really runs is its predicted length times a factor that no policy sees.
"""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog

START = datetime(2026, 12, 1, tzinfo=UTC)
DECIDED = datetime(2026, 11, 23, tzinfo=UTC)  # prices of that day
POOLS = (("p4d.24xlarge", 16), ("p5.48xlarge", 6))  # owned instances, aws/us-east-1
OWNED_OF_ON_DEMAND = 0.65  # what an owned hour costs, of the on-demand price
LOAD = (
    1.0,
    2.4,
)  # expected work over what is owned, counted on four p4d.24xlarge: fewer instances need half as much
WORK_SPREAD = 1.3  # of the logarithm of a job's work
RUSHES_A_QUARTER = 2.0  # weeks before a date that all share
RUSH = 3.0  # their rate of submissions, over that of other weeks
OFFICE = 4.0  # rate of submissions on weekdays from 9 to 19 UTC, over that of other hours
# of the logarithm: four in five within x 1.23, as docs/performance-model.md measures its hours
TRUTH_SPREAD = 0.16
ENDS_EARLY = 0.1  # share of jobs that stop at a random point: failed, or seen to be no good
SLACK = (1.0, 5.0)  # deadline after the submission, in lengths of the run on four p4d.24xlarge

# name, weight, share of what is owned, quota of vCPUs of P instances on demand
TEAMS = (("research", 0.5, 0.6, 768), ("product", 0.3, 0.6, 768), ("platform", 0.2, 0.4, 384))
PRIORITIES = ((0, 0.55), (1, 0.3), (2, 0.15))
P_QUOTA, P_LIMIT = "L-417A185B", 1536

_DATA = "{location: aws/us-east-1, size: 200GB}"
TRAININGS = {
    "adapters-70b": "{preset: llama-3.1-70b}|{tokens: 200e6, global_batch: 64, sequence_length: 4096, method: lora, "
    "lora_rank: 16}",
    "encoder": "{preset: bert-large}|{tokens: 137e9, global_batch: 4096, sequence_length: 512, precision: bf16, "
    "stack: compiled}",
    "language-8b": "{preset: llama-3-8b}|{tokens: 10e9, global_batch: 512, sequence_length: 8192, precision: bf16}",
    "vision": "{preset: resnet-50}|{samples: 400e6, global_batch: 1024, precision: fp16, optimizer: sgd}",
    "diffusion": "{preset: stable-diffusion-1.5}|{samples: 20e6, global_batch: 64, precision: bf16, "
    "optimizer: adamw_8bit}",
}
MIX = (0.3, 0.15, 0.3, 0.1, 0.15)
_OPTIONS = "purchase_options: [on_demand, spot, reserved_1y]"  # reserved: what is owned


@record(frozen=True)
class Way:
    """One way to run a training, its hours and cost per unit of work (an hour on four p4d.24xlarge)."""

    provider: str
    region: str
    instance_type: str
    family: str
    purchase_option: str
    nodes: int
    hours: float
    cost_usd: float


@record(frozen=True, eq=False)
class Quarter:
    """One generated case.

    Attributes:
        submitted: hours after the start, ascending, shape `(n_jobs,)`.
        work: hours on four p4d.24xlarge, shape `(n_jobs,)`.
        training, team, priority: of each job.
        deadline: hours after the start, shape `(n_jobs,)`.
        factor: real over predicted length, shape `(n_jobs,)`.
        load: expected work over what is owned.
        days: over which jobs arrive.
    """

    submitted: Floats
    work: Floats
    training: tuple[str, ...]
    team: tuple[str, ...]
    priority: tuple[int, ...]
    deadline: Floats
    factor: Floats
    load: float
    days: int


def make_quarter(seed: int, jobs: int, days: int = 90) -> Quarter:
    """Return the case of a seed with `jobs` expected jobs."""
    draw = np.random.default_rng([seed, 19])
    load = float(draw.uniform(*LOAD))
    count = max(int(draw.poisson(jobs)), 1)
    submitted = _arrivals(draw, count, days)
    # a p5 is worth about 2.2 p4d on these trainings
    owned = (POOLS[0][1] + 2.2 * POOLS[1][1]) * 24.0 * days / 4.0
    mean = load * owned / jobs
    work = mean * np.exp(draw.normal(-0.5 * WORK_SPREAD**2, WORK_SPREAD, count))
    names = list(TRAININGS)
    training = tuple(names[at] for at in draw.choice(len(names), count, p=MIX))
    team = tuple(TEAMS[at][0] for at in draw.choice(len(TEAMS), count, p=[row[1] for row in TEAMS]))
    priority = tuple(
        PRIORITIES[at][0] for at in draw.choice(len(PRIORITIES), count, p=[row[1] for row in PRIORITIES])
    )
    deadline = submitted + 8.0 + work * draw.uniform(*SLACK, count)
    factor = np.exp(draw.normal(0.0, TRUTH_SPREAD, count))
    stops = draw.random(count) < ENDS_EARLY
    factor = np.where(stops, factor * draw.uniform(0.05, 0.9, count), factor)
    return Quarter(submitted, work, training, team, priority, deadline, factor, load, days)


def _arrivals(draw: np.random.Generator, count: int, days: int) -> Floats:
    """Moments of submission, hours, ascending: uniform minutes within hours drawn by their rate."""
    hours = np.arange(24 * days)
    weekday = (START.weekday() + hours // 24) % 7
    busy = (weekday < 5) & (hours % 24 >= 9) & (hours % 24 < 19)
    rate = np.where(busy, OFFICE, 1.0)
    for _ in range(int(draw.poisson(RUSHES_A_QUARTER * days / 90))):
        first = int(draw.integers(24 * days))
        rate[first : first + 7 * 24] *= RUSH
    at = draw.choice(hours, count, p=rate / rate.sum()) + draw.random(count)
    return np.asarray(np.round(np.sort(at) * 60) / 60)


def ways_to_run(folder: Path, catalog: Catalog) -> dict[str, tuple[Way, ...]]:
    """Ways of each training that are cheapest for their length, by the one engine; owned ones free.

    Args:
        folder: where the question is written.
        catalog: prices.
    """
    from planner.asked.options import Options
    from planner.inputs.portfolio_load import load_portfolio
    from planner.portfolios.gather import Gatherer

    file = folder / "trainings.yaml"
    file.write_text(_trainings_file())
    gatherer = Gatherer(load_portfolio(file), lambda: catalog, Options(DECIDED))
    gatherer.up_to_usd = [1e6] * len(TRAININGS)
    gathered = gatherer.gather()
    table, out = gathered.question.table, {}
    for job, name in enumerate(TRAININGS):
        rows = np.flatnonzero((table.job == job) & (table.start_hours == 0) & (table.late_hours <= 0))
        ways: list[Way] = []
        for at in rows.tolist():
            way, owned = gathered.ways[int(table.way[at, 0])], bool(table.pool[at, 0] >= 0)
            if (table.way[at] >= 0).sum() != 1 or (not owned and way.purchase_option == "reserved_1y"):
                continue
            family = next((code for code, _ in way.names if code == P_QUOTA), "")
            ways.append(
                Way(
                    way.provider, way.region, way.instance_type, "" if owned else family, way.purchase_option,
                    int(table.nodes[at, 0]), float(table.hours[at]),
                    0.0 if owned else int(table.cost_micro_usd[at]) / 1e6,
                )
            )  # fmt: skip
        out[name] = _per_unit(ways)
    return out


def _per_unit(ways: list[Way]) -> tuple[Way, ...]:
    """The owned ways and the cheapest others, per hour on four p4d.24xlarge."""
    unit = next(
        way.hours * way.nodes / 4
        for way in sorted(ways, key=lambda way: abs(way.nodes - 4))
        if way.instance_type == POOLS[0][0] and not way.cost_usd
    )
    owned = [way for way in ways if not way.cost_usd]
    bought: list[Way] = []
    for way in sorted((way for way in ways if way.cost_usd), key=lambda way: (way.cost_usd, way.hours)):
        if not bought or way.hours < bought[-1].hours:
            bought.append(way)
    return tuple(
        Way(
            way.provider, way.region, way.instance_type, way.family, way.purchase_option, way.nodes,
            way.hours / unit, way.cost_usd / unit,
        )
        for way in (*owned, *bought)
    )  # fmt: skip


def _trainings_file() -> str:
    lines = [
        "version: 1",
        "kind: portfolio",
        "name: trainings",
        f"start: {START.isoformat()}",
        "starts: earliest",
        # windows, so that a faster way is kept beside a cheaper one
        f"windows: [{{name: a, start: {START.isoformat()}}}, {{name: b, start: 2027-12-01}}]",
        "quota:",
        f"  - {{provider: aws, region: '*', quota: {P_QUOTA}, unit: vCPU, limit: 100000}}",
        "commitments:",
    ]
    lines += [
        f"  - {{provider: aws, region: us-east-1, instance_type: {kind}, purchase_option: reserved_1y, nodes: {nodes}}}"
        for kind, nodes in POOLS
    ]
    lines.append("jobs:")
    for name, text in TRAININGS.items():
        model, training = text.split("|")
        inline = f"version: 1, name: {name}, model: {model}, training: {training}, data: {_DATA}"
        inline += ", constraints: {deadline: 60d, max_nodes: 8, providers: [aws], " + _OPTIONS + "}"
        lines.append(f"  - {{name: {name}, inline: {{{inline}}}}}")
    return "\n".join(lines) + "\n"


def write_quarter(
    quarter: Quarter, ways: dict[str, tuple[Way, ...]], on_demand_usd: dict[str, float], folder: Path
) -> Path:
    """Write the case as a user would: a portfolio, its jobs and their ways to run; return the portfolio's path.

    Args:
        quarter: the case; its factors are not written.
        ways: per training.
        on_demand_usd: price of an hour of each owned type.
        folder: where to write.
    """
    columns = ("name", "submitted", "team", "priority", "deadline", "checkpoint_hours")
    with (folder / "jobs.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(columns)
        for at, hours in enumerate(quarter.submitted.tolist()):
            out.writerow(
                (_name(at), _length(hours), quarter.team[at], quarter.priority[at],
                 _length(float(quarter.deadline[at]) - hours), 1)
            )  # fmt: skip
    with (folder / "candidates.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(
            ("job", "provider", "region", "instance_type", "family", "purchase_option", "nodes", "hours", "cost_usd")
        )  # fmt: skip
        for at, work in enumerate(quarter.work.tolist()):
            for way in ways[quarter.training[at]]:
                out.writerow(
                    (_name(at), way.provider, way.region, way.instance_type, way.family, way.purchase_option,
                     way.nodes, f"{way.hours * work:.6f}", f"{way.cost_usd * work:.4f}")
                )  # fmt: skip
    lines = [
        "version: 1",
        "kind: portfolio",
        "name: quarter",
        f"start: {START.isoformat()}",
        "jobs_csv: jobs.csv",
        "candidates_csv: candidates.csv",
        "rolling: {every: 6h, hours_margin: 0.25}",
        "quota:",
        f"  - {{provider: aws, region: '*', quota: {P_QUOTA}, unit: vCPU, limit: {P_LIMIT}}}",
        "commitments:",
    ]
    for kind, nodes in POOLS:
        price = round(on_demand_usd[kind] * OWNED_OF_ON_DEMAND, 4)
        lines.append(
            f"  - {{provider: aws, region: us-east-1, instance_type: {kind}, purchase_option: reserved_1y, "
            f"nodes: {nodes}, usd_per_node_hour: {price}}}"
        )
    lines.append("teams:")
    for name, _, share, limit in TEAMS:
        quota = f"{{provider: aws, region: '*', quota: {P_QUOTA}, unit: vCPU, limit: {limit}}}"
        lines += [f"  {name}:", f"    share: {share}", f"    quota: [{quota}]"]
    path = folder / "quarter.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _name(at: int) -> str:
    return f"job-{at:04d}"


def _length(hours: float) -> str:
    """Whole minutes, at least one."""
    return f"{max(round(hours * 60), 1)}m"
