"""The tables of single rows: what is left out and why, the worst rows, and every row with its dates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.study.arms import HEADLINES
from benchmarks.study.savings import AGAINST, pairs_of, percent, plan_usd, running_error

Record = dict[str, Any]
SHORT = {"home": "home", "anywhere": "on demand", "commitments": "commitments", "spot": "spot"}


def left_out_lines(records: Sequence[Record]) -> list[str]:
    """Rows that are not in the headline, by reason."""
    lines = ["## Excluded rows", "", "| arm | reason | rows |", "|---|---|---|"]
    for arm, words in HEADLINES.items():
        for why, names in sorted(pairs_of(records, arm, "named")[1].items()):
            lines.append(f"| {words} | {_cell(why)} | {len(names)}: {', '.join(sorted(names))} |")
    lines += [
        "",
        "Against the other baselines, in addition to stand-ins:",
        "",
        "| against | reason | rows |",
        "|---|---|---|",
    ]
    for against, words in AGAINST.items():
        arm = "spot" if against == "sky_spot" else "anywhere"
        for why, names in sorted(pairs_of(records, arm, against)[1].items()):
            if against != "named" and not why.startswith("stand-in"):
                lines.append(f"| {words} | {_cell(why)} | {len(names)}: {', '.join(sorted(names))} |")
    lines += ["", "What the workload files cannot express, by row:", ""]
    lines += [
        f"- {record['id']} ({record['published']['expressible']}): {_cell(record['published']['cannot_express'])}"
        for record in records
        if record["published"]["expressible"] != "yes" and record["published"]["cannot_express"]
    ]
    return [*lines, ""]


def worst_lines(records: Sequence[Record]) -> list[str]:
    """The five rows of each arm that save least."""
    lines = [
        "## Worst rows",
        "",
        "| arm | row | saved | plan | baseline | remark |",
        "|---|---|---:|---:|---:|---|",
    ]
    by_id = {record["id"]: record for record in records}
    for arm, words in HEADLINES.items():
        for pair in sorted(pairs_of(records, arm, "named")[0], key=lambda pair: pair.saving)[:5]:
            named = by_id[pair.name]["baseline"]
            chance = named["p_meet_deadline"]
            told = [named["note"]] if named["note"] else []
            told += [f"baseline in time with {chance:.0%}"] if chance is not None and chance < 0.9 else []
            lines.append(
                f"| {words} | {pair.name} | {percent(pair.saving)} | ${pair.plan:,.0f} | ${pair.baseline:,.0f} |"
                f" {_cell('; '.join(told))} |"
            )
    return [*lines, ""]


def row_lines(records: Sequence[Record]) -> list[str]:
    """Every row: its baseline, what each arm saves, the plan with spot, dates of prices, and time."""
    lines = [
        "## Every row", "",
        "Costs are in US dollars. `pred/pub` is predicted over published hours of the baseline (of the steps, if the"
        " source computes them from a speed). The dates are those of the list price behind the published bill, of the"
        " baseline's price, and of the prices of the plan with spot.", "",
        "| row | class | baseline | its cost | published bill | pred/pub | "
        + " | ".join(SHORT.values()) + " | plan with spot | price dates |",
        "|---|---|---|---:|---:|---:|" + "---:|" * len(SHORT) + "---|---|",
    ]  # fmt: skip
    return [*lines, *(_row_line(record) for record in records), ""]


def _row_line(record: Record) -> str:
    published, named = record["published"], record.get("baseline")
    if named is None or record["status"] in ("refused", "failed"):
        why = record.get("reason") or record.get("baseline_fault") or "no baseline"
        return f"| {record['id']} | {published['kind']} | {record['status']}: {_cell(why)} |" + " |" * 9
    told = f"{named['nodes']} x {named['instance_type']} {named['provider']}"
    told += "" if named["status"] == "ok" else f" ({named['status']})"
    error = running_error(record)
    bill = f"{published['usd']:,.0f}" if published["usd"] else "-"
    saved = [_saved(record, arm) for arm in SHORT]
    return (
        f"| {record['id']} | {published['kind']} | {_cell(told)} | {_usd(named['cost_usd'])} | {bill} |"
        f" {'-' if error is None else f'{1 / error:.2f}'} | {' | '.join(saved)} | {_cell(_plan(record))} |"
        f" {_dates(record)} |"
    )


def _saved(record: Record, arm: str) -> str:
    cost, named = plan_usd(record, arm, "named"), record["baseline"]
    if cost is None:
        return str(record["arms"][arm]["status"])
    return percent(1.0 - cost / named["cost_usd"]) if named["cost_usd"] else "-"


def _plan(record: Record) -> str:
    plan = record["arms"]["spot"]
    if plan["status"] != "planned":
        return str(plan["status"])
    parts = [
        f"{line['nodes']} x {line['instance_type']} {line['purchase_option']} {line['provider']}/{line['region']}"
        for line in plan["lines"][:2]
    ]
    more = f" and {len(plan['lines']) - 2} more" if len(plan["lines"]) > 2 else ""
    return f"{'; '.join(parts)}{more}; {_usd(plan['cost_usd'])} (P90 {_usd(plan['cost_p90_usd'])})"


def _dates(record: Record) -> str:
    named, plan = record["baseline"], record["arms"]["spot"]
    dates = {line["price_as_of"] for line in plan.get("lines", [])}
    parts = [record["published"]["price_as_of"], named["price_as_of"], ", ".join(sorted(dates))]
    return " / ".join(part or "-" for part in parts)


def _usd(value: float | None) -> str:
    if value is None:
        return "-"
    return f"${value:,.0f}" if value >= 100 else f"${value:,.2f}"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")
