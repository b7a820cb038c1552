"""The questions asked of each workload: the same file with one change to its limits each."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from planner.inputs.schema import Filter
from planner.inputs.training_schema import Layout

if TYPE_CHECKING:
    from planner.inputs.load import LoadedWorkload

OWNED = "owned"
HEADLINES = {
    "home": "on-demand, the owner's provider",
    "anywhere": "on-demand, any provider",
    "commitments": "with commitments, without spot",
    "spot": "with spot",
}
BESIDE = {
    "commitments_shared": "with commitments, of which other work pays the hours that this plan leaves",
    "anywhere_placed": "on-demand, without list prices that state no place",
    "spot_placed": "with spot, without list prices that state no place",
    "spot_derived": "with spot, derived prices admitted (never a headline)",
}
ARMS = {**HEADLINES, **BESIDE}
# A fleet's baseline is priced without a deadline: STUDY.md asks for 20,000 h.
ANY_TIME = timedelta(hours=20_000)


def limited(loaded: LoadedWorkload, **limits: Any) -> LoadedWorkload:
    """The workload with other constraints."""
    workload = loaded.workload
    constraints = workload.constraints.model_copy(update=limits)
    return replace(loaded, workload=workload.model_copy(update={"constraints": constraints}))


def on_demand_options(loaded: LoadedWorkload) -> tuple[str, ...]:
    """On-demand, and the owner's machines where the workload has some."""
    return ("on_demand", OWNED) if loaded.workload.prices.offers else ("on_demand",)


def without_baseline(loaded: LoadedWorkload) -> LoadedWorkload:
    """The workload with nothing to compare with."""
    return replace(loaded, workload=loaded.workload.model_copy(update={"baseline": None}))


def arm(loaded: LoadedWorkload, name: str, placed: tuple[str, ...], share: float = 1.0) -> LoadedWorkload:
    """The workload of an arm.

    Args:
        loaded: the workload as its file has it.
        name: a key of `ARMS`.
        placed: providers whose list prices name a place.
        share: of `commitments_shared`: part of a commitment's term that the work pays, 0..1.
    """
    baseline = loaded.workload.baseline
    if name == "home" and baseline is not None:
        firm = on_demand_options(loaded)
        return limited(loaded, purchase_options=firm, providers=(baseline.provider,))
    if name == "anywhere":
        return limited(loaded, purchase_options=on_demand_options(loaded))
    if name == "commitments_shared":
        prices = loaded.workload.prices.model_copy(update={"commitment_share": share})
        loaded = replace(loaded, workload=loaded.workload.model_copy(update={"prices": prices}))
    if name in ("commitments", "commitments_shared"):
        return limited(loaded, exclude_purchase_options=("spot",))
    if name == "anywhere_placed":
        return limited(loaded, purchase_options=on_demand_options(loaded), providers=placed)
    if name == "spot_placed":
        return limited(loaded, providers=placed)
    if name == "spot_derived":
        return limited(loaded, allow_derived=True)
    return loaded


def on_type(loaded: LoadedWorkload, instance_type: str) -> LoadedWorkload:
    """The workload on one machine type alone."""
    return limited(loaded, instance_types=Filter(allow=(instance_type,)))


def pinned_type(loaded: LoadedWorkload, provider: str, region: str, instance_type: str) -> LoadedWorkload:
    """On demand on one machine type in one place; the number of machines is free."""
    return limited(
        loaded, purchase_options=on_demand_options(loaded), regions=(f"{provider}/{region}",),
        providers=(provider,), instance_types=Filter(allow=(instance_type,)),
    )  # fmt: skip


def same_accelerator(loaded: LoadedWorkload, accelerator: str) -> LoadedWorkload:
    """On demand anywhere on machines with one accelerator."""
    return limited(
        loaded, purchase_options=on_demand_options(loaded), accelerators=Filter(allow=(accelerator,))
    )


def by(loaded: LoadedWorkload, hours: float) -> LoadedWorkload:
    """The workload with a deadline so many hours after its start."""
    return limited(loaded, deadline=timedelta(hours=hours))


def fleet_pinned(
    loaded: LoadedWorkload, provider: str, region: str, instance_type: str, option: str
) -> LoadedWorkload:
    """A fleet on one machine type in one place, however long it takes and whatever it costs."""
    return limited(
        loaded, purchase_options=(option,), regions=(f"{provider}/{region}",), providers=(provider,),
        instance_types=Filter(allow=(instance_type,)), deadline=ANY_TIME, budget_usd=None,
    )  # fmt: skip


def plain_layout(loaded: LoadedWorkload, transformer: bool) -> LoadedWorkload | None:
    """The layout of a recipe that nobody tuned: data parallelism alone.

    Transformers shard everything (ZeRO 3, FSDP) and recompute all activations; other networks keep a copy on each
    accelerator (DDP). None where the workload pins its layout or does not train one job.
    """
    training = loaded.workload.training
    if training is None or training.layout != "auto" or loaded.workload.kind != "training":
        return None
    parallel: dict[str, Any] = {"tensor_parallel": 1, "pipeline_parallel": 1, "context_parallel": 1}
    parallel |= {"zero_stage": 3, "recompute": "full"} if transformer else {"zero_stage": 0}
    changed = training.model_copy(update={"layout": Layout(**parallel)})
    return replace(loaded, workload=loaded.workload.model_copy(update={"training": changed}))
