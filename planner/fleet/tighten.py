"""The fleet's relaxation, tightened: a bound near the optimum, and few offers left that a cheaper fleet may use.

Rows that follow for whole numbers are added where the relaxation breaks them: x_o <= u_o y_r, b_o <= m_o y_r and the
rounded work of `part_time`, and rounded limits on workers (`solvers.search.rounding`). Then each region is opened in
turn: what the relaxation costs with y_r = 1 is a bound on every fleet that uses an offer of region r, and with its
reduced costs it caps the workers of those offers (probing: Savelsbergh, "Preprocessing and probing techniques for
mixed integer programming problems", ORSA J. Computing 6, 1994).
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.fleet.model.build import build_fleet
from planner.fleet.model.part_time import last_workers
from planner.fleet.model.prepared import Prepared, Switch, Total
from planner.fleet.model.regions import most_busy
from planner.fleet.search import FleetSearch
from solvers.backends.base import Relaxation
from solvers.backends.registry import get_backend
from solvers.execution.solve import relax as solve_relaxation
from solvers.problem.milp import Milp, with_rows
from solvers.problem.solution import Termination
from solvers.search.rounding import rounding_rows
from solvers.search.tighten import caps_from_reduced_costs, largest, safe_bound

LINK_ROUNDS = 6  # rounds of added rows; later rounds move the bound by less than 0.1 %
LINKED = ("region_link", "part_time_whole")  # blocks of rows of single offers
ROUNDED = "rounded"  # block of rounded limits
PATIENCE = 8.0  # tightening goes on while this many relaxations still fit into the time left
PROBE_TIME_SHARE = 0.6  # of the time left, at most
BROKEN = 1e-3  # of the bound; by less a row is not worth adding


def tighten(
    search: FleetSearch, offers: Prepared, known: Milp | None = None
) -> tuple[Prepared, Milp, Relaxation]:
    """Tighten the relaxation under the cost of the best fleet known; takes its bound.

    Args:
        search: the search.
        offers: what may be part of a cheaper fleet, as far as it is known.
        known: the model tightened under an earlier cost, whose added rows are taken over.

    Returns:
        the offers left, the model, its relaxation.
    """
    backend = get_backend(search.record.options.backend)
    if offers is not search.offers():
        offers = offers.capped(search.offers())
    links = links_of(known, offers)
    problem = rounded_too(known, build_fleet(search.fleet, prepared=offers, links=links))
    relaxation, pace_s = relax(search, problem)
    if not search.fleet.part_time and any(isinstance(key, Switch) for key in problem.column_keys):
        total, untouched = problem.column_keys.index(Total()), True
        for _ in range(2):
            if search.record.left_s() < PATIENCE * pace_s:
                return offers, problem, relaxation
            most = largest(
                problem,
                total,
                cutoff=search.record.cost,
                backend=backend,
                time_limit_s=search.record.left_s(),
            )
            if max(most, 1.0) >= offers.most_work:  # nothing new, and nothing more to find
                break
            offers, untouched = offers.with_most_work(max(most, 1.0)), False
            problem = rounded_too(problem, build_fleet(search.fleet, prepared=offers, links=links))
        if not untouched:
            relaxation, _ = relax(search, problem)
    for _ in range(LINK_ROUNDS):
        if relaxation.x is None or search.record.left_s() < PATIENCE * pace_s:
            break
        broken = np.setdiff1d(_broken_links(problem, offers, relaxation), links)
        coefficients, lower = rounding_rows(problem, relaxation.x)
        if not len(broken) and not len(lower):
            break
        grown = with_rows(problem, coefficients, lower, ROUNDED) if len(lower) else problem
        links = np.r_[links, broken]
        problem = grown
        if len(broken):
            problem = rounded_too(grown, build_fleet(search.fleet, prepared=offers, links=links))
        relaxation, _ = relax(search, problem)
    return offers, problem, relaxation


def rounded_too(known: Milp | None, problem: Milp) -> Milp:
    """Return `problem` with the rounded limits that were added to `known`, a model of the same offers or more.

    A region whose switch is no longer needed counts as open there.
    """
    block = None if known is None else known.row_block(ROUNDED)
    if known is None or block is None or not set(problem.column_keys) <= set(known.column_keys):
        return problem
    inside = known.indices >= block.start  # the last block
    rows = np.zeros((len(block), known.n_columns))
    rows[known.indices[inside] - block.start, known.column_of_entry()[inside]] = known.data[inside]
    columns = [known.position[key] for key in problem.column_keys]
    gone = [
        at for key, at in known.position.items() if isinstance(key, Switch) and key not in problem.position
    ]
    lower = known.row_lo[block.indices] - rows[:, gone].sum(axis=1)
    return with_rows(problem, rows[:, columns], lower, ROUNDED)


def relax(search: FleetSearch, problem: Milp) -> tuple[Relaxation, float]:
    """Solve the relaxation, take its bound, and tell how long it took (seconds)."""
    began = time.perf_counter()
    relaxation = solve_relaxation(problem, max(search.record.left_s(), 0.01), search.record.options.backend)
    search.record.raise_bound(safe_bound(relaxation))
    return relaxation, time.perf_counter() - began


def _broken_links(problem: Milp, offers: Prepared, relaxation: Relaxation) -> Ints:
    """Numbers of the kept offers whose x_o <= u_o y_r, b_o <= m_o y_r or rounded work the relaxation breaks."""
    if relaxation.x is None:
        return np.zeros(0, dtype=np.int64)
    opening = openings(problem, offers, relaxation)[offers.of("region")]
    count = len(offers.keep)
    broken = relaxation.x[:count] > offers.upper * opening + BROKEN * np.maximum(offers.upper, 1.0)
    if offers.source.part_time:
        most = most_busy(offers)
        busy, hair = relaxation.x[count : 2 * count], BROKEN * np.maximum(most, 1.0)
        rest, whole, able = last_workers(offers)
        broken |= busy > most * opening + hair
        broken |= able & (busy > rest * relaxation.x[:count] + (1 - rest) * whole * opening + hair)
    return np.flatnonzero(broken)


def openings(problem: Milp, offers: Prepared, relaxation: Relaxation) -> Floats:
    """How far the relaxation opens each region, shape `(n_regions,)`; 1 where a region has no switch."""
    opening = np.ones(offers.source.n_regions)
    if relaxation.x is not None:
        for column, key in enumerate(problem.column_keys):
            if isinstance(key, Switch):
                opening[key.region] = relaxation.x[column]
    return opening


def links_of(problem: Milp | None, offers: Prepared) -> Ints:
    """Numbers of the kept offers that have rows of their own in `problem`."""
    blocks = [] if problem is None else [problem.row_block(name) for name in LINKED]
    linked = {key for block in blocks if block is not None for key in block.tags}
    return np.array([at for at, key in enumerate(offers.keys) if key in linked], dtype=np.int64)


def caps_under(
    search: FleetSearch, problem: Milp, offers: Prepared, relaxation: Relaxation, cutoff: float
) -> Floats:
    """Return upper bounds on the columns of `problem` that every fleet cheaper than `cutoff` keeps."""
    caps = caps_from_reduced_costs(problem, relaxation, cutoff)
    count, region = len(offers.keep), offers.of("region")
    switches = {key.region: at for at, key in enumerate(problem.column_keys) if isinstance(key, Switch)}
    open_ones = [code for code, at in switches.items() if caps[at] >= 1.0]
    backend, columns = get_backend(search.record.options.backend), [switches[code] for code in open_ones]
    left_s = max(search.record.left_s() * PROBE_TIME_SHARE, 0.0)
    probed = backend.probe(problem, np.array(columns, dtype=np.int64), left_s)
    for code, at, found in zip(open_ones, columns, probed, strict=True):
        if search.record.left_s() <= 0:
            break
        members = np.flatnonzero(region == code)
        if found.termination is Termination.INFEASIBLE or safe_bound(found) >= cutoff:
            caps[at] = 0.0
        else:
            lower = problem.lb.copy()
            lower[at] = 1.0
            known = caps_from_reduced_costs(replace(problem, lb=lower), found, cutoff)
            caps[members] = np.minimum(caps[members], known[members])
    for code, at in switches.items():
        if caps[at] < 1.0:
            caps[:count][region == code] = 0.0
    if offers.source.part_time:
        caps[count : 2 * count] = np.minimum(caps[count : 2 * count], caps[:count])
    return caps
