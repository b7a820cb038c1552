"""A policy as a table that a small script can follow without this program: docs/spot/drivers.md says how.

For one zone the table holds the policy's own decision, guard included, for every state on the grid of ticks. For
several zones that would be far too many states: each zone is asked for as if the others were down, and the reader
takes the first zone of the list for which the table says spot. Moves between zones that are up are left out, and the
table says so. A run that follows the table keeps its deadline either way, since every decision in it has passed the
guard.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import Ints
from planner.advice.rollout import Guarded
from planner.errors import InputError
from planner.records import record
from planner.spot.hazards_cells import AGE_EDGES_HOURS
from planner.spot.policy.chain import bucket_ticks, stage_ticks
from planner.spot.policy.job import Mode
from planner.spot.policy.registry import make_policy
from planner.spot.policy.view import IDLE, MODES, ON_DEMAND, SPOT, RunStates, whole_ticks

if TYPE_CHECKING:
    from planner.spot.hazards import HazardModel, HazardTable
    from planner.spot.policy.job import SpotJob
    from planner.spot.policy.view import ArrayPolicy

SCHEMA_VERSION = 1
CSV_COLUMNS = (
    "mode", "zone", "zone_order", "up", "restart_left_ticks", "age_from_ticks", "time_left_from_ticks",
    "slack_from_ticks", "action", "tick_hours", "work_hours", "deadline_hours", "leaves_out",
)  # fmt: skip
FINE_TICKS, COARSE_STEP = 40, 4
MOST_TICKS = 5_000  # of work or slack; a longer job is asked for with a longer --every
Runs = tuple[tuple[int, Mode], ...]


@record(frozen=True)
class Key:
    """A family of states: mode, the zone looked at, whether it is up, restart left and age of its spell.

    `zone` is -1 where all zones are down.
    """

    mode: int
    zone: int
    up: bool
    restart_left_ticks: int
    age_from_ticks: int


@record(frozen=True, eq=False)
class DecisionTable:
    """The policy as rows.

    Attributes:
        job: what it was made for.
        policy: name.
        zones: names in the order in which the reader tries them.
        rows: per key `(time left from, ((slack from, action), ...))`, both in ticks and rising.
    """

    job: SpotJob
    policy: str
    zones: tuple[str, ...]
    rows: dict[Key, list[tuple[int, Runs]]]

    @property
    def leaves_out(self) -> tuple[str, ...]:
        """Actions of `planner advise` that the table never says though a policy may."""
        return ("migrate",) if len(self.zones) > 1 else ()

    @property
    def meaning(self) -> str:
        """What the decisions are, in a sentence."""
        if len(self.zones) == 1:
            return "the policy's own decision, guard included, in every state on the grid"
        return (
            f"each of the {len(self.zones)} zones is evaluated as if the others were down, guard included: try them in "
            "the order of 'zones'; a run is not moved from a zone that is up to another (no migration)"
        )


def build_table(job: SpotJob, model: HazardModel, policy_name: str) -> DecisionTable:
    """Ask the policy in every state of the table.

    Raises:
        InputError: so many ticks that no script could hold them.
    """
    tick = job.tick_hours
    work, deadline = int(np.ceil(job.work_hours / tick - 1e-6)), whole_ticks(job.deadline_hours, tick)
    if max(work, deadline - work) > MOST_TICKS:
        raise InputError(
            f"--table: {deadline:,} ticks to the deadline make the table too large; ask less often, e.g. --every 30m"
        )
    tables = {zone.name: model.table_for(zone) for zone in job.zones}
    policy = Guarded(make_policy(policy_name, job, tables))
    keys = list(_keys(job))
    rows: dict[Key, list[tuple[int, Runs]]] = {key: [] for key in keys}
    exact = len(job.zones) == 1
    asked = _points(deadline, exact)
    for time_left in asked[1:].tolist():
        low, high = max(0, time_left - work), min(deadline - work, time_left - 1)
        if high < low:
            continue
        slack = np.unique(np.append(asked[(asked > low) & (asked <= high)], low))
        for key, actions in zip(keys, _ask(policy, keys, tables, time_left, slack), strict=True):
            runs = _run_lengths(slack, actions)
            if not rows[key] or rows[key][-1][1] != runs:
                rows[key].append((time_left, runs))
    return DecisionTable(job, policy_name, _order(job, tables), _without_repeats(rows))


def _points(most: int, exact: bool) -> Ints:
    """Ticks of time left or slack to ask at: all, or every tick at first and every fourth later.

    A reader takes the point at or below its own. Whether an action is safe depends on the slack alone and more slack
    is never less safe, so the guard holds between points too.
    """
    every = np.arange(most + 1)
    return every if exact else every[(every <= FINE_TICKS) | (every % COARSE_STEP == 0)]


def _keys(job: SpotJob) -> Iterator[Key]:
    """All families of states, in the order of the table."""
    fine = bucket_ticks(AGE_EDGES_HOURS, job.tick_hours)
    ages = [int(age) for age in (fine if len(job.zones) == 1 else stage_ticks(job.tick_hours))]
    levels = int(np.ceil(job.restart_hours / job.tick_hours - 1e-6))
    for age in ages:
        for mode in (IDLE, ON_DEMAND):
            yield Key(mode, -1, False, 0, age)
            for zone in range(len(job.zones)):
                yield Key(mode, zone, True, 0, age)
        for zone in range(len(job.zones)):
            for left in range(levels + 1):
                yield Key(SPOT, zone, True, left, age)


def _ask(
    policy: ArrayPolicy, keys: list[Key], tables: dict[str, HazardTable], time_left: int, slack: Ints
) -> Ints:
    """Actions per key and slack, shape `(n_keys, n_slack)`."""
    view, job = policy.view, policy.view.job
    tick, n_zones, n = job.tick_hours, len(job.zones), len(slack)
    down = np.array([max(round(tables[zone.name].mean_down_hours / tick), 1) for zone in job.zones])
    up, since = np.zeros((len(keys), n_zones), dtype=np.bool_), np.tile(down, (len(keys), 1))
    for number, key in enumerate(keys):
        if key.zone >= 0:
            up[number, key.zone], since[number, key.zone] = key.up, key.age_from_ticks
        else:
            since[number] = np.maximum(down, key.age_from_ticks) if n_zones > 1 else key.age_from_ticks
            since[number, int(np.argmin(down))] = key.age_from_ticks

    def rows(values: Any) -> Any:
        return np.repeat(np.asarray(values), n, axis=0)

    spot = np.array([key.mode == SPOT for key in keys])
    zone = np.array([key.zone for key in keys])
    runs = RunStates(
        job.tick_hours * view.deadline_ticks - time_left * tick,
        np.tile(job.work_hours - (time_left - slack) * tick, len(keys)),
        rows([key.mode for key in keys]),
        rows(np.where(spot, zone, -1)),
        rows([key.restart_left_ticks * tick for key in keys]),
        rows(np.where(spot, view.region[np.maximum(zone, 0)], -1)),
        rows(up),
        rows(since) * tick,
        np.array([[zone.usd_per_hour for zone in job.zones]]),
    )
    return np.asarray(policy.decide_runs(runs)[0]).reshape(len(keys), n)


def _run_lengths(slack: Ints, actions: Ints) -> Runs:
    """Slack from which on each action holds; the first one holds for all less as well."""
    at = np.flatnonzero(np.append(True, actions[1:] != actions[:-1]))
    return tuple((int(slack[i]) if i else 0, MODES[actions[i]]) for i in at)


def _order(job: SpotJob, tables: dict[str, HazardTable]) -> tuple[str, ...]:
    """Cheapest useful hour first: price over the share of a mean spell that is left after its restart."""

    def useful_usd(number: int) -> float:
        zone = job.zones[number]
        life = tables[zone.name].mean_up_hours
        return zone.usd_per_hour * life / max(life - job.restart_hours, 0.2 * life)

    return tuple(job.zones[number].name for number in sorted(range(len(job.zones)), key=useful_usd))


def _without_repeats(rows: dict[Key, list[tuple[int, Runs]]]) -> dict[Key, list[tuple[int, Runs]]]:
    """Ages that decide like the age before are left out: a reader takes the last age not above its own."""
    last: dict[tuple[int, int, int], list[tuple[int, Runs]]] = {}
    kept = {}
    for key, found in rows.items():
        family = (key.mode, key.zone, key.restart_left_ticks)
        if last.get(family) != found:
            kept[key] = last[family] = found
    return kept


def table_text(table: DecisionTable, path: Path) -> str:
    """The table as text, JSON or CSV by the file's name.

    Raises:
        InputError: the name ends otherwise.
    """
    writers = {".json": _json, ".csv": _csv}
    if path.suffix.lower() not in writers:
        raise InputError(f"--table {path}: the name must end in {' or '.join(writers)}")
    return writers[path.suffix.lower()](table)


def _zone_name(table: DecisionTable, key: Key) -> str:
    return table.job.zones[key.zone].name if key.zone >= 0 else ""


def _json(table: DecisionTable) -> str:
    job = table.job
    head = {
        "kind": "decision_table", "schema_version": SCHEMA_VERSION, "policy": table.policy,
        "tick_hours": job.tick_hours, "work_hours": job.work_hours, "deadline_hours": job.deadline_hours,
        "meaning": table.meaning, "leaves_out": list(table.leaves_out),
        "restart_hours": job.restart_hours, "on_demand_acquire_hours": job.on_demand_acquire_hours,
        "zones": list(table.zones), "spot_usd_per_hour": {zone.name: zone.usd_per_hour for zone in job.zones},
        "on_demand_usd_per_hour": job.on_demand_usd_per_hour,
    }  # fmt: skip
    entries = [
        json.dumps(
            {"mode": MODES[key.mode], "zone": _zone_name(table, key), "up": key.up,
             "restart_left_ticks": key.restart_left_ticks, "age_from_ticks": key.age_from_ticks, "rows": rows}
        )
        for key, rows in table.rows.items()
    ]  # fmt: skip
    # One entry a line: a table may be long, and differences between two of them should be readable.
    opening = json.dumps(head, indent=1)[:-2]
    return opening + ',\n "entries": [\n' + ",\n".join(entries) + "\n]}\n"


def _csv(table: DecisionTable) -> str:
    from planner.render.csv import csv_text

    job = table.job
    order = {name: number for number, name in enumerate(table.zones, start=1)}
    whole: Mapping[str, str | float | int | None] = {
        "tick_hours": job.tick_hours, "work_hours": job.work_hours, "deadline_hours": job.deadline_hours,
        "leaves_out": " ".join(table.leaves_out),
    }  # fmt: skip
    return csv_text(
        CSV_COLUMNS,
        (
            {
                **whole, "mode": MODES[key.mode], "zone": _zone_name(table, key),
                "zone_order": order.get(_zone_name(table, key)), "up": int(key.up),
                "restart_left_ticks": key.restart_left_ticks, "age_from_ticks": key.age_from_ticks,
                "time_left_from_ticks": time_left, "slack_from_ticks": slack, "action": action,
            }
            for key, rows in table.rows.items()
            for time_left, runs in rows
            for slack, action in runs
        ),
    )  # fmt: skip
