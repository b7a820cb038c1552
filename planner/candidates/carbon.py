"""Energy of machines in use: power of accelerators by what they do, of the host, and of the data centre around it.

    node_w  = accelerators x max_w x draw x (1 + overhead) + vcpus x host_w_per_vcpu
    kwh     = nodes x hours in use x node_w x PUE / 1000
    kgco2e  = kwh x grid intensity / 1000

`draw` is the mean over the time in use: what a step consists of (`draw_of_shapes`), and the hours without work.
Arrays in, arrays out; what is unknown is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tariffs.carbon import load_carbon
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints, Table
    from catalogs.tariffs.carbon import Site


# What accelerators do in each part of a step (planner.performance.spec.COMPONENTS).
_PHASE_OF = {
    "compute_s": "compute", "other_models_s": "compute", "evaluation_s": "compute",
    "memory_bound_s": "memory_bound", "optimizer_s": "memory_bound", "generation_s": "generation",
    "tp_comm_s": "waiting", "pp_comm_s": "waiting", "bubble_s": "waiting", "dp_comm_s": "waiting",
    "data_loading_s": "waiting", "fixed_s": "waiting", "offload_s": "waiting", "refit_s": "waiting",
}  # fmt: skip
_CONVOLUTIONS = "cnn"
LOW, MID, HIGH = 0, 1, 2
WATTS_PER_KW = 1000.0
GRAMS_PER_KG = 1000.0


@record(frozen=True, eq=False)
class Machines:
    """Figures per offer, shape `(n_offers,)`; those with an interval have three columns: low, middle, high.

    Attributes:
        accelerator_w: maximum power of all accelerators of an instance; NaN where unknown.
        vcpus: of an instance, assumed where the catalog does not say, shape `(n_offers, 3)`.
        pue: power usage effectiveness of the provider, shape `(n_offers, 3)`.
        grid: gCO2e per kWh; NaN where unknown. grid_spread: half of its interval as a factor.
    """

    accelerator_w: Floats
    vcpus: Floats
    pue: Floats
    grid: Floats
    grid_spread: Floats

    def take(self, rows: Ints) -> Machines:
        """The figures of some offers."""
        return Machines(
            self.accelerator_w[rows], self.vcpus[rows], self.pue[rows], self.grid[rows], self.grid_spread[rows]
        )  # fmt: skip

    def node_w(self, draw: Floats, level: int = MID) -> Floats:
        """Power of an instance in W; `draw`: ratio of maximum power, of the same shape as the offers."""
        figures = load_carbon().draws
        overhead, host = figures["overhead_ratio"].levels[level], figures["host_w_per_vcpu"].levels[level]
        return np.asarray(
            self.accelerator_w * draw * (1.0 + overhead) + self.vcpus[..., level] * host, dtype=np.float64
        )

    def kwh_per_hour(self, draw: Floats, level: int = MID) -> Floats:
        """Energy of an instance in use for an hour, the data centre's share included."""
        return np.asarray(self.node_w(draw, level) * self.pue[..., level] / WATTS_PER_KW, dtype=np.float64)


def machines_of(types: Table, type_of_offer: Ints, offers: Table, own: Mapping[int, Site]) -> Machines:
    """Look up the figures of all offers: once per instance type, provider and region.

    Args:
        types: instance types with `accelerator`, `accelerator_count`, `vcpus`.
        type_of_offer: row of `types` per offer.
        offers: with `provider` and `region`.
        own: by row of `offers`, grid and overhead of own machines whose file states them.
    """
    tables = load_carbon()
    names, counts = types["accelerator"].tolist(), types["accelerator_count"].astype(np.float64)
    found = {name: tables.maximum_power(str(name)) for name in set(names)}
    each = np.asarray(
        [np.nan if (power := found[name]) is None else power.watts for name in names], dtype=np.float64
    )
    stated = types["vcpus"].astype(np.float64)
    assumed = np.asarray(tables.draws["vcpus_per_accelerator"].levels) * counts[:, None]
    vcpus = np.where((stated > 0)[:, None], stated[:, None], assumed)  # NaN: not stated
    code, places = offers.distinct_keys("provider", "region")
    sites = [tables.site(str(provider), str(region)) for provider, region in places]
    code = np.array(code)
    code[list(own)] = len(places) + np.arange(len(own))
    sites += own.values()
    overheads = np.asarray([site.overhead[:3] for site in sites]).reshape(-1, 3)
    grids = [
        (np.nan, np.nan) if grid is None else (grid.gco2e_per_kwh, grid.spread_ratio) for grid, _ in sites
    ]
    intensity, spread = np.asarray(grids, dtype=np.float64).reshape(-1, 2)[code].T
    return Machines(
        (each * counts)[type_of_offer], vcpus[type_of_offer], overheads[:, [1, 0, 2]][code], intensity, spread
    )


def draw_of_shapes(shapes: Table, family: str, level: int = MID, at: Ints | None = None) -> Floats:
    """Mean draw during a step, as a ratio of maximum power, shape `(n,)`.

    Args:
        shapes: output of the performance model, with the parts of a step in seconds.
        family: kind of model; convolutions draw less than matrix work.
        level: of the interval.
        at: rows of `shapes`, shape `(n,)`; all by default.
    """
    at = np.arange(shapes.n_rows) if at is None else at
    seconds, drawn = np.zeros(len(at)), np.zeros(len(at))
    known = [name for name in _PHASE_OF if name in shapes]
    parts = np.nan_to_num(np.asarray([shapes[name][at] for name in known], dtype=np.float64))
    for name, part in zip(known, parts, strict=True):
        seconds += part
        drawn += part * draw_in(_PHASE_OF[name], family, level)
    busy = draw_in("compute", family, level)
    return np.where(seconds > 0, drawn / np.where(seconds > 0, seconds, 1.0), busy)


def draw_in(phase: str, family: str, level: int = MID) -> float:
    """Draw in a phase of the work, as a ratio of maximum power."""
    vision = phase == "compute" and family == _CONVOLUTIONS
    return load_carbon().draws["compute_vision" if vision else phase].levels[level]


def embodied_kg_per_hour(provider: str, instance_type: str, accelerators: float) -> float | None:
    """What making an instance's share of its server emitted, per hour of its life; None where unknown."""
    known = load_carbon().embodied(provider, instance_type)
    if known is None:
        return None
    share = min(1.0, accelerators / known.accelerators)
    return known.server_kgco2e * share / (known.lifetime_years * HOURS_PER_YEAR)


HOURS_PER_YEAR = 8766.0
