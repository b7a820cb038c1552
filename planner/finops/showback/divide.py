"""A month's cost divided between teams, to the cent: rules first, then unused commitments, then shared teams."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.finops.read.tag_keys import dearest_spellings
from planner.finops.showback.idle import idle_rules
from planner.finops.showback.rules import rule_names, team_of
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.showback_schema import ShowbackFile, Split

DIRECT, ALLOCATED, UNUSED = "own", "split by the provider", "unused commitments"
_TAX = "tax"  # own cost in the answer, and no cost to divide by: it names no team, or is the same part of every charge


@record(frozen=True)
class Line:
    """Cost of one team.

    Attributes:
        kind: `own`, `split by the provider` (FOCUS 1.3), `unused commitments`, or `shared: TEAM`.
        cents: hundredths of the currency; all lines add up to the month.
    """

    team: str
    kind: str
    provider: str
    service: str
    cents: int


@record(frozen=True)
class Divided:
    """A month divided.

    Attributes:
        lines: by team, kind, provider and service.
        remarks: rules that fit nothing, splits that could not be made as asked.
    """

    lines: tuple[Line, ...]
    remarks: tuple[str, ...]

    def of(self, team: str | None = None, kind: str = "") -> int:
        """Cents of a team (None: of all) and of a kind (empty: of all)."""
        return sum(one.cents for one in self.lines if team in (None, one.team) and kind in ("", one.kind))

    @property
    def teams(self) -> tuple[str, ...]:
        """Teams, the dearest first."""
        return tuple(sorted({one.team for one in self.lines}, key=lambda team: (-self.of(team), team)))


# Clusters that a split names (none: all) -> team -> GPU-hours there
GpuHours = Mapping[tuple[str, ...], Mapping[str, float]]
_Sums = dict[tuple[str, str, str, str], float]  # team, kind, provider, service -> money


def divide(
    rows: Iterable[Mapping[str, Any]],
    file: ShowbackFile,
    gpu_hours: GpuHours | None = None,
    *,
    called: Iterable[str] = (),
    exact_tags: bool = False,
) -> Divided:
    """Divide the charges of a month.

    Teams that differ in spelling only are one, named as the rules name it, else by the spelling that costs most.

    Args:
        rows: of the KPI `showback_lines`, of one month.
        file: the rules.
        gpu_hours: measured use by team, for splits by usage; of each of their `clusters`, and of all under ().
        called: names of teams in another month, which count before this month's spellings.
        exact_tags: keep spellings apart.
    """
    read = [(_charge(row), row) for row in rows]
    remarks = idle_rules([charge for charge, _ in read], file)
    charges = [(team_of(charge, file), row) for charge, row in read]
    if not exact_tags:
        names = _names(charges, file, gpu_hours, called)
        charges = [(names[team], row) for team, row in charges]
        gpu_hours = {of: _summed(hours, names) for of, hours in (gpu_hours or {}).items()}
    sums: _Sums = defaultdict(float)
    unused: dict[str, _Sums] = defaultdict(lambda: defaultdict(float))
    used: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for team, row in charges:
        cost = _number(row[f"{file.cost}_cost"])
        commitment, status = _text(row["commitment_id"]), _text(row["commitment_status"])
        if status == "Used":
            used[commitment][team] += max(cost, 0.0)
        kind = ALLOCATED if int(row["is_allocated"]) else _TAX if _text(row["charge"]) == "Tax" else DIRECT
        place = (_text(row["provider"]), _text(row["service"]))
        if status == "Unused" and file.unused_commitments != "keep" and kind == DIRECT:
            unused[commitment][team, UNUSED, *place] += cost
        else:
            sums[team, kind, *place] += cost
    _divide_unused(sums, unused, used, file, remarks)
    remarks += _same_clusters(file)
    for split in file.split:
        _share(sums, split, (gpu_hours or {}).get(split.clusters, {}), remarks, file.unassigned)
    for key in [key for key in sums if key[1] == _TAX]:
        sums[key[0], DIRECT, key[2], key[3]] += sums.pop(key)
    return Divided(tuple(_in_cents(sums)), tuple(remarks))


def _charge(row: Mapping[str, Any]) -> dict[str, str]:
    charge = {name: _text(row[name]) for name in ("provider", "service", "category", "region", "charge")}
    return charge | {"account": _text(row["sub_account_id"]), "account_name": _text(row["sub_account_name"]),
                     "billing_account": _text(row["billing_account_id"]), "tags": _text(row["tag_text"])}  # fmt: skip


def _same_clusters(file: ShowbackFile) -> list[str]:
    """That several teams are split by the same hours, where each may be a cluster of its own."""
    found = [split.team for split in file.split if split.by == "usage" and not split.clusters]
    if len(found) < 2:
        return []
    return [
        f"{', '.join(found)}: each is split by the GPU-hours of all clusters; 'clusters' in its split names its own."
    ]


def _names(
    charges: Sequence[tuple[str, Mapping[str, Any]]],
    file: ShowbackFile,
    gpu_hours: GpuHours | None,
    called: Iterable[str],
) -> dict[str, str]:
    """What each team is called: names of the rules stay, others that differ in spelling only are one."""
    costs: dict[str, float] = {team: -math.inf for hours in (gpu_hours or {}).values() for team in hours}
    for team, row in charges:
        costs[team] = max(costs.get(team, 0.0), 0.0) + max(_number(row[f"{file.cost}_cost"]), 0.0)
    costs |= dict.fromkeys(called, sys.float_info.max)
    fixed = set(rule_names(file))
    names = dearest_spellings(costs | dict.fromkeys(fixed, math.inf))
    return names | {team: team for team in fixed}


def _summed(hours: Mapping[str, float], names: Mapping[str, str]) -> dict[str, float]:
    out: dict[str, float] = defaultdict(float)
    for team, amount in hours.items():
        out[names[team]] += amount
    return dict(out)


def _divide_unused(
    sums: _Sums,
    unused: Mapping[str, _Sums],
    used: Mapping[str, Mapping[str, float]],
    file: ShowbackFile,
    remarks: list[str],
) -> None:
    by_cost = _own_cost(sums, skip={split.team for split in file.split})
    for commitment, parts in unused.items():
        weights = used.get(commitment, {}) if file.unused_commitments == "use" else by_cost
        if file.unused_commitments == "use" and not any(weights.values()):
            remarks.append(
                f"No team used the commitment {commitment or '(unnamed)'}: its unused part is divided by cost."
            )
            weights = by_cost
        _move(sums, parts, weights, UNUSED)


def _share(
    sums: _Sums, split: Split, gpu_hours: Mapping[str, float], remarks: list[str], unassigned: str
) -> None:
    """Move a team's cost to the others."""
    parts = {key: cost for key, cost in sums.items() if key[0] == split.team}
    if not parts:
        if split.team != unassigned:  # of which none is as it should be
            remarks.append(
                f"{split.team} has no cost to split in this month; does a rule or a tag name it so?"
            )
        return
    others = _own_cost(sums, skip={split.team})
    weights: Mapping[str, float] = others
    if split.by == "equal":
        weights = dict.fromkeys(others, 1.0)
    elif split.by == "weights":
        weights = {team: float(weight) for team, weight in split.weights.items()}
    elif split.by == "usage":
        weights = {team: hours for team, hours in gpu_hours.items() if team != split.team}
    if not any(weight > 0 for weight in weights.values()):
        where = f" on {', '.join(split.clusters)}" if split.clusters else ""
        what = f"GPU-hours{where}" if split.by == "usage" else "cost"
        remarks.append(f"{split.team} is not split: no other team has {what}.")
        return
    for key in parts:
        del sums[key]
    _move(sums, parts, weights, f"shared: {split.team}")


def _own_cost(sums: _Sums, skip: set[str]) -> dict[str, float]:
    out: dict[str, float] = defaultdict(float)
    for (team, kind, *_), cost in sums.items():
        if team not in skip and kind != _TAX:
            out[team] += cost
    return {team: max(cost, 0.0) for team, cost in out.items()}


def _move(
    sums: _Sums, parts: Mapping[tuple[str, str, str, str], float], weights: Mapping[str, float], kind: str
) -> None:
    whole = math.fsum(weight for weight in weights.values() if weight > 0)
    for (team, _, provider, service), cost in parts.items():
        if not whole:
            sums[team, kind, provider, service] += cost
            continue
        for other, weight in weights.items():
            if weight > 0:
                sums[other, kind, provider, service] += cost * (weight / whole)


def _in_cents(sums: _Sums) -> list[Line]:
    """Whole cents that add up to the rounded sum: what rounding leaves over goes to the largest remainders."""
    exact = {key: 100 * cost for key, cost in sums.items()}
    total = round(math.fsum(exact.values()))
    floors = {key: math.floor(cents) for key, cents in exact.items()}
    order = sorted(exact, key=lambda key: (-(exact[key] - floors[key]), key))
    left = total - sum(floors.values())
    up = set(order[:left]) if 0 <= left <= len(order) else set()
    return [Line(*key, floors[key] + (key in up)) for key in sorted(sums) if floors[key] + (key in up)]


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value)


def _number(value: Any) -> float:
    return 0.0 if value is None or value != value else float(value)


def cents_of(rows: Sequence[Mapping[str, Any]], cost: str) -> int:
    """The month's cost in cents, as the bill has it."""
    return round(100 * math.fsum(_number(row[f"{cost}_cost"]) for row in rows))
