"""Checks the certificate of an exact enumeration: no candidate that fits costs less than the chosen one.

The certificate lists every candidate that fits (offer, nodes, whole micro-dollars or micro-hours); the prices behind
them are checked by `planner verify PLAN`, for the chosen one, against the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.plan.certificates.milp import gap_faults


def check(certificate: Mapping[str, Any]) -> list[str]:
    """Return every fault of an `enumeration` certificate."""
    offers, nodes, values = certificate["offers"], certificate["nodes"], certificate["values"]
    if not values or not len(offers) == len(nodes) == len(values):
        return ["the lists of offers, nodes and values differ in length, or are empty"]
    if not all(type(value) is int and value >= 0 for value in values):
        return ["a value is not a whole number from 0 on"]
    if not all(type(count) is int and count >= 1 for count in nodes):
        return ["a node count is not a whole number from 1 on"]
    if len(set(zip(offers, nodes, strict=True))) != len(offers):
        return ["a candidate is listed twice"]
    chosen = certificate["chosen"]
    if type(chosen) is not int or not 0 <= chosen < len(values):
        return [f"the chosen candidate {chosen!r} is not in the list"]
    faults = []
    if certificate["objective"] != values[chosen]:
        faults.append(f"the chosen candidate is listed at {values[chosen]}, not {certificate['objective']}")
    least = min(values)
    if type(certificate["bound"]) is not int or certificate["bound"] > least:
        faults.append(f"a candidate of {least} is below the bound {certificate['bound']}")
    return faults + gap_faults(certificate)


def set_of(certificate: Mapping[str, Any]) -> str:
    """Name the candidates that the bound is of."""
    return f"of the {len(certificate['values']):,} candidates that it lists"
