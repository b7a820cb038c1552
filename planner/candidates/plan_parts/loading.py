"""Whether the CPU cores of the chosen nodes decode as fast as their accelerators take samples, and what would help."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from planner.inputs.loading import loading_rates
from planner.performance.constants import load_constants
from planner.plan.storage import Loading, Remedy

if TYPE_CHECKING:
    from planner.candidates.model import Candidates
    from planner.inputs.loading import LoadingRate

_CENTS = 12


def loading_of(candidates: Candidates, at: int, total_usd: Decimal) -> Loading | None:
    """Describe loading of candidate `at`; None where nothing is to be decoded.

    Args:
        candidates: all candidates.
        at: the chosen one.
        total_usd: its cost.
    """
    asked = candidates.context.asked
    job, data = asked.job, asked.workload.data
    given = job.training.decode_samples_per_s_per_core
    likely = job.model.reads_files and bool(job.training.bytes_per_sample)
    if asked.workload.kind == "fleet" or (data.encoded is None and not likely and given is None):
        return None
    kind = data.encoded or "image"
    known = loading_rates()[f"{kind}_cpu"]
    rate = known.value if given is None else given
    shape = candidates.shapes.row(int(candidates.shape[at]))
    types, row = candidates.context.market.offer_set.types, int(candidates.offer[at])
    machine = types.row(int(candidates.context.market.offer_set.type_of_offer[row]))
    count = float(machine["accelerator_count"])
    step, exposed = float(shape["step_time_s"]), float(shape.get("data_loading_s", 0.0))
    taken = job.training.global_batch / step / (count * float(candidates.nodes[at]))
    free = taken * step / max(step - exposed, 1e-12)
    vcpus = float(machine["vcpus"])
    share = load_constants()["data.cores_per_vcpu"]
    cores = vcpus * share / count if vcpus > 0 else None
    needed = None if rate is None else free / rate
    bound = needed is not None and cores is not None and needed > cores * (1.0 + 1e-9)
    return Loading(
        encoded=kind, samples_per_s_per_accelerator=free, decode_samples_per_s_per_core=rate,
        cores_per_accelerator=cores, cores_needed_per_accelerator=needed, exposed_ratio=exposed / step,
        in_speed=given is not None, is_bound=bound,
        source="the workload" if data.decode_samples_per_s_per_core else known.source,
        remedies=_remedies(candidates, at, total_usd, (free, taken, cores or 0.0, needed or 0.0)) if bound else (),
    )  # fmt: skip


def _remedies(
    candidates: Candidates, at: int, total_usd: Decimal, loads: tuple[float, float, float, float]
) -> tuple[Remedy, ...]:
    """What would feed the accelerators, cheapest to do first.

    Args:
        candidates: all candidates.
        at: the chosen one.
        total_usd: its cost.
        loads: samples/s that an accelerator takes when fed and as planned; cores beside it, and those needed.
    """
    free, taken, cores, needed = loads
    rates = loading_rates()
    units = candidates.context.asked.job.units_per_step / float(
        candidates.shapes["step_time_s"][candidates.shape[at]]
    )
    image = candidates.context.asked.workload.data.encoded in (None, "image")
    ways = [
        (
            "more loader workers on more cores",
            free,
            f"{needed:.3g} cores beside each accelerator; here are {cores:.3g}",
        ),
    ]
    if image:
        raw, gpu = rates["image_decoded"], rates["image_gpu"]
        ways.append(("pre-decoded shards", (raw.value or 0.0) * cores, _rate(raw)))
        ways.append(("decode on the accelerator", gpu.value or 0.0, _rate(gpu)))
    else:
        ways.append(
            ("pre-decoded shards", free, "rate not measured: as fast as the accelerator takes them at best")
        )
    return tuple(
        Remedy(
            name,
            units * min(fed, free) / taken,
            _cost(candidates, at, total_usd, taken / min(fed, free)),
            note,
        )
        for name, fed, note in ways
        if fed > 0
    )


def _cost(candidates: Candidates, at: int, total_usd: Decimal, times: float) -> Decimal:
    """Cost of the candidate if its steps took `times` as long; hours that are no work stay."""
    hourly = candidates.context.market.offer_set.usd_per_hour
    work = float(candidates.work_hours[at])
    usd = 0.0
    for part in candidates.parts(at):
        used = min(work, part.paid_hours) if part.paid_hours > 0 else 0.0
        usd += float(hourly[part.row]) * part.instance_hours * (used / part.paid_hours if used else 0.0)
    return max(Decimal(repr(round(float(total_usd) - usd * (1.0 - times), _CENTS))), Decimal(0))


def _rate(rate: LoadingRate) -> str:
    known = f"{rate.value:,.0f} {rate.unit} ({rate.confidence}, {rate.as_of})"
    return f"{known}; {rate.note.rpartition('; ')[2]}"
