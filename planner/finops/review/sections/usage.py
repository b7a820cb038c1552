"""Were the accelerators that are paid for at work, and whose are those that were not?"""

from __future__ import annotations

from planner.finops.read.tag_keys import dearest_spellings
from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Chart, Figure, Section, Table
from planner.finops.review.parts import figure, flagged, money, nothing, percent, ratio, table, withheld
from planner.finops.usage.ahead import spread_ahead
from planner.finops.usage.match import IDLE, Matched, charges_of, match
from planner.finops.usage.model import Usage

TITLE = "Were paid GPUs at work?"
TOP = 20
_LEVELS = {
    "id": "machine id", "name": "machine name", "tag": "a tag that names the machine", "run": "the run's tag",
    "place": "account or tag, and day",
}  # fmt: skip
_ROUNDED = 1.001  # times: hours of two files differ by their rounding
_CENT = 0.005
_UNMEASURED = "no file says how busy GPUs were (DCGM does)"
_FLAG_BELOW = 0.95  # of GPU cost matched; own judgement


def build(inputs: Inputs) -> Section | None:
    """Idle cost by team, and the waterfall from paid to goodput, with what is unknown; None without usage files."""
    usage = inputs.beside.usage
    if usage is None:
        return None
    status, reason = inputs.gate.status("usage_idle_money")
    if status == "withheld":
        return withheld("usage", TITLE, reason)
    ahead = [share for share in inputs.ahead() if share.month == f"{inputs.month:%Y-%m}"]
    rows = spread_ahead(inputs.ask("gpu_resources").to_dict("records"), ahead)
    charges = charges_of(rows, inputs.spelled(inputs.run_tag), inputs.spelled(inputs.tags[0]))
    if not charges:
        return nothing(
            "usage",
            TITLE,
            "No charge of the month says that its machine has GPUs (SkuPriceDetails GpuCount).",
        )
    matched = match(charges, usage, inputs.month, inputs.end)
    useful, unknown = _useful(inputs, matched)
    tables = (_teams(matched, exact_tags=inputs.exact_tags), _matched(matched))
    return Section(
        "usage", TITLE, _sentences(inputs, matched, unknown, usage), tuple(_figures(inputs, matched, useful, unknown)),
        tables, (_waterfall(matched, useful),), status, reason,
    )  # fmt: skip


def _useful(inputs: Inputs, matched: Matched) -> tuple[float | None, str]:
    """GPU-hours whose work was kept, or why they are not known.

    They are a part of the busy hours, so where these are known of some machines alone they say nothing of the rest.
    """
    told = inputs.utilisation.between(inputs.month, inputs.end) if inputs.utilisation else None
    if told is None:
        return None, "no file says what work was kept (--utilisation does)"
    if not matched.measured_known:
        return None, _UNMEASURED
    busy = matched.hours("busy")
    if told.goodput > busy * _ROUNDED:
        return (
            None,
            f"the utilisation file has {told.goodput:,.0f} useful GPU-hours, monitors saw {busy:,.0f} busy ones",
        )
    return min(told.goodput, busy), ""


def _share_matched(matched: Matched) -> float:
    return 1 - ratio(matched.cost("unmatched"), matched.cost())


def _figures(inputs: Inputs, matched: Matched, useful: float | None, unknown: str) -> list[Figure]:
    paid = matched.hours()
    known = matched.hours("busy", *IDLE)
    share = _share_matched(matched)
    figures = [
        figure(inputs, "usage_matched_ratio", "GPU cost matched with usage", share, "ratio"),
        figure(inputs, "usage_idle_money", "Cost of idle GPUs", matched.cost(*IDLE), "money"),
        figure(
            inputs,
            "usage_free_money",
            "Cost of GPUs never allocated",
            matched.cost("free") if matched.allocated_known else None,
            "money",
            lacking="no file says what was allocated (Slurm, Kubernetes)",
        ),
        figure(
            inputs,
            "usage_unknown_money",
            "Cost of GPUs whose use is unknown",
            matched.cost("unmeasured", "unknown", "unmatched"),
            "money",
        ),
        figure(
            inputs,
            "usage_busy_ratio",
            "Busy share of GPU-hours whose use is known",
            ratio(matched.hours("busy"), known) if matched.measured_known else None,
            "ratio",
            lacking=_UNMEASURED,
        ),
        figure(
            inputs,
            "usage_goodput_ratio",
            "Useful share of paid GPU-hours",
            None if useful is None else ratio(useful, paid),
            "ratio",
            lacking=unknown,
        ),
        figure(
            inputs,
            "usage_ended_badly_hours",
            "GPU-hours of work that did not complete",
            matched.ended_badly if matched.allocated_known else None,
            "hours",
            lacking="no scheduler's file is given",
        ),
        figure(
            inputs,
            "usage_stray_hours",
            "GPU-hours of the files without a charge",
            matched.stray_hours,
            "hours",
        ),
    ]
    if share >= _FLAG_BELOW:
        return figures
    said = f"{percent(share)} of GPU cost is matched with usage"
    return [figures[0], *(flagged(one, said) for one in figures[1:6]), *figures[6:]]


def _teams(matched: Matched, *, exact_tags: bool) -> Table:
    costs: dict[str, float] = {}
    for one in matched.parts:
        costs[one.team] = costs.get(one.team, 0.0) + one.cost
    names = {team: team for team in costs} if exact_tags else dearest_spellings(costs)
    rows = []
    for team in sorted({*names.values()}):
        own = [one for one in matched.parts if names[one.team] == team]
        hours = {state: sum(one.hours for one in own if one.state == state) for state in ("busy", *IDLE)}
        idle = sum(one.cost for one in own if one.state in IDLE)
        unknown = sum(one.cost for one in own if one.state in ("unmeasured", "unknown", "unmatched"))
        cost = sum(one.cost for one in own)
        free = sum(one.cost for one in own if one.state == "free")
        is_whole = unknown <= _CENT
        share = ratio(idle, cost) if is_whole or cost - unknown > _CENT else None
        rows.append((team, cost, idle, share, free, unknown, hours["busy"] or (0.0 if is_whole else None)))
    rows.sort(key=lambda row: (-row[2], -row[1], row[0]))
    return table(
        "usage_teams", "Idle GPUs by team", [("team", "Team", "text"), ("cost", "GPU cost", "money"),
        ("idle", "Idle", "money"), ("idle_share", "Idle share", "ratio"), ("free", "Never allocated", "money"),
        ("unknown", "Use unknown", "money"), ("busy_hours", "Busy GPU-hours", "hours")], rows[:TOP],
        "Allocated hours belong to the scheduler's account or namespace, the others to the team of the bill's tag. "
        "Idle shares and busy GPU-hours are at least these where some use is unknown."
        + (f" {len(rows) - TOP:,} more teams are not listed." if len(rows) > TOP else ""),
    )  # fmt: skip


def _matched(matched: Matched) -> Table:
    whole = matched.cost()
    rows = [(words, matched.by_level[level], ratio(matched.by_level[level], whole))  # type: ignore[index]
            for level, words in _LEVELS.items() if matched.by_level[level]]  # type: ignore[index]  # fmt: skip
    rows.append(("not matched", matched.cost("unmatched"), ratio(matched.cost("unmatched"), whole)))
    return table("usage_matched", "How charges were matched",
                 [("by", "By", "text"), ("cost", "GPU cost", "money"), ("share", "Share", "ratio")], rows)  # fmt: skip


def _levels(matched: Matched, useful: float | None) -> list[tuple[str, float]]:
    levels = [("paid", matched.hours())]
    if matched.allocated_known:
        levels.append(("allocated", matched.hours("busy", "idle", "unmeasured")))
    if matched.measured_known:
        levels.append(("busy", matched.hours("busy")))
    if useful is not None:
        levels.append(("goodput", useful))
    return levels


def _waterfall(matched: Matched, useful: float | None) -> Chart:
    levels = _levels(matched, useful)
    hidden = matched.hours("unmeasured", "unknown", "unmatched") > 0
    least = "at least " if hidden else ""  # what no file covers may have been allocated and busy
    said = ", ".join(f"{least if at else ''}{hours:,.0f} {name}" for at, (name, hours) in enumerate(levels))
    return Chart("usage_waterfall", "GPU-hours: paid, allocated, busy, goodput", "funnel",
                 tuple(name for name, _ in levels),
                 (("hours", tuple(hours for _, hours in levels)),), "hours", f"GPU-hours: {said}.")  # fmt: skip


def _sentences(inputs: Inputs, matched: Matched, unknown: str, usage: Usage) -> tuple[str, ...]:
    currency, whole = inputs.bill.currency, matched.cost()
    idle, unmatched = matched.cost(*IDLE), matched.cost("unmatched")
    said = [f"GPUs for {money(idle, currency)} were idle, {percent(ratio(idle, whole))} of what GPUs cost."]
    if unmatched > _CENT:
        said.append(
            f"{percent(ratio(unmatched, whole))} of GPU cost ({money(unmatched, currency)}) matches no usage."
        )
    open_ends = matched.cost("unmeasured", "unknown")
    if open_ends > _CENT:
        said.append(
            f"For {money(open_ends, currency)} of GPU cost, use is not known: no sample or no scheduler covers it."
        )
    if matched.stray_hours > 0.5:
        share = percent(ratio(matched.stray_hours, matched.used_hours))
        said.append(
            f"{matched.stray_hours:,.0f} GPU-hours of the usage files ({share}) have no charge in the bill."
        )
    if matched.over_hours > 0.5:
        said.append(
            f"{matched.over_hours:,.0f} GPU-hours are used beyond those paid on their machine and day, and left out."
        )
    if unknown:
        said.append(f"Goodput, the part of busy time whose work was kept, is not known: {unknown}.")
    return (*said, *usage.remarks)
