"""What a plan says of its storage and its loader, recomputed."""

from __future__ import annotations

from fractions import Fraction
from math import isnan
from typing import TYPE_CHECKING, Any

from planner.inputs.loading import loading_rates
from planner.judge.findings import IfStated, Near
from planner.judge.money import total
from planner.judge.storage import GB_PER_GIB, Option
from planner.performance.constants import load_constants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.inputs.loading import LoadingRate
    from planner.judge.bench import Bench, Candidate
    from planner.judge.goods import Offer
    from planner.judge.money import Charge
    from planner.judge.storage import Need

_RATIO, _SLACK = 3e-5, 1e-8
_VISION = ("cnn", "vit", "diffusion")


def storage(bench: Bench, candidate: Candidate) -> list[dict[str, Any]]:
    """What the plan must say of where things lie."""
    out = [] if candidate.store is None else [_data(bench, candidate, candidate.store)]
    charges = [charge for part in candidate.parts for charge in part.charges]
    return out + kept(bench, candidate.parts[0].offer, (1, candidate.hours), charges)


def kept(
    bench: Bench, offer: Offer, stay: tuple[int, float], charges: Sequence[Charge], line: int | None = None
) -> list[dict[str, Any]]:  # fmt: skip
    """Where checkpoints and outputs lie; `stay`: runs side by side, and the hours over which theirs are kept."""
    work, out = bench.work, []
    size = work.checkpoint_gib * work.kept * stay[0]
    if size:
        out.append(_checkpoints(bench, offer, stay, size, charges))
    if work.export_gb:
        chosen = _way(
            "object", bench.storage.store_name(offer), Fraction(0), basis="list", why=("exported", {})
        )
        out.append(_choice("outputs", work.export_gb / GB_PER_GIB, 0.0, chosen))
    return [choice | {"line": line} for choice in out]


def _choice(
    content: str, size: float, read: float, chosen: dict[str, Any], *others: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """A choice with its runner-up, the first of `others` that keeps the rule."""
    runner = next((other for other in others if other["keeps_rule"]), None)
    return {
        "content": content, "size_gib": Near(size), "read_mb_per_s": Near(read), "chosen": chosen,
        "runner_up": runner, "refused": [other for other in others if other is not runner], "line": None,
    }  # fmt: skip


def _way(
    kind: str, service: str, usd: Fraction | float, *, keeps: bool = True, gib: float = 0.0, mb_s: float = 0.0,
    basis: str, why: tuple[str, dict[str, float]],
) -> dict[str, Any]:  # fmt: skip
    return {
        "kind": kind, "service": service, "cost_usd": Near(usd, _RATIO, _SLACK), "keeps_rule": keeps,
        "capacity_gib": Near(gib), "throughput_mb_per_s": Near(mb_s), "basis": basis, "reason": why[0],
        "figures": {name: Near(value) for name, value in why[1].items()},
    }  # fmt: skip


def _data(bench: Bench, candidate: Candidate, store: Option) -> dict[str, Any]:
    judge, offer = bench.storage, candidate.parts[0].offer
    need, hours = judge.need(candidate.nodes, float(candidate.shape["step_time_s"])), candidate.hours
    figure = judge.per_read(offer)
    price = 0.0 if figure is None else float(figure.value) / 1000.0
    regions = len({part.offer.place for part in candidate.parts})
    every = [(option, option.usd(price, hours) * regions) for option in judge.options(offer, need)]
    return data(bench, offer, need, every, store)


def data(
    bench: Bench, offer: Offer, need: Need, every: Sequence[tuple[Option, float]], store: Option
) -> dict[str, Any]:
    """Where the training data lie, of every way with its cost in USD; `store`: the one taken."""
    refused = [pair for pair in every if pair[0].service != store.service]
    refused.sort(key=lambda pair: round(pair[1], 9))
    mine = next(pair for pair in every if pair[0].service == store.service)
    ways = [
        _way(
            option.kind, option.service, usd, keeps=option.keeps, gib=option.gib, mb_s=option.mb_s,
            basis=bench.storage.basis(offer, option), why=option.why,
        )
        for option, usd in (mine, *refused)
    ]  # fmt: skip
    return _choice("data", (bench.work.data_gb or 0.0) / GB_PER_GIB, need.mb_s, *ways)


def _checkpoints(
    bench: Bench, offer: Offer, stay: tuple[int, float], size: float, charges: Sequence[Charge]
) -> dict[str, Any]:
    checkpoint_charges = [charge for charge in charges if charge.id == "checkpoint_storage"]
    systems = sorted(
        bench.storage.file_systems(offer, size, stay[1]), key=lambda one: (round(one[1], 9), one[0].name)
    )
    ways = [
        _way("file_system", service.name, usd, gib=gib, basis=basis, why=("holds", {}))
        for service, usd, gib, basis in systems
    ]
    lost = _way(
        "local_nvme", "local NVMe", Fraction(0), keeps=False, basis="list", why=("ends_with_machine", {})
    )
    basis = checkpoint_charges[0].basis if checkpoint_charges else "list"
    why = ("outlives", {"kept": float(bench.work.kept * stay[0])})
    chosen = _way(
        "object", bench.storage.store_name(offer), total(checkpoint_charges), gib=size, basis=basis, why=why
    )
    return _choice("checkpoints", size, 0.0, chosen, *ways[:1], lost, *ways[1:])


def loading(bench: Bench, candidate: Candidate, total_usd: Fraction) -> dict[str, Any] | None:
    """What the plan must say of decoding on the CPU cores."""
    work, data = bench.work, bench.workload.data
    rate = work.training.decode_samples_per_s_per_core
    images = work.model.family.value in _VISION and work.model.tables is None
    likely = images and bool(work.training.bytes_per_sample)
    if bench.workload.kind == "fleet" or not (data.encoded or likely or rate is not None):
        return None
    default_rate = loading_rates()[f"{data.encoded or 'image'}_cpu"]
    per_core = default_rate.value if rate is None else rate
    kind, count = candidate.parts[0].offer.kind, candidate.parts[0].offer.accelerators
    step, exposed = float(candidate.shape["step_time_s"]), float(candidate.shape.get("data_loading_s", 0.0))
    samples_per_s = work.training.global_batch / step / (count * candidate.nodes)
    free = samples_per_s * step / max(step - exposed, 1e-12)
    vcpus = float(kind["vcpus"])
    cores = None if isnan(vcpus) or vcpus <= 0 else vcpus * load_constants()["data.cores_per_vcpu"] / count
    needed = None if per_core is None else free / per_core
    bound = needed is not None and cores is not None and needed > cores * (1.0 + 1e-9)
    cures = (
        _remedies(bench, candidate, total_usd, (free, samples_per_s, cores or 0.0, needed or 0.0))
        if bound
        else []
    )
    return {
        "encoded": data.encoded or "image", "samples_per_s_per_accelerator": Near(free),
        "decode_samples_per_s_per_core": None if per_core is None else Near(per_core),
        "cores_per_accelerator": None if cores is None else Near(cores),
        "cores_needed_per_accelerator": None if needed is None else Near(needed), "exposed_ratio": Near(exposed / step),
        "in_speed": rate is not None, "is_bound": bound,
        "source": "the workload" if data.decode_samples_per_s_per_core else default_rate.source, "remedies": cures,
    }  # fmt: skip


def _remedies(
    bench: Bench, candidate: Candidate, total_usd: Fraction, loads: tuple[float, float, float, float]
) -> list[dict[str, Any]]:
    free, samples_per_s, cores, needed = loads
    beside = f"{needed:.3g} cores beside each accelerator; here are {cores:.3g}"
    rates, names = loading_rates(), [("more loader workers on more cores", free, beside)]
    if bench.workload.data.encoded in (None, "image"):
        raw, gpu = rates["image_decoded"], rates["image_gpu"]
        names.append(("pre-decoded shards", (raw.value or 0.0) * cores, _measured(raw)))
        names.append(("decode on the accelerator", gpu.value or 0.0, _measured(gpu)))
    else:
        unknown = "rate not measured: as fast as the accelerator takes them at best"
        names.append(("pre-decoded shards", free, unknown))
    units = bench.work.units_per_step / float(candidate.shape["step_time_s"])
    out = []
    for name, fed, note in names:
        if fed <= 0:
            continue
        faster = min(fed, free) / samples_per_s
        usd = max(float(total_usd) - _work_usd(candidate) * (1.0 - 1.0 / faster), 0.0)
        out.append(
            {
                "name": name,
                "throughput_per_s": Near(units * faster),
                "cost_usd": Near(usd, _RATIO, 1e-6),
                "note": note,
            }
        )
    return out


def _measured(rate: LoadingRate) -> str:
    """A rate of the table, with the last part of its note."""
    caution = rate.note.split("; ")[-1]
    return f"{rate.value:,.0f} {rate.unit} ({rate.confidence}, {rate.as_of}); {caution}"


def _work_usd(candidate: Candidate) -> float:
    """What the instance-hours of the work itself cost."""
    usd = 0.0
    for part in candidate.parts:
        paid = sum(float(c.usd) for c in part.charges if c.kind == "compute")
        usd += (
            paid * min(candidate.steps.work, part.paid_hours) / part.paid_hours
            if part.paid_hours > 0
            else 0.0
        )
    return usd


def stated(bench: Bench, candidate: Candidate, total_usd: Fraction) -> dict[str, Any]:
    """The two fields of a plan; plans saved before there were such fields say nothing of them."""
    return {
        "storage": IfStated(storage(bench, candidate)), "loading": IfStated(loading(bench, candidate, total_usd)),
    }  # fmt: skip
