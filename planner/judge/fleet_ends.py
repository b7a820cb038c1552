"""Which commitment each line of a fleet draws on, and that its workers are done, in the mean, before that ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

from planner.judge.ends import alike_of

if TYPE_CHECKING:
    from planner.judge.bench import Bench
    from planner.judge.document import Node
    from planner.judge.findings import Findings
    from planner.judge.fleet_workers import Worker

_HAIR = 1e-9  # of the hours


def with_ends(findings: Findings, bench: Bench, plan: Node, workers: Sequence[Worker]) -> list[Worker]:
    """The workers of all lines with the ends of what they draw on.

    Several lines may draw on one commitment. Of those of equal terms that have room for a line and last as long as it,
    it draws on the one after whose end it pays what the answer says, and of such on the one that is fullest. The line
    that is there longest chooses first, as fewest last as long.
    """
    free: dict[int, int] = {}
    out, lines = list(workers), list(plan["lines"])
    for number in sorted(range(len(out)), key=lambda number: -out[number].end):
        worker, line = out[number], lines[number]
        alike = alike_of(worker.buy.offer, bench.workload, bench.start)
        if all(ends == inf for _, _, ends in alike):
            continue
        nodes, after = worker.buy.nodes * worker.count, _after(line)
        ways = []
        for at, held, ends in alike:
            left = free.setdefault(at, held) - nodes
            if left >= 0 and worker.end <= ends * (1 + _HAIR):
                ended = replace(worker, until=ends)
                other = float(abs(ended.after - after)) > _near(after) or bool(ended.after) != bool(after)
                ways.append((other, left, at, ended))
        findings.require(
            bool(ways),
            line.path,
            f"no commitment has {nodes} instances until its workers end, after {worker.end:g} h",
        )
        chosen = min(ways, key=lambda way: way[:3], default=None)
        if chosen is not None:
            free[chosen[2]] -= nodes
            out[number] = chosen[3]
    return out


def on_each(bench: Bench, worker: Worker) -> list[Worker]:
    """The workers of one offer on each commitment that has them and lasts as long; else on what ends first."""
    alike = alike_of(worker.buy.offer, bench.workload, bench.start)
    nodes = worker.buy.nodes * worker.count
    lasting = [ends for _, held, ends in alike if nodes <= held and worker.end <= ends * (1 + _HAIR)]
    return [
        replace(worker, until=ends) for ends in lasting or [min((ends for _, _, ends in alike), default=inf)]
    ]


def _after(line: Node) -> Fraction:
    """Instance-hours that a line pays after the end of a commitment."""
    return sum(
        (charge["quantity"].money() for charge in line["costs"] if charge["id"].text() == "after_end"),
        Fraction(0),
    )


def _near(hours: Fraction) -> float:
    """How far recomputed hours may be off, as those of a charge."""
    return 1e-6 * float(hours) + 2e-9
