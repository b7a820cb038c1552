"""Would an expert sign the winners? `python -m benchmarks.winners [--as-of 2026-11-22] FILE...` plans each workload.

A winner breaks a rule where a line rests on a derived price or one of no market, on a retired size, on software that
the file does not ask for, or on more accelerators than asking brings (unless the file says what it can have); and where
its deadline is met for certain although machines are not owned. Exit code 1 where one does, or a file is not planned.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import planner
from catalogs.tables.accelerators import load_accelerators
from planner.errors import PlannerError
from planner.inputs.load import load_workload
from planner.market.obtainable import load_obtainable
from planner.performance.constants import load_software

_NO_PRICE = ("derived", "no_market")


def breaches(plan: Any, path: Path) -> Iterator[str]:
    """Yield the rules that a plan breaks."""
    limits = load_workload(path).workload.constraints
    wanted = limits.software or ("cuda",)
    known = load_accelerators()
    vendors = dict(zip(known["accelerator"], known["vendor"], strict=True))
    for line in plan.lines:
        owned, accelerators = line.purchase_option == "owned", line.nodes * line.accelerators_per_node
        if line.price_kind in _NO_PRICE:
            yield f"{line.offer_id}: price is {line.price_kind}"
        if "retired" in line.flags and not owned:
            yield f"{line.offer_id}: retired"
        if (
            not owned
            and "any" not in wanted
            and load_software().get(vendors.get(line.accelerator, "")) not in wanted
        ):
            yield f"{line.offer_id}: needs other software than {', '.join(wanted)}"
        most = next(
            (
                one.most_accelerators
                for one in load_obtainable()
                if one.purchase_option == line.purchase_option
                and fnmatchcase(line.accelerator, one.accelerator)
            ),
            float("inf"),
        )
        if accelerators > most and not limits.obtainable:
            yield f"{line.offer_id}: {accelerators} accelerators, asking brings {most:g}"
    part = plan.risk if plan.launch is None else plan.launch
    if (
        part is not None
        and part.p_meet_deadline == 1
        and any(x.purchase_option != "owned" for x in plan.lines)
    ):
        yield "the deadline is met for certain"


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan, print what breaks a rule and how the winners buy; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", help="workload files")
    parser.add_argument("--as-of", default="2026-11-22", help="day of planning")
    given = parser.parse_args(arguments)
    ways, broken, largest = Counter[str](), 0, Counter[str]()
    for path in given.files:
        try:
            plan = planner.optimize(path, as_of=given.as_of)
        except PlannerError as error:
            broken += 1
            print(f"{path.name}: no plan: {error}")
            continue
        options = sorted({line.purchase_option for line in plan.lines})
        ways[" + ".join(options)] += 1
        for line in plan.lines:
            count = int(line.nodes * line.accelerators_per_node)
            largest[line.purchase_option] = max(largest[line.purchase_option], count)
        found = list(breaches(plan, path))
        broken += bool(found)
        for text in found:
            print(f"{path.name}: {text}")
    print(f"{len(given.files)} workloads, {broken} break a rule; bought as", dict(ways.most_common()))
    print("most accelerators of one line:", dict(largest))
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
