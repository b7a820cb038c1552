"""Candidates that a portfolio's file sizes, read from it and from its CSV file."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from planner.files.limited import MAX_RECORD_BYTES, open_text

if TYPE_CHECKING:
    from planner.inputs.portfolio_schema import PortfolioJob, SizedCandidate
    from planner.judge.document import Node

_HOURS = 6e-5  # hours are printed to four places


class Sized(NamedTuple):
    """A candidate that the file sizes; a number that it does not give is None."""

    provider: str
    region: str
    instance_type: str
    family: str
    purchase_option: str
    nodes: int
    hours: float
    cost_usd: Fraction | None
    usd_per_hour: Fraction | None
    quota_units: int | None

    @property
    def usd(self) -> Fraction:
        """What it costs, data apart."""
        if self.cost_usd is not None:
            return self.cost_usd
        return (self.usd_per_hour or Fraction(0)) * self.nodes * Fraction(repr(self.hours))


def read_candidates(file: Path) -> dict[str, list[Sized]]:
    """Candidates of a CSV file, by job."""
    rows: dict[str, list[Sized]] = {}
    with open_text(file, MAX_RECORD_BYTES) as lines:
        for row in csv.DictReader(lines):
            rows.setdefault(row["job"], []).append(_sized_row(row))
    return rows


def sized_in_file(job: PortfolioJob) -> list[Sized]:
    """Candidates listed with a job."""
    return [_sized_candidate(candidate) for candidate in job.candidates]


def named_candidate(candidates: list[Sized], node: Node, job: PortfolioJob) -> Sized:
    """The candidate of the file that a job says it uses; of several, the one with the cost of the answer."""
    same = [
        candidate
        for candidate in candidates
        if all(
            getattr(candidate, name) == node[name].value
            for name in ("provider", "region", "instance_type", "purchase_option", "nodes")
        )
        and abs(candidate.hours - node["hours"].number()) <= _HOURS
    ]
    if not same:
        node["instance_type"].fail(f"a candidate of {job.name}")
    usd = node["cost_usd"].money()
    return min(
        same, key=lambda candidate: (abs(candidate.usd - usd), candidate.quota_units or candidate.nodes)
    )


def _sized_candidate(one: SizedCandidate) -> Sized:
    cost, price = one.cost_usd, one.usd_per_hour
    return Sized(
        one.provider, one.region, one.instance_type, one.family, one.purchase_option, one.nodes, float(one.hours),
        None if cost is None else Fraction(cost), None if price is None else Fraction(price), one.quota_units,
    )  # fmt: skip


def _sized_row(row: dict[str, str]) -> Sized:
    def amount(name: str) -> Fraction | None:
        return Fraction(row[name]) if row.get(name) else None

    units = amount("quota_units")
    return Sized(
        row["provider"], row["region"], row["instance_type"], row.get("family", ""),
        row.get("purchase_option", "on_demand"), int(float(row["nodes"])), float(row["hours"]), amount("cost_usd"),
        amount("usd_per_hour"), None if units is None else int(units),
    )  # fmt: skip
