"""The ordinary formulation of a pipeline: a binary for every pair of candidates along an edge (the rival)."""

from __future__ import annotations

import numpy as np

from planner.pipelines.question import PipelineInput
from solvers.problem.milp import Milp, MilpBuilder


def build_pairs(pipe: PipelineInput) -> Milp:
    """Build it, without times: x_k binary, z_ekl binary with sum_l z_ekl = x_k and sum_k z_ekl = x_l."""
    builder = MilpBuilder("pairs")
    builder.add_columns("x", pipe.keys, cost=pipe.cost_usd, upper=1.0, integer=True)
    choose = builder.add_rows("choose", pipe.n_tasks, lower=1.0, upper=1.0)
    builder.add_entries(choose.start + pipe.task, np.arange(len(pipe.keys)), 1.0)
    for edge, (u, v) in enumerate(zip(pipe.source.tolist(), pipe.target.tolist(), strict=True)):
        out, into = np.flatnonzero(pipe.task == u), np.flatnonzero(pipe.task == v)
        k, m = (
            part.ravel() for part in np.meshgrid(np.arange(len(out)), np.arange(len(into)), indexing="ij")
        )
        usd, _ = pipe.moves(edge, pipe.place[out[k]], pipe.place[into[m]])
        keys = [(edge, a, b) for a, b in zip(k.tolist(), m.tolist(), strict=True)]
        z = builder.add_columns(f"z{edge}", keys, cost=usd, upper=1.0, integer=True)
        for side, position in ((out, k), (into, m)):
            rows = builder.add_rows(f"link{edge}.{len(side)}", len(side), lower=0.0, upper=0.0)
            builder.add_entries(rows.start + position, np.arange(z.start, z.stop), 1.0)
            builder.add_entries(np.arange(rows.start, rows.stop), side, -1.0)
    return builder.build()
