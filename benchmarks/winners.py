"""Would an expert sign the winners? `python -m benchmarks.winners [--as-of 2026-11-22] FILE...` plans each workload.

A winner breaks a rule where a line rests on a derived price or one of no market (a feed's cap), on a price that is
neither agreed nor stated with its interval, on a retired size, on software that the file does not ask for, or on more
accelerators than asking brings (unless the file says what it can have); and where its deadline is met for certain
although machines are not owned. Exit code 1 where one does, or a file is not planned.

`--set KEY=VALUE` puts values over every file's, `--each` prints a row for each winner (the tables of docs/prices.md),
`--out FILE` keeps them, and `--was FILE` names winners that changed since, and by how much costs did.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import planner
from catalogs.offers.retirement import retirement_of
from catalogs.tables.accelerators import load_accelerators
from planner.errors import PlannerError
from planner.inputs.load import load_workload
from planner.market.obtainable import load_obtainable
from planner.performance.constants import load_software

_NO_PRICE = ("derived", "no_market")
_AGREED = ("firm", "declared")
_SPREAD = ("observed", "listed", "unplaced")
_OLD_DAYS = 90
COLUMNS = ("workload", "winner", "places", "usd", "expected_over_quote", "p_meet")


def breaches(plan: Any, path: Path, day: str = "2026-11-22") -> Iterator[str]:
    """Yield the rules that a plan of `day` (ISO date) breaks."""
    for line in plan.lines:
        yield from _of_price(line)
        if line.purchase_option == "owned":
            continue
        if "retired" in line.flags or retirement_of(line.provider, line.instance_type, day):
            yield f"{line.offer_id}: retired"
    limits = load_workload(path).workload.constraints
    yield from _of_software(plan, limits.software or ("cuda",))
    if not limits.obtainable:
        yield from _of_size(plan)
    if p_meet(plan) == 1 and any(x.purchase_option != "owned" for x in plan.lines):
        yield "the deadline is met for certain"


def _of_price(line: Any) -> Iterator[str]:
    """A price that is neither agreed nor stated with its interval."""
    if line.price_kind in _NO_PRICE:
        yield f"{line.offer_id}: price is {line.price_kind}"
    elif line.price_kind in _SPREAD:
        low, high = line.price_p10_per_hour, line.price_p90_per_hour
        known = low is not None and high is not None and line.price_per_hour is not None
        if not known or not 0 < low < high or not low <= line.price_per_hour <= high:
            yield f"{line.offer_id}: price {line.price_per_hour} is {line.price_kind} without its interval"
    elif line.price_kind not in _AGREED:
        yield f"{line.offer_id}: price is of an unknown kind, {line.price_kind}"


def _of_software(plan: Any, wanted: Sequence[str]) -> Iterator[str]:
    known = load_accelerators()
    vendors = dict(zip(known["accelerator"], known["vendor"], strict=True))
    for line in plan.lines:
        needed = load_software().get(vendors.get(line.accelerator, ""))
        if line.purchase_option != "owned" and "any" not in wanted and needed not in wanted:
            yield f"{line.offer_id}: needs other software than {', '.join(wanted)}"


def _of_size(plan: Any) -> Iterator[str]:
    for line in plan.lines:
        most = next(
            (
                one.most_accelerators
                for one in load_obtainable()
                if one.purchase_option == line.purchase_option
                and fnmatchcase(line.accelerator, one.accelerator)
            ),
            float("inf"),
        )
        if line.purchase_option != "owned" and _accelerators(line) > most:
            yield f"{line.offer_id}: {_accelerators(line)} accelerators, asking brings {most:g}"


def _accelerators(line: Any) -> int:
    return int(line.nodes * line.accelerators_per_node)


def p_meet(plan: Any) -> float | None:
    """Chance to meet the deadline; None without one."""
    part = plan.risk if plan.launch is None else plan.launch
    return None if part is None or part.p_meet_deadline is None else float(part.p_meet_deadline)


def row_of(path: Path, plan: Any) -> dict[str, str]:
    """What a winner is, where it is bought and what it costs, by `COLUMNS`."""
    machines = Counter(f"{line.nodes} {line.instance_type} {line.purchase_option}" for line in plan.lines)
    in_turn = plan.launch is not None and not plan.side_by_side
    texts = [text + (f" in {n} places" if n > 1 else "") for text, n in machines.items()]
    ratios = [
        f"{line.price_per_hour / line.quoted_price_per_hour:.2f}" if line.price_kind == "observed" else line.price_kind
        for line in plan.lines
    ]  # fmt: skip
    chance = p_meet(plan)
    values = (
        path.stem, (", else " if in_turn else " + ").join(texts),
        " ".join(f"{line.provider}/{line.zone or line.region}" for line in plan.lines), f"{plan.total_usd:.2f}",
        ", ".join(dict.fromkeys(ratios)), "" if chance is None else f"{chance:.6f}",
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def say_table(plans: Sequence[Any], broken: int) -> None:
    """Print what docs/prices.md states of a suite."""
    ways = Counter[str]()
    largest = Counter[str]()
    for plan in plans:
        ways[" + ".join(sorted({line.purchase_option for line in plan.lines}))] += 1
        for line in plan.lines:
            largest[line.purchase_option] = max(largest[line.purchase_option], _accelerators(line))
    kinds = Counter(kind for plan in plans for kind in {line.price_kind for line in plan.lines})
    certain = [plan for plan in plans if p_meet(plan) == 1]
    ages = [
        max((x.price_age_days or 0 for x in p.lines if x.price_kind == "observed"), default=None)
        for p in plans
    ]
    old = [age for age in ages if age is not None and age > _OLD_DAYS]
    print(f"{len(plans)} planned, {broken} break a rule or have no plan; bought as", dict(ways.most_common()))
    print("plans with a price that is", dict(kinds.most_common()))
    print("needing a port:", sum(any(True for _ in _of_software(plan, ("cuda",))) for plan in plans))
    print("most accelerators of one line:", dict(largest))
    print(
        f"on spot quotes older than {_OLD_DAYS} days: {len(old)}",
        f"({min(old):g} to {max(old):g})" if old else "",
    )
    print(
        f"chance to meet the deadline of exactly 1: {len(certain)}, of them on owned machines alone "
        f"{sum(all(x.purchase_option == 'owned' for x in plan.lines) for plan in certain)}"
    )


def say_changes(rows: Sequence[Mapping[str, str]], was: Sequence[Mapping[str, str]]) -> None:
    """Print winners that changed since `was` and by how much costs did."""
    before = {row["workload"]: row for row in was}
    ratios = []
    for row in rows:
        if (old := before.get(row["workload"])) is None:
            print(f"{row['workload']}: new")
            continue
        ratios.append(float(row["usd"]) / float(old["usd"]))
        texts = [f"{one['winner']}, {one['places']} (${one['usd']})" for one in (old, row)]
        if any(row[name] != old[name] for name in ("winner", "places")):
            print(f"{row['workload']}: {' -> '.join(texts)}")
    if len(ratios) > 1:
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(
            f"cost over cost before, {len(ratios)}: median {middle:.2f}, quartiles {low:.2f} and {high:.2f}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan, print what breaks a rule and how the winners buy; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", help="workload files")
    parser.add_argument("--as-of", default="2026-11-22", help="day of planning")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="over every file's")
    parser.add_argument("--each", action="store_true", help="print a row for each winner")
    parser.add_argument("--out", type=Path, help="CSV file to write the rows to")
    parser.add_argument("--was", type=Path, help="such a file of before")
    given = parser.parse_args(arguments)
    settings = dict(item.split("=", 1) for item in given.set)
    plans, rows, broken = [], [], 0
    for path in given.files:
        try:
            plan = planner.optimize(path, as_of=given.as_of, settings=settings)
        except PlannerError as error:
            broken += 1
            print(f"{path.name}: no plan: {error}")
            continue
        if not plan.lines:
            broken += 1
            print(f"{path.name}: no plan: {plan.status}")
            continue
        plans.append(plan)
        rows.append(row_of(path, plan))
        found = list(breaches(plan, path, given.as_of))
        broken += bool(found)
        for text in found:
            print(f"{path.name}: {text}")
        if given.each:
            print(f"| {' | '.join(rows[-1].values())} |")
    say_table(plans, broken)
    if given.was:
        say_changes(rows, list(csv.DictReader(given.was.read_text(encoding="utf-8").splitlines())))
    if given.out:
        with given.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
