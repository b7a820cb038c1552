"""The network between instances of a type, and the environment that collectives need on it.

`planner/data/fabrics.csv` and `fabric_environment.csv` hold both with source and date; `assumed` rows say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from planner.bundled import bundled_rows
from planner.export.view import Pool
from planner.records import record

Where = Literal["any", "kubernetes"]


@record(frozen=True)
class Fabric:
    """Kinds of network of a type (efa, infiniband, tcpx, tcpxo, gib, pcie), and its interfaces for collectives.

    Without kinds nothing is known of it: collectives run over TCP.
    """

    kinds: tuple[str, ...] = ()
    interfaces: int = 0


@cache
def _rows(name: str) -> tuple[Mapping[str, str], ...]:
    return tuple(bundled_rows(name))


def fabric_of(pool: Pool) -> Fabric:
    """The network of a pool's type: the first row that matches."""
    for row in _rows("fabrics.csv"):
        if row["provider"] == pool.provider and re.fullmatch(row["instance_types"], pool.instance_type):
            return Fabric(tuple(row["fabric"].split("+")), int(row["interfaces"]))
    return Fabric()


def network_variables(pool: Pool, nodes: int, where: Where) -> dict[str, str]:
    """Environment that collectives need on a pool.

    Args:
        pool: the machines.
        nodes: instances of one run: on one alone only what is inside it counts.
        where: rows of containers on Kubernetes are left out elsewhere.
    """
    return {
        row["variable"]: row["value"] for row in _matching(pool, nodes, where) if row["variable"] != "source"
    }


def network_scripts(pool: Pool, nodes: int) -> list[str]:
    """Scripts that set the rest of that environment on Kubernetes; they are part of the network's plugin."""
    return [row["value"] for row in _matching(pool, nodes, "kubernetes") if row["variable"] == "source"]


def _matching(pool: Pool, nodes: int, where: Where) -> list[Mapping[str, str]]:
    if pool.vendor != "nvidia" or nodes * pool.gpus < 2:
        return []
    kinds = {kind for kind in fabric_of(pool).kinds if nodes > 1 or kind == "pcie"} | {"nvidia"}
    return [
        row
        for row in _rows("fabric_environment.csv")
        if row["fabric"] in kinds and row["where"] in ("any", where)
    ]
