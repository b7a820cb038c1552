"""What each account must allow before a plan can start: a row per quota and region, ready to be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.plan.words import quota_lines
from planner.render.model import Column, Section, Value, table_section

if TYPE_CHECKING:
    from planner.plan.model import Plan, PlanLine


_COLUMNS = (
    Column("name", "quota", "text"), Column("code", "code", "text"), Column("region", "in", "text"),
    Column("needed", "needed", "measure"), Column("limit", "limit", "number"), Column("status", "checked", "text"),
)  # fmt: skip
_IN_TURN = "used one after another: of each quota the most that one of them needs"


def quotas(plan: Plan) -> list[Section]:
    """Return the quotas to ask for: name, code, region, how much is needed in its unit, and whether it was checked.

    Lines that run together draw on a quota together; of lines used in turn the largest counts. Own machines need none.
    """
    groups: dict[tuple[str, ...], list[PlanLine]] = {}
    for line in quota_lines(plan):
        need = line.quota
        if line.purchase_option != "owned":
            key = (line.provider, line.region, need.name, need.code, need.unit)
            groups.setdefault(key, []).append(line)
    if not groups:
        return []
    in_turn = plan.launch is not None and plan.launch.in_turn
    rows = [_row(group, together=not in_turn) for group in groups.values()]
    shown = [
        at for at, column in enumerate(_COLUMNS) if column.key not in ("code", "limit") or _any(rows, at)
    ]
    scopes = (note for group in groups.values() for line in group for note in _scopes(line))
    notes = list(dict.fromkeys(scopes))
    if in_turn and len(plan.lines) > len(rows):
        notes.append(_IN_TURN)
    columns, cells = [_COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows]
    return [table_section("quotas", "Quotas to ask for", columns, cells, notes)]


def _any(rows: list[tuple[Value, ...]], at: int) -> bool:
    return any(row[at] not in ("", None) for row in rows)


def _scopes(line: PlanLine) -> list[str]:
    """Of what the provider counts it, where its rule says so."""
    need = line.quota
    if not need.scope or need.scope == line.provider:
        return []
    return [f"{line.provider} counts it per {need.scope.replace(' x ', ' and ')}"]


def _row(lines: list[PlanLine], *, together: bool) -> tuple[Value, ...]:
    first, needs = lines[0].quota, [line.quota.needed for line in lines]
    needed = sum(needs) if together else max(needs)
    limit, status = first.limit, first.status
    if limit is not None and needed > limit:
        status = "above the limit"
    where = f"{lines[0].provider}/{lines[0].region}" if lines[0].region else lines[0].provider
    unit = first.unit.removesuffix("s") if needed == 1 else first.unit
    code = "" if first.code == first.name else first.code
    return (
        first.name or "not known",
        code,
        where,
        (needed, unit),
        "" if limit is None else limit,
        status,
    )
