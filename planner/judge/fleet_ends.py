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
    it draws on the one after whose end it pays what the answer says, and of such on the one that is fullest.
    """
    free: dict[int, int] = {}
    out = []
    for worker, line in zip(workers, plan["lines"], strict=True):
        alike = alike_of(worker.buy.offer, bench.workload, bench.start)
        if all(ends == inf for _, _, ends in alike):
            out.append(worker)
            continue
        nodes, after = worker.buy.nodes * worker.count, _after(line)
        ways = []
        for at, held, ends in alike:
            left = free.setdefault(at, held) - nodes
            if left >= 0 and worker.end <= ends * (1 + _HAIR):
                ended = replace(worker, until=ends)
                ways.append((float(abs(ended.after - after)) > _near(after), left, at, ended))
        findings.require(
            bool(ways),
            line.path,
            f"no commitment has {nodes} instances until its workers end, after {worker.end:g} h",
        )
        chosen = min(ways, key=lambda way: way[:3], default=None)
        if chosen is not None:
            free[chosen[2]] -= nodes
        out.append(worker if chosen is None else chosen[3])
    return out


def _after(line: Node) -> Fraction:
    """Instance-hours that a line pays after the end of a commitment."""
    return sum(
        (charge["quantity"].money() for charge in line["costs"] if charge["id"].text() == "after_end"),
        Fraction(0),
    )


def _near(hours: Fraction) -> float:
    """How far recomputed hours may be off."""
    return 1e-6 * float(hours) + 1e-6
