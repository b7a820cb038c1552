"""Our number beside each claim: one function a figure, computed from bundled data or read from a generated page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sanity import GPT3, RESNET_50, hardware
from catalogs.offers.flags import load_flags
from catalogs.store.load import load_catalog
from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.model import Severity
from planner.performance.memory_work import state_bytes_per_param
from planner.performance.phases import flops_per_step
from planner.performance.search import estimate_shapes
from planner.performance.spec import LayoutPin, TrainingSpec
from planner.workloads.size_rules import load_facts

DOCS = Path(__file__).parents[2] / "docs"
IMAGENET, EPOCHS, IMAGENET_GB = 1_281_167, 90, 147.0
STUDY_COMMAND = "python -m benchmarks.study --suite DIR --doc docs/study.md"
OF_STUDY = {
    "holds in the median": "holds", "more than claimed": "refuted", "does not hold": "refuted",
    "undecided": "undecided", "no rows": "undecided",
}  # fmt: skip
CLAIMS_COMMAND = "python -m benchmarks.claims"


@dataclass(frozen=True)
class Figure:
    """Our number.

    Attributes:
        value: in the claim's unit; None: nothing here can say.
        words: the number as a reader wants it.
        command: what prints it.
        verdict: the verdict of a study with intervals, instead of arithmetic on the value.
    """

    value: float | None
    words: str
    command: str = CLAIMS_COMMAND
    verdict: str = ""


def sanity(page: str, start: str) -> Figure:
    """A row of docs/sanity.md that begins with `start`: our figure with its 80 % interval."""
    row = next(line for line in page.splitlines() if line.startswith(f"| {start}"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    return Figure(_first_number(cells[2]), f"{cells[2]} (80 %: {cells[3]})", "python -m benchmarks.sanity")


def checked(page: str, start: str) -> Figure:
    """A row of the second table of docs/sanity.md: what came out, with its first number."""
    row = next(line for line in page.splitlines() if line.startswith(f"| {start}"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    number = re.match(r"[\d,.]+", cells[2])
    value = _first_number(cells[2]) if number else float(cells[3] == "yes")
    return Figure(value, cells[2], "python -m benchmarks.sanity")


def _first_number(text: str) -> float:
    found = re.search(r"-?\d[\d,]*\.?\d*", text)
    assert found is not None, text
    return float(found.group().replace(",", ""))


def fact(name: str) -> Figure:
    """A fact of planner/data/sizing_facts.csv, recomputed where it is a sum."""
    one = load_facts()[name]
    told = f" = {one.arithmetic}" if one.arithmetic else ""
    return Figure(
        one.value,
        f"{one.value:g} {one.unit}: {one.words}{told}",
        "planner size --data 100GB --goal image_classification",
    )


@cache
def _page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def training_bytes() -> Figure:
    """Bytes per parameter of weights, gradients and Adam's states in mixed precision, by the memory model."""
    made = state_bytes_per_param(TrainingSpec(1, 2048, "bf16"))
    total = made["weight_bytes"] + made["grad_bytes"] + made["opt_bytes"]
    return Figure(
        total, f"{total:g} bytes per parameter before activations (weights, gradients, Adam in bf16)"
    )


def gpt3_memory() -> Figure:
    """GB of accelerator memory of the smallest cluster of 8 x A100-80 that can train GPT-3, by the memory model."""
    training = TrainingSpec(1536, 2048, "bf16", layout=LayoutPin(recompute="full"))
    table = estimate_shapes(GPT3, training, hardware("a100-80gb-sxm", 8, 1600.0), [1, 2, 4, 6, 8, 12, 16, 24])
    nodes = min(row["nodes"] for row in table.rows() if row["fits"])
    return Figure(
        nodes * 640.0,
        f"{nodes * 640:,.0f} GB: {nodes:g} machines of 8 x 80 GB are the fewest that can train it",
    )


def _resnet_training(stack: str) -> TrainingSpec:
    base = TrainingSpec(256, 1, "fp16", optimizer="sgd", layout=LayoutPin(micro_batch=256))
    return replace(base, stack=stack)  # type: ignore[arg-type]


def resnet_flop() -> Figure:
    """FLOPs of 90 epochs of ImageNet, as `planner estimate` totals them."""
    training = _resnet_training("eager")
    total = flops_per_step(RESNET_50, training) * EPOCHS * IMAGENET / training.global_batch
    command = "planner estimate examples/resnet50-imagenet.yaml --instance-type p4d.24xlarge --details run"
    return Figure(total, f"{total:.3g} FLOP for {EPOCHS} epochs of {IMAGENET:,} images", command)


def _resnet_rate(stack: str) -> float:
    row = estimate_shapes(RESNET_50, _resnet_training(stack), hardware("a100-80gb-sxm", 1, 1600.0), [1]).row(
        0
    )
    return float(row["samples_per_s"])


def resnet_hours() -> Figure:
    """Hours of 90 epochs of ImageNet on one A100 with tuned software."""
    slow, fast = (EPOCHS * IMAGENET / _resnet_rate(stack) / 3600 for stack in ("eager", "tuned"))
    return Figure(fast, f"{fast:.1f} h with tuned software, {slow:.1f} h with eager PyTorch")


def resnet_read() -> Figure:
    """GB/s that one machine of 8 A100 reads for ResNet-50, tuned and eager."""
    fast, slow = (8 * _resnet_rate(stack) * IMAGENET_GB / IMAGENET for stack in ("tuned", "eager"))
    return Figure(
        fast, f"8 A100 on ResNet-50 read {slow:.1f} GB/s (eager) to {fast:.1f} GB/s (tuned); text under 0.01"
    )


def a100_peak() -> Figure:
    """Dense fp16 peak of 4 A100 in TFLOPS, and what is achieved."""
    row = next(row for row in load_accelerators().rows() if row["accelerator"] == "a100-80gb-sxm")
    peak = float(row["fp16_tflops"])
    return Figure(
        peak, f"{peak:g} TFLOPS dense for one A100, {4 * peak:,.0f} for four; 624 is one with sparsity"
    )


@cache
def _offers() -> dict[str, Any]:
    """The bundled offers that carry no refusing flag, as columns."""
    table = load_catalog().offers
    flags = load_flags()
    sound = np.asarray([
        not any(flags[flag].severity is Severity.REFUSE for flag in str(text).split(";") if flag)
        for text in table["flags"]
    ])  # fmt: skip
    kept = table.take(np.flatnonzero(sound))
    names = ("provider", "region", "instance_type", "purchase_option", "basis", "as_of", "currency")
    columns: dict[str, Any] = {name: np.asarray([str(value) for value in kept[name]]) for name in names}
    columns["price"] = np.asarray([float(value) for value in kept["price_per_hour"]])
    return columns


def _listed() -> dict[tuple[str, str, str], float]:
    of = _offers()
    least: dict[tuple[str, str, str], float] = {}
    for at in np.flatnonzero((of["purchase_option"] == "on_demand") & (of["price"] > 0)):
        key = of["provider"][at], of["region"][at], of["instance_type"][at]
        least[key] = min(least.get(key, np.inf), float(of["price"][at]))
    return least


def spot_saving(provider: str, derived: bool) -> Figure:
    """Median saving of a provider's spot offers under on-demand, and the share that saves 70 to 90 %."""
    of, listed = _offers(), _listed()
    hit = (of["provider"] == provider) & (of["purchase_option"] == "spot") & (of["price"] > 0)
    hit &= (of["basis"] == "derived") == derived
    savings, dates = [], set()
    for at in np.flatnonzero(hit):
        base = listed.get((of["provider"][at], of["region"][at], of["instance_type"][at]))
        if base:
            savings.append(1.0 - of["price"][at] / base)
            dates.add(of["as_of"][at])
    if not savings:
        return Figure(None, "no spot offer beside an on-demand price")
    values = np.asarray(savings)
    share = float(((values >= 0.7) & (values <= 0.9)).mean())
    told = f"median {np.median(values):.0%}; {share:.0%} of {len(values)} offers save 70-90 %"
    told += f" ({min(dates)} to {max(dates)})"
    return Figure(float(np.median(values)), told)


def region_gap(region: str, base: str) -> Figure:
    """On-demand list prices of one region over another's, median of the types that both sell, less one."""
    listed = _listed()
    (provider, name), other = region.split("/"), base.split("/")[1]
    ratios = [
        listed[provider, name, kind] / price - 1.0
        for (who, where, kind), price in sorted(listed.items())
        if who == provider and where == other and (provider, name, kind) in listed
    ]
    if not ratios:
        return Figure(None, "no type is sold in both")
    told = f"{np.median(ratios):+.0%} ({min(ratios):+.0%} to {max(ratios):+.0%}) on {len(ratios)} types"
    return Figure(float(np.median(ratios)), told, f"planner compare WORKLOAD --over region --base {base}")


def host_memory() -> Figure:
    """Host memory over accelerator memory of machines with 8 accelerators on offer: median and range."""
    types = load_catalog().instance_types
    accelerators = {row["accelerator"]: float(row["memory_gib"]) for row in load_accelerators().rows()}
    ratios, most = [], 0.0
    for row in types.rows():
        memory, count = float(row["memory_gib"] or np.nan), float(row["accelerator_count"] or 0)
        device = accelerators.get(str(row["accelerator"]))
        if count == 8 and device and device > 0 and memory > 0:
            ratios.append(memory / (count * device))
            most = max(most, memory)
    told = (
        f"8-accelerator machines carry {min(ratios):.1f} to {max(ratios):.1f} x their accelerator memory, median"
        f" {np.median(ratios):.1f}; the largest holds {most:,.0f} GiB, so data above {most / 2 / 1000:.1f} TB have"
        f" no machine"
        " with twice their size"
    )
    return Figure(most / 2.0, told)


def cpu_rate() -> Figure:
    """Images per second that 30 days for 90 epochs mean."""
    rate = EPOCHS * IMAGENET / (30 * 86400)
    told = f"30 days are {rate:.0f} images/s, {rate / 28:.1f} a core; no training on CPUs is among our measurements"
    return Figure(None, told)


def study(words: str) -> Figure:
    """A line of the verdict of docs/study.md: the median saving of an arm, and what its interval says of the claim."""
    line = next(line for line in _page("study.md").splitlines() if line.startswith(f"- **{words}**"))
    told = line.split("**: ", 1)[1].rstrip(".")
    verdict = next(ours for theirs, ours in OF_STUDY.items() if told.startswith(theirs))
    return Figure(_first_number(told.split("median ", 1)[1]) / 100.0, told, STUDY_COMMAND, verdict)


def study_mlperf() -> Figure:
    """Predicted over published time of the study's MLPerf rows; whose error it is is not known."""
    ratios = {}
    for line in _page("study.md").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].startswith("mlperf-") and len(cells) > 6 and re.fullmatch(r"\d+\.\d+", cells[5]):
            ratios[cells[0]] = float(cells[5])
    each = ", ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(ratios.items()))
    return Figure(
        None, f"predicted over published hours: {each or 'no row with a published time'}", STUDY_COMMAND
    )


FIGURES: dict[str, Callable[[], Figure]] = {
    "training_bytes": training_bytes, "gpt3_memory": gpt3_memory, "resnet_flop": resnet_flop,
    "resnet_hours": resnet_hours, "resnet_read": resnet_read, "a100_peak": a100_peak, "host_memory": host_memory,
    "cpu_rate": cpu_rate, "study_mlperf": study_mlperf,
}  # fmt: skip
_WITH_ARGUMENT: dict[str, Callable[[str], Figure]] = {
    "fact": fact,
    "sanity": lambda start: sanity(_page("sanity.md"), start),
    "checked": lambda start: checked(_page("sanity.md"), start),
    "spot_observed": lambda provider: spot_saving(provider, False),
    "spot_derived": lambda provider: spot_saving(provider, True),
    "gap": lambda pair: region_gap(*pair.split("|")),
    "study": study,
}  # fmt: skip


def figure_of(name: str) -> Figure:
    """The figure called `name`, or `name:argument`.

    Raises:
        KeyError: there is no such figure.
    """
    kind, _, argument = name.partition(":")
    return _WITH_ARGUMENT[kind](argument) if argument else FIGURES[kind]()
