"""Energy and emissions recomputed from hours in use, the parts of a step, and the carbon tables; written apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, hypot, isnan, log
from typing import TYPE_CHECKING, Any

from catalogs.tariffs.carbon import load_carbon
from planner.judge.findings import IfStated, Near
from planner.judge.prices import Z80
from planner.records import record

if TYPE_CHECKING:
    from planner.judge.bench import Bench, Candidate
    from planner.judge.document import Node
    from planner.judge.fleet_workers import Worker
    from planner.judge.goods import Offer

_LOW, _MID, _HIGH = 0, 1, 2
_YEAR_HOURS = 365.25 * 24
_FLEET_RATIO = 1e-6
# Seconds of a step, by what accelerators do meanwhile.
_WORK = ("compute_s", "other_models_s", "evaluation_s")
_MEMORY = ("memory_bound_s", "optimizer_s")
_WAITING = (
    "tp_comm_s", "pp_comm_s", "bubble_s", "dp_comm_s", "data_loading_s", "fixed_s", "offload_s", "refit_s"
)  # fmt: skip


@record(frozen=True)
class Used:
    """Instances of an offer in use for `hours` each, `setup` of these without work; draws by level during work."""

    offer: Offer
    nodes: int
    hours: float
    setup: float
    draws: tuple[float, ...]

    def kwh(self, level: int) -> float | None:
        """Energy: accelerators, the host beside them, and the data centre around them; None where unknown."""
        tables, kind = load_carbon(), self.offer.kind
        rated = tables.maximum_power(str(kind["accelerator"]))
        if rated is None:
            return None
        figures = {name: figure.levels[level] for name, figure in tables.draws.items()}
        count, stated = float(self.offer.accelerators), float(kind["vcpus"])
        vcpus = stated if not isnan(stated) and stated > 0 else figures["vcpus_per_accelerator"] * count
        busy = (self.hours - self.setup) * self.draws[level] + self.setup * figures["setup"]
        watt_hours = rated.watts * count * busy * (1.0 + figures["overhead_ratio"])
        watt_hours += vcpus * figures["host_w_per_vcpu"] * self.hours
        overhead = self.offer.site.overhead
        return self.nodes * watt_hours * (overhead.low, overhead.pue, overhead.high)[level] / 1000.0

    @property
    def kg(self) -> float | None:
        """Emissions of the electricity."""
        grid, kwh = self.offer.site.grid, self.kwh(_MID)
        return None if kwh is None or grid is None else kwh * grid.gco2e_per_kwh / 1000.0

    @property
    def embodied(self) -> float | None:
        """The share of making the machines."""
        server = load_carbon().embodied(self.offer.place[0], self.offer.text("instance_type"))
        if server is None:
            return None
        share = min(1.0, float(self.offer.accelerators) / server.accelerators)
        return server.server_kgco2e * share * self.nodes * self.hours / (server.lifetime_years * _YEAR_HOURS)

    def line(self, ratio: float) -> dict[str, Any]:
        """What the plan says of it."""
        (grid, overhead), energy = self.offer.site, self.kwh(_MID)
        used = self.nodes * self.hours
        power = None if energy is None or not used > 0 else energy / used / overhead.pue * 1000.0
        return {
            "offer_id": self.offer.offer_id, "nodes": self.nodes, "hours_in_use": Near(self.hours, ratio),
            "node_w": _near(power, ratio), "pue_ratio": Near(overhead.pue), "pue_basis": overhead.confidence,
            "grid_gco2e_per_kwh": None if grid is None else Near(grid.gco2e_per_kwh),
            "grid_year": None if grid is None else grid.year,
            "grid_basis": "unknown" if grid is None else grid.basis,
            "energy_kwh": _near(energy, ratio), "operational_kgco2e": _near(self.kg, ratio),
            "embodied_kgco2e": _near(self.embodied, ratio),
        }  # fmt: skip


def brief(bench: Bench, candidate: Candidate, ratio: float) -> dict[str, Any]:
    """What a candidate in brief says of its energy and emissions."""
    used = _used(bench, candidate)
    return {
        "energy_kwh": IfStated(_near(_sum([part.kwh(_MID) for part in used]), ratio)),
        "operational_kgco2e": IfStated(_near(_sum([part.kg for part in used]), ratio)),
    }


def emitted(bench: Bench, candidate: Candidate) -> float | None:
    """Expected kgCO2e of a candidate's electricity; None where unknown."""
    return _sum([part.kg for part in _used(bench, candidate)])


def carbon(bench: Bench, candidate: Candidate, ratio: float, of_parts: Sequence[float]) -> IfStated:
    """What the plan of a job says of its energy and emissions.

    Args:
        bench: the job.
        candidate: the plan's candidate.
        ratio: how near sums must be.
        of_parts: how near figures of each line must be.
    """
    return IfStated(_said(bench, _used(bench, candidate), candidate.steps.sigma * Z80, ratio, of_parts))


def of_fleet(bench: Bench, workers: Sequence[Worker]) -> IfStated:
    """What the plan of a fleet says: workers count as at work in all their paid hours of work."""
    used = _workers(bench, workers)
    of_hours = _of_hours(used, [worker.run.steps.sigma for worker in workers])
    return IfStated(_said(bench, used, of_hours, _FLEET_RATIO, [_FLEET_RATIO] * len(used)))


def _of_hours(used: Sequence[Used], sigmas: Sequence[float]) -> float:
    """Half of the interval of the energy by the hours, in the logarithm: those of each worker err by its own sd."""
    kwh = [part.kwh(_MID) or 0.0 for part in used]
    slow = sum(one * exp(sigma * Z80) for one, sigma in zip(kwh, sigmas, strict=True))
    return log(slow / sum(kwh)) if sum(kwh) > 0 else 0.0


def of_fallback(
    bench: Bench,
    spot: Worker,
    later: tuple[Offer, float],
    near: tuple[float, float],
    others: Sequence[Worker] = (),
) -> IfStated:
    """What the plan of a fleet with a fall-back says.

    Args:
        bench: the fleet.
        spot: its workers; `paid` are their hours on spot.
        later: what they fall back on, and the hours of each on it, all of them at work.
        near: how near figures of either line must be.
        others: workers beside these that are on one line each.
    """
    used = _workers(bench, [spot])
    used += [replace(used[0], offer=later[0], hours=later[1], setup=0.0), *_workers(bench, others)]
    of_hours = _of_hours(used, [worker.run.steps.sigma for worker in (spot, spot, *others)])
    return IfStated(_said(bench, used, of_hours, near[0], (*near, *[_FLEET_RATIO] * len(others))))


def of_workers(bench: Bench, worker: Worker, node: Node) -> dict[str, Any]:
    """What the baseline of a fleet says of its energy and emissions; null in plans of 0.2.0 and before.

    Args:
        bench: the fleet.
        worker: of the baseline, all of them.
        node: the baseline as the plan has it.
    """
    (used,) = _workers(bench, [worker])
    expected = {"energy_kwh": used.kwh(_MID), "operational_kgco2e": used.kg}
    stated = any(name in node.keys() and not node[name].is_null for name in expected)  # noqa: SIM118
    return {
        name: IfStated(_near(value if stated else None, _FLEET_RATIO)) for name, value in expected.items()
    }


def _workers(bench: Bench, workers: Sequence[Worker]) -> list[Used]:
    busy = _busy(bench)
    return [
        Used(worker.buy.offer, worker.buy.nodes * worker.count, worker.paid, worker.run.steps.fixed, busy)
        for worker in workers
    ]


def _said(
    bench: Bench, used: Sequence[Used], of_hours: float, ratio: float, of_parts: Sequence[float]
) -> dict[str, Any]:
    """Sums with their intervals: all parts err alike.

    Args:
        bench: the job.
        used: what is in use.
        of_hours: half of the interval of the hours, in the logarithm.
        ratio: how near sums must be.
        of_parts: how near figures of each line must be.
    """
    energy, kg = _sum([part.kwh(_MID) for part in used]), _sum([part.kg for part in used])
    low, high = (_sum([part.kwh(level) for part in used]) for level in (_LOW, _HIGH))
    spread = hypot(log(high / low) / 2 if low and high else 0.0, of_hours)
    both = hypot(spread, _of_grids(used, kg))
    limit = bench.workload.constraints.max_kgco2e
    return {
        "energy_kwh": _near(energy, ratio), "energy_low_kwh": _near(_scaled(energy, -spread), ratio),
        "energy_high_kwh": _near(_scaled(energy, spread), ratio), "operational_kgco2e": _near(kg, ratio),
        "operational_low_kgco2e": _near(_scaled(kg, -both), ratio),
        "operational_high_kgco2e": _near(_scaled(kg, both), ratio),
        "embodied_kgco2e": _near(_sum([part.embodied for part in used]), ratio),
        "limit_kgco2e": None if limit is None else Near(limit), "unknown": _unknown(used),
        "lines": [part.line(near) for part, near in zip(used, of_parts, strict=True)],
    }  # fmt: skip


def _unknown(used: Sequence[Used]) -> list[str]:
    """What is not known, each once, in the words of the plan."""
    out: list[str] = []
    for part in used:
        (provider, region), machine = part.offer.place, part.offer.text("instance_type")
        if part.offer.site.grid is None:
            had = part.offer.text("purchase_option") == "owned"
            missing = "not stated: grid, grid_gco2e_per_kwh of the machine" if had else "no figure published"
            out.append(f"grid intensity of {provider}/{region}: {missing}")
        if part.kwh(_MID) is None and part.hours > 0:
            out.append(f"power of the accelerators of {machine}: no figure published")
        if part.embodied is None:
            out.append(f"embodied carbon of {provider} {machine}: no figure published, left out")
    return list(dict.fromkeys(out))


def _used(bench: Bench, candidate: Candidate) -> list[Used]:
    """The purchases of a candidate; what runs one after another shares the hours of setup in proportion."""
    draws, whole = _draws(bench, candidate.shape), sum(part.paid_hours for part in candidate.parts)
    out = []
    for part in candidate.parts:
        of_all = part.paid_hours / whole if candidate.in_turn and whole > 0 else 1.0
        setup = min(candidate.steps.fixed * of_all, part.paid_hours)
        out.append(Used(part.offer, part.nodes, part.paid_hours, setup, draws))
    return out


def _busy(bench: Bench) -> tuple[float, ...]:
    """Draw of matrix work by level, as a ratio of rated power."""
    vision = bench.work.model.family.value == "cnn"
    return load_carbon().draws["compute_vision" if vision else "compute"].levels


def _draws(bench: Bench, shape: Mapping[str, Any]) -> tuple[float, ...]:
    """Mean draw over a step by level, as a ratio of rated power."""
    figures, busy = load_carbon().draws, _busy(bench)
    groups = (
        (_WORK, busy), (_MEMORY, figures["memory_bound"].levels),
        (("generation_s",), figures["generation"].levels), (_WAITING, figures["waiting"].levels),
    )  # fmt: skip
    spent = [
        (sum(float(shape[name]) for name in names if name in shape and not isnan(shape[name])), draw)
        for names, draw in groups
    ]
    whole = sum(seconds for seconds, _ in spent)
    if not whole > 0:
        return busy
    return tuple(sum(seconds * draw[at] for seconds, draw in spent) / whole for at in (_LOW, _MID, _HIGH))


def _of_grids(used: Sequence[Used], kg: float | None) -> float:
    """Half of the interval of the grids, in the logarithm."""
    if not kg:
        return 0.0
    upper = 0.0
    for part in used:
        grid = part.offer.site.grid
        upper += 0.0 if grid is None else grid.spread_ratio * (part.kg or 0.0)
    return log(upper / kg)


def _sum(values: Sequence[float | None]) -> float | None:
    stated = [value for value in values if value is not None]
    return sum(stated) if len(stated) == len(values) else None


def _scaled(value: float | None, log_ratio: float) -> float | None:
    return None if value is None else value * exp(log_ratio)


def _near(value: float | None, ratio: float) -> Near | None:
    return None if value is None else Near(value, ratio)
