"""Usage beside the bill: which paid accelerator hours were allocated and busy, whose they were, and what is unknown.

A charge is matched by the machine's id, else by its name, else by a tag that names the machine, else by the run that a
tag names, else by account (or tag value) and day. Every paid hour ends in one state, so costs add up to the bill's.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, Literal

from planner.finops.usage.model import Allocated, Measured, Usage
from planner.records import record

State = Literal["busy", "idle", "not_busy", "unmeasured", "free", "unknown", "unmatched"]
Level = Literal["id", "name", "tag", "run", "place"]
LEVELS: tuple[Level, ...] = ("id", "name", "tag", "run", "place")
IDLE: tuple[State, ...] = ("idle", "not_busy", "free")
# tag keys whose value names a machine: own judgement; Name is what AWS consoles show
NODE_TAGS = frozenset(
    {
        "name",
        "node",
        "nodename",
        "node_name",
        "node-name",
        "host",
        "hostname",
        "instance",
        "kubernetes.io/hostname",
    }
)
_ORDER = {"machine": 0, "run": 1, "place": 2}  # what names more takes its rows first
NOBODY = "(no team)"
_NO_HOURS = 1e-6  # a price per hour of less says nothing


@record(frozen=True)
class Charge:
    """GPU cost of one machine on one day.

    Attributes:
        ids, names, tags, places: what may name the machine, and whose it is, in lower case.
        run: value of the run tag, in lower case.
        team: value of the first mandatory tag.
    """

    day: date
    resource: str
    ids: frozenset[str]
    names: frozenset[str]
    tags: frozenset[str]
    places: frozenset[str]
    run: str
    team: str
    hours: float
    cost: float


@record(frozen=True)
class Part:
    """Paid hours of one state and one team."""

    team: str
    state: State
    hours: float
    cost: float


@record(frozen=True)
class Matched:
    """The bill's GPU cost divided by what is known of its use.

    Attributes:
        parts: add up to the GPU-hours and the GPU cost of the bill.
        by_level: GPU cost matched by each kind of name.
        allocated_known: whether a scheduler says what was allocated.
        measured_known: whether anything says what was busy.
        stray_hours: accelerator hours of the files that no charge was matched with.
        used_hours: accelerator hours of the files in the month.
        over_hours: hours allocated or watched beyond those that were paid, on matched machines and days.
        ended_badly: allocated hours of work that did not complete.
    """

    parts: tuple[Part, ...]
    by_level: Mapping[Level, float]
    allocated_known: bool
    measured_known: bool
    stray_hours: float
    used_hours: float
    over_hours: float
    ended_badly: float

    def hours(self, *states: State) -> float:
        """GPU-hours in some states; without states all."""
        return math.fsum(one.hours for one in self.parts if not states or one.state in states)

    def cost(self, *states: State) -> float:
        """Cost in some states; without states all."""
        return math.fsum(one.cost for one in self.parts if not states or one.state in states)


def charges_of(
    rows: Iterable[Mapping[str, Any]], run_tag: Sequence[str], team_tag: Sequence[str]
) -> list[Charge]:
    """Rows of the KPI `gpu_resources`; a charge of several days is spread evenly over them.

    Args:
        rows: the rows, see `usage.ahead.spread_ahead`.
        run_tag: spellings of the tag key that names a run; the first with a value counts.
        team_tag: spellings of the first mandatory tag's key.
    """
    out = []
    for row in rows:
        first = date.fromisoformat(str(row["x_day"])[:10])
        tags = _tags(_text(row["tag_text"]))
        resource = _text(row["resource_id"]) or _text(row["resource_name"])
        length = max(1, int(row["days_count"] or 1))
        own = (
            resource, _endings(_text(row["resource_id"])), _shortened(_text(row["resource_name"])),
            frozenset(name for key, value in tags if key.lower() in NODE_TAGS for name in _shortened(value)),
            frozenset({_text(row["sub_account_id"]).lower(), _text(row["sub_account_name"]).lower(),
                       *(value.lower() for _, value in tags)} - {""}),
            _first(tags, run_tag).lower(),
            _first(tags, team_tag) or NOBODY,
        )  # fmt: skip
        for number in range(length):
            when = first + timedelta(number)
            out.append(
                Charge(when, *own, float(row["gpu_hours"]) / length, float(row["effective_cost"]) / length)
            )
    return out


def _first(tags: tuple[tuple[str, str], ...], keys: Sequence[str]) -> str:
    values = dict(tags)
    return next((values[key] for key in keys if values.get(key)), "")


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value).strip()


@lru_cache(maxsize=4096)
def _tags(text: str) -> tuple[tuple[str, str], ...]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return ()
    pairs = found.items() if isinstance(found, dict) else ()
    return tuple((str(key), str(value).strip()) for key, value in pairs if value not in (None, ""))


def _endings(name: str) -> frozenset[str]:
    """An id and its last part: `arn:aws:ec2:...:instance/i-1` is `i-1` too."""
    lower = name.lower()
    return frozenset({lower, lower.rsplit("/", 1)[-1].rsplit(":", 1)[-1]} - {""})


def _shortened(name: str) -> frozenset[str]:
    """A name, and without its domain."""
    lower = name.lower()
    is_address = lower.replace(".", "").isdigit()
    return frozenset({lower, lower if is_address else lower.split(".", 1)[0]} - {""})


def match(charges: Sequence[Charge], usage: Usage, start: date, end: date) -> Matched:
    """Divide the GPU charges of a month by their use.

    Args:
        charges: of the month.
        usage: what the files say, of any days.
        start: first day of the month; use of other days is left out.
        end: first day after it.
    """
    allocated = [one for file in usage.files for one in file.allocated if start <= one.day < end]
    measured = [one for file in usage.files for one in file.measured if start <= one.day < end]
    keys = _Keys(allocated, measured, usage)
    groups: dict[tuple[str, str], list[Charge]] = defaultdict(list)
    parts: list[Part] = []
    by_level: dict[Level, float] = dict.fromkeys(LEVELS, 0.0)
    machines = [keys.find_machine(charge) for charge in charges]
    keys.without_machines(frozenset(found[1] for found in machines if found is not None))
    for charge, machine in zip(charges, machines, strict=True):
        found = machine or keys.find_work(charge)
        if found is None:
            parts.append(Part(charge.team, "unmatched", charge.hours, charge.cost))
            continue
        level, key = found
        by_level[level] += charge.cost
        groups["machine" if level in ("id", "name", "tag") else level, key].append(charge)
    ledger = _Ledger(keys, usage, parts)
    for (kind, key), own in sorted(groups.items(), key=lambda item: (_ORDER[item[0][0]], item[0][1])):
        ledger.divide(kind, key, own)
    used = math.fsum(one.hours for one in allocated) or math.fsum(one.hours for one in measured)
    return Matched(
        tuple(_summed(parts)), by_level, bool(allocated), bool(measured), ledger.stray(allocated, measured), used,
        ledger.over, ledger.ended_badly,
    )  # fmt: skip


def _summed(parts: Iterable[Part]) -> Iterator[Part]:
    sums: dict[tuple[str, State], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for one in parts:
        hours, cost = sums[one.team, one.state]
        hours.append(one.hours)
        cost.append(one.cost)
    for (team, state), (hours, cost) in sorted(sums.items()):
        yield Part(team, state, math.fsum(hours), math.fsum(cost))


_Rows = tuple[list[Allocated], list[Measured]]


class _Keys:
    """Where a charge may be looked up in the usage."""

    def __init__(self, allocated: Sequence[Allocated], measured: Sequence[Measured], usage: Usage) -> None:
        self.rows: list[Allocated | Measured] = [*allocated, *measured]
        self.by_machine: dict[tuple[str, date], _Rows] = defaultdict(lambda: ([], []))
        self.by_run: dict[tuple[str, date], _Rows] = defaultdict(lambda: ([], []))
        self.by_place: dict[tuple[str, date], _Rows] = defaultdict(lambda: ([], []))
        self.runs: set[str] = set()
        aliases = {name.lower(): others for name, others in usage.aliases.items()}
        self.same: dict[
            str, str
        ] = {}  # what files call a machine -> one of its names: Kubecost's id, DCGM's host
        for machine in sorted(aliases):
            for other in (machine, *(other.lower() for other in aliases[machine])):
                for name in (*_endings(other), *_shortened(other)):
                    self.same.setdefault(name, machine)
        for one in self.rows:
            if one.machine:
                _put(self.by_machine[self.machine_of(one), one.day], one)
        self.machines: dict[str, str] = {}
        for machine in sorted({machine for machine, _ in self.by_machine} | aliases.keys()):
            for other in (machine, *(other.lower() for other in aliases.get(machine, ()))):
                for name in (*_endings(other), *_shortened(other)):
                    self.machines.setdefault(name, self.same.get(machine, machine))

    def machine_of(self, one: Allocated | Measured) -> str:
        """The machine of a row, by one name where files call it by several."""
        name = one.machine.lower()
        names = (name, *sorted(_endings(name) | _shortened(name)))
        return next((self.same[other] for other in names if other in self.same), name)

    def find_machine(self, charge: Charge) -> tuple[Level, str] | None:
        """The machine of a charge, by its id, its name or a tag."""
        levels: tuple[tuple[Level, frozenset[str]], ...] = (
            ("id", charge.ids), ("name", charge.names), ("tag", charge.tags)
        )  # fmt: skip
        for level, names in levels:
            if hits := sorted(self.machines[name] for name in names if name in self.machines):
                return level, hits[0]
        return None

    def without_machines(self, known: frozenset[str]) -> None:
        """Look up runs and places among the rows of machines that no charge names."""
        for one in self.rows:
            if self.machine_of(one) in known:
                continue
            for place in dict.fromkeys(place.lower() for place in one.places):
                _put(self.by_place[place, one.day], one)
            for run in dict.fromkeys(run.lower() for run in one.runs) if isinstance(one, Allocated) else ():
                _put(self.by_run[run, one.day], one)
                self.runs.add(run)

    def find_work(self, charge: Charge) -> tuple[Level, str] | None:
        """The run of a charge, else its account or tag value on its day."""
        if charge.run and charge.run in self.runs:
            return "run", charge.run
        if hits := sorted(place for place in charge.places if (place, charge.day) in self.by_place):
            return "place", hits[0]
        return None


def _put(rows: _Rows, one: Allocated | Measured) -> None:
    if isinstance(one, Allocated):
        rows[0].append(one)
    else:
        rows[1].append(one)


class _Ledger:
    """Divides the charges of one machine, run or place, day by day; a row of usage is taken once."""

    def __init__(self, keys: _Keys, usage: Usage, parts: list[Part]) -> None:
        self.keys, self.parts = keys, parts
        self.windows = frozenset(day for file in usage.files for day in file.days)
        self.taken: set[int] = set()
        self.over = self.ended_badly = 0.0

    def divide(self, level: str, key: str, charges: Sequence[Charge]) -> None:
        days: dict[date, list[Charge]] = defaultdict(list)
        for one in charges:
            days[one.day].append(one)
        source = {"machine": self.keys.by_machine, "run": self.keys.by_run, "place": self.keys.by_place}[
            level
        ]
        for day, own in sorted(days.items()):
            allocated, measured = source.get((key, day), ((), ()))
            rows = [one for one in allocated if id(one) not in self.taken]
            seen = [one for one in measured if id(one) not in self.taken]
            self.taken |= {id(one) for one in (*rows, *seen)}
            watches = day in self.windows and level == "machine"
            self._day(own, rows, seen, is_free_known=watches or (bool(rows) and level == "place"))

    def _day(
        self,
        charges: Sequence[Charge],
        rows: Sequence[Allocated],
        seen: Sequence[Measured],
        *,
        is_free_known: bool,
    ) -> None:
        paid, cost = math.fsum(one.hours for one in charges), math.fsum(one.cost for one in charges)
        if paid < _NO_HOURS:
            self._rest(charges, "unknown", 0.0, cost)
            return
        price = cost / paid
        watched, busy = math.fsum(one.hours for one in seen), math.fsum(one.busy for one in seen)
        given = math.fsum(one.hours for one in rows)
        self.over += max(0.0, max(given, watched) - paid)
        self.ended_badly += math.fsum(one.ended_badly for one in rows) * min(
            1.0, paid / given if given else 1.0
        )
        if watched > paid:
            watched, busy = paid, busy * paid / watched
        if rows or is_free_known:
            used = self._allocated(rows, seen, price, paid, watched, busy)
            self._rest(charges, "free" if is_free_known else "unknown", paid - used, cost - used * price)
        elif seen:
            team = {one.team for one in seen}
            named = seen if team != {""} else ()
            if named:
                used = self._watched(seen, price, paid)
            else:
                self._rest(charges, "busy", busy, busy * price)
                self._rest(charges, "not_busy", watched - busy, (watched - busy) * price)
                used = watched
            self._rest(charges, "unknown", paid - used, cost - used * price)
        else:
            self._rest(charges, "unknown", paid, cost)

    def _allocated(
        self,
        rows: Sequence[Allocated],
        seen: Sequence[Measured],
        price: float,
        paid: float,
        watched: float,
        busy: float,
    ) -> float:
        """Allocated hours: busy in proportion, where they were watched."""
        given = math.fsum(one.hours for one in rows)
        scale = min(1.0, paid / given) if given else 1.0
        given *= scale
        duty = min(1.0, busy / given) if seen and given else None
        known = min(1.0, watched / given) if given else 0.0
        by_team: dict[str, float] = defaultdict(float)
        for one in rows:
            by_team[one.team or NOBODY] += one.hours * scale
        for team, hours in by_team.items():
            if duty is None:
                self.parts.append(Part(team, "unmeasured", hours, hours * price))
                continue
            at_work, idle = hours * duty, hours * max(0.0, known - duty)
            self.parts.append(Part(team, "busy", at_work, at_work * price))
            self.parts.append(Part(team, "idle", idle, idle * price))
            rest = hours - at_work - idle
            self.parts.append(Part(team, "unmeasured", rest, rest * price))
        return given

    def _watched(self, seen: Sequence[Measured], price: float, paid: float) -> float:
        """Hours watched with the workload's name: they were allocated while it is named, free while it is not."""
        total = math.fsum(one.hours for one in seen)
        scale = min(1.0, paid / total) if total else 1.0
        for one in seen:
            busy, idle = one.busy * scale, (one.hours - one.busy) * scale
            self.parts.append(Part(one.team or NOBODY, "busy", busy, busy * price))
            self.parts.append(Part(one.team or NOBODY, "idle" if one.team else "free", idle, idle * price))
        return total * scale

    def _rest(self, charges: Sequence[Charge], state: State, hours: float, cost: float) -> None:
        """Hours of nobody's work go to the teams whose machines they were, by cost."""
        whole = math.fsum(one.cost for one in charges)
        for one in charges:
            share = one.cost / whole if whole else 1.0 / len(charges)
            self.parts.append(Part(one.team, state, hours * share, cost * share))

    def stray(self, allocated: Sequence[Allocated], measured: Sequence[Measured]) -> float:
        """Hours of the files that belong to no charge."""
        rows: Sequence[Allocated | Measured] = allocated or measured
        return math.fsum(one.hours for one in rows if id(one) not in self.taken)
