"""Measured rows (columns of dev.csv) as cases the model can predict: inputs only, with a reason for every skip.

What a row leaves out (software stack, attention kernel, batch conventions) comes from `data/source_rules.csv`, by
source and framework, never by row. `metric` and `value` go to `Measured` and are not seen by the prediction.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.accelerators import find_device
from benchmarks.measured_vision import channels_last, sampled_model
from benchmarks.memory_rows import MemoryRule, memory_rule
from benchmarks.rows import Skip, number, plain_name, read_csv, whole
from planner.inputs.post_training import resolve_post_training
from planner.inputs.training_schema import Training
from planner.performance.kernels import default_experts
from planner.performance.post_training.read import tuning_of
from planner.performance.post_training.spec import Tuning
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec

DATA = Path(__file__).resolve().parent / "data"
NAN = float("nan")
_PRECISIONS = {"fp32": "fp32", "tf32": "tf32", "fp16": "fp16", "bf16": "bf16", "fp8": "fp8", "mxfp8": "fp8",
               "fp4": "fp4", "nvfp4": "fp4", "mxfp4": "fp4"}  # fmt: skip
PEAK_COLUMN = {"fp32": "fp32_tflops", "tf32": "tf32_tflops", "fp16": "fp16_tflops", "bf16": "bf16_tflops",
         "fp8": "fp8_tflops", "fp4": "fp4_tflops"}  # fmt: skip
_FAMILIES = {
    "transformer": ModelFamily.TRANSFORMER, "transformer-moe": ModelFamily.TRANSFORMER,
    "transformer-lora": ModelFamily.TRANSFORMER, "hybrid-moe": ModelFamily.TRANSFORMER, "cnn": ModelFamily.CNN,
    "cnn-det": ModelFamily.CNN, "cnn-seg": ModelFamily.CNN, "vit": ModelFamily.VIT,
    "diffusion": ModelFamily.DIFFUSION,
}  # fmt: skip
# Fabrics on which these clusters ran without direct access of the network to device memory.
HOST_STAGED = ("OmniPath", "Slingshot", "TCPX")
FLOPS_METRICS = frozenset({"tflops_per_gpu", "hw_tflops_per_gpu", "mfu"})
THROUGHPUT = FLOPS_METRICS | {"samples_per_s", "tokens_per_s", "tokens_per_s_per_gpu"}
# Sequence length of rows that state only FLOPs per second, which hardly depend on it.
USUAL_SEQUENCE = 2048


@dataclass(frozen=True)
class Measured:
    """What was measured; only the scoring reads it."""

    metric: str
    value: float
    memory_gib: float


@dataclass(frozen=True)
class Case:
    """One row's inputs. `layout` holds tp, pp, cp, dp, zero, micro_batch, recompute ...; None when unknown.

    `stated_layout` are the parts of the layout that the row itself says, `ran_on` the first day of its month (empty:
    unknown):
    what a user would state; the rest is known of its source. `precision` is the row's own word, of which the training
    keeps the class: `mxfp8` is slower than `fp8` with one scale per tensor.
    """

    row_id: str
    source: str
    group: str
    split_group: str
    generation: str
    kind: str
    model: ModelSpec
    training: TrainingSpec
    hardware: dict[str, Any]
    nodes: int
    accelerators: int
    layout: dict[str, Any] | None
    ep: int
    measured: Measured
    memory: MemoryRule = field(default_factory=MemoryRule)
    framework: str = ""
    stated_layout: frozenset[str] = frozenset()
    ran_on: str = ""
    precision: str = ""


def load_cases(
    rows: list[dict[str, str]],
    accelerators: dict[str, dict[str, Any]],
    metrics: frozenset[str] = THROUGHPUT,
) -> tuple[list[Case], Counter[str]]:
    """Turn rows of some metrics into cases; the counter tells how many were left out and why."""
    rules = read_csv(DATA / "source_rules.csv")
    vision_rules = read_csv(DATA / "vision_source_rules.csv")
    models = read_csv(DATA / "models.csv")
    networks = read_networks()
    cases: list[Case] = []
    skipped: Counter[str] = Counter()
    for row in rows:
        try:
            own = rules if _FAMILIES.get(row["family"]) is ModelFamily.TRANSFORMER else vision_rules
            if row["metric"] not in metrics:
                raise Skip(f"metric: {row['metric'] or 'none'}")
            if metrics == THROUGHPUT and "offload" in row["quality"]:
                raise Skip("offload to the host: time not modelled")
            cases.append(_case(row, own, models, networks, accelerators))
        except Skip as reason:
            skipped[str(reason)] += 1
        except (ValueError, OverflowError, ZeroDivisionError):
            skipped["cells that contradict each other or are no sizes"] += 1
    return cases, skipped


def _case(
    row: dict[str, str],
    rules: list[dict[str, str]],
    models: list[dict[str, str]],
    networks: dict[str, dict[str, str]],
    accelerators: dict[str, dict[str, Any]],
) -> Case:
    value = number(row, "value")
    if row["quality"].startswith("suspect"):
        raise Skip("quality: suspect")
    if not value:
        raise Skip("no value")
    if row["family"] not in _FAMILIES:
        raise Skip(f"family: {row['family']}")
    device = find_device(accelerators, row["gpu"])
    if device is None:
        raise Skip(f"accelerator: {row['gpu']}")
    rule = _rule(row, rules)
    precision = _precision(row, device, rule.get("mixed", ""))
    kind = _FAMILIES[row["family"]]
    gpus = int(number(row, "gpus") or 0)
    if not gpus and row["metric"] != "tokens_per_s_per_gpu":
        raise Skip("accelerator count not stated")
    gpus = gpus or int(number(row, "gpus_per_node") or 8)
    per_node = _per_node(row, gpus)
    model = replace(_model(row, models, kind), predicted_share=number(rule, "predicted_share"))
    layout, batch = _layout(row, rule, kind, gpus)
    memory = memory_rule(row, layout["zero"] if layout else 0)
    usual = USUAL_SEQUENCE if kind is ModelFamily.TRANSFORMER and row["metric"] in FLOPS_METRICS else 1
    sequence = int((number(row, "seq_len") or usual) * float(rule["sequence_ratio"] or 1))
    if kind is ModelFamily.TRANSFORMER and sequence < 2:
        raise Skip("sequence length not stated")
    ran_on = run_date(row.get("date", "") or rule.get("released", ""))
    training = TrainingSpec(
        global_batch=batch, sequence_length=max(sequence, 1), precision=precision,  # type: ignore[arg-type]
        lora_rank=16 if row["family"] == "transformer-lora" else None, stack=rule["stack"],  # type: ignore[arg-type]
        optimizer="sgd" if kind is ModelFamily.CNN else "adamw", attention=rule["attention"],  # type: ignore[arg-type]
        memory=memory.options, channels_last=channels_last(row, rule), tuning=_tuning(row, sequence),
        expert_kernels=default_experts(rule["stack"], date.fromisoformat(ran_on) if ran_on else None),  # type: ignore[arg-type]
    )  # fmt: skip
    hardware, per_node = hardware_of(row, device, per_node, gpus, layout, networks)
    return Case(
        row["row_id"], row["source"], rule["group"], row.get("split_group", ""), str(device["generation"]), kind.value,
        model, training, hardware, -(-gpus // per_node), gpus, layout, int(number(row, "ep") or 1),
        Measured(row["metric"], _in_unit(row["metric"], value), number(row, "mem_gib_per_gpu") or NAN), memory,
        row["framework"],
        _stated_layout(row), ran_on, row["precision"],
    )  # fmt: skip


# Columns of a row and the part of a workload's layout that they state.
_LAYOUT_COLUMNS = {
    "tp": "tensor_parallel", "pp": "pipeline_parallel", "cp": "context_parallel", "zero_stage": "zero_stage",
    "micro_batch": "micro_batch", "activation_ckpt": "recompute", "ep": "expert_parallel",
}  # fmt: skip
# Publication of MLPerf Training's rounds (mlcommons.org).
_ROUNDS = {"v0.7": "2020-07", "v2.1": "2022-11", "v3.1": "2023-11", "v4.0": "2024-06", "v5.0": "2025-06",
           "v5.1": "2025-11"}  # fmt: skip


def _stated_layout(row: dict[str, str]) -> frozenset[str]:
    stated = {part for column, part in _LAYOUT_COLUMNS.items() if row.get(column)}
    if row.get("activation_ckpt", "").split("+")[0].strip() not in ("none", "selective", "full"):
        stated.discard("recompute")
    return frozenset(stated)


def run_date(text: str) -> str:
    """The first day of the month that a row names: `2022-02`, a round of MLPerf, a release such as `25.11`."""
    text = _ROUNDS.get(text.strip(), text.strip())
    if found := re.match(r"(20\d\d)(?:-(0[1-9]|1[0-2])(?:\D|$))?", text):
        return f"{found[1]}-{found[2] or '06'}-01"
    if found := re.match(r"(\d\d)\.(0[1-9]|1[0-2])(?:\.|$)", text):
        return f"20{found[1]}-{found[2]}-01"
    return ""


def _tuning(row: dict[str, str], sequence: int) -> Tuning:
    """What adapters add, as a workload that states them is read."""
    if row["family"] != "transformer-lora":
        return Tuning()
    stated = {"steps": 1, "global_batch": 1, "sequence_length": max(sequence, 1), "method": "lora"}
    return tuning_of(resolve_post_training(Training.model_validate(stated), max(sequence, 1)))


def _in_unit(metric: str, value: float) -> float:
    """What was measured, utilisation as a ratio where it is given in percent."""
    return value / 100.0 if metric == "mfu" and value > 1.0 else value


def _rule(row: dict[str, str], rules: list[dict[str, str]]) -> dict[str, str]:
    for rule in rules:
        if (
            row["source"].startswith(rule["source_prefix"])
            and row["framework"].startswith(rule["framework_prefix"])
            and row["family"].startswith(rule["family_prefix"])
            and plain_name(row["model_name"]).startswith(plain_name(rule["model_prefix"]))
            and float(rule["min_sequence"] or 0) <= (number(row, "seq_len") or 0.0)
            and (number(row, "seq_len") or 0.0) <= (number(rule, "max_sequence") or math.inf)
            and (number(row, "gpus") or 0.0) <= (number(rule, "max_accelerators") or math.inf)
        ):
            return rule
    raise Skip("no source rule")


def _precision(row: dict[str, str], device: dict[str, Any], mixed: str) -> str:
    """Precision of the products; `mixed`: what the source says of rows that name several, on chips that have it."""
    word = row["precision"]
    if "/" in word and mixed and device[PEAK_COLUMN[mixed]] > 0:
        word = mixed
    if word == "mixed" or "/" in word:
        fp8 = word.startswith("fp8") and device["fp8_tflops"] == device["fp8_tflops"]
        bf16 = device["bf16_tflops"] == device["bf16_tflops"]
        word = "fp8" if fp8 else ("bf16" if bf16 else "fp16")
    precision = _PRECISIONS.get(word)
    if precision is None:
        raise Skip(f"precision: {word}")
    peak = device[PEAK_COLUMN[precision]]
    if not peak > 0:
        other = {"fp16": "bf16", "bf16": "fp16"}.get(precision)
        if other is None or not device[PEAK_COLUMN[other]] > 0:
            raise Skip(f"no {precision} peak of the accelerator")
        precision = other
    return precision


def _per_node(row: dict[str, str], gpus: int) -> int:
    """Accelerators that share a fast domain; an NVL72 rack counts as one node."""
    stated = int(number(row, "gpus_per_node") or 8)
    if "NVL72" in row["interconnect"]:
        return next((size for size in (72, 64, 48, 36, 32, 16, 8, 4) if gpus % size == 0), stated)
    return max(1, min(stated, gpus))


def _model(row: dict[str, str], models: list[dict[str, str]], kind: ModelFamily) -> ModelSpec:
    params = number(row, "params")
    if not params or params < 1.0:
        raise Skip("parameters not stated")
    if kind is not ModelFamily.TRANSFORMER:
        return sampled_model(row, kind, params)
    name = plain_name(row["model_name"])
    known = next((m for m in models if name.startswith(plain_name(m["model_prefix"]))), {})
    if row["family"] == "hybrid-moe":
        raise Skip("hybrid of attention and state-space layers")
    layers = number(row, "layers") or number(known, "layers")
    hidden = number(row, "hidden") or number(known, "hidden")
    if min(layers or 0.0, hidden or 0.0) < 1.0:
        if row["family"] != "transformer":
            raise Skip("transformer dimensions not stated")
        layers, hidden = usual_dimensions(params)
    assert layers is not None and hidden is not None
    ffn = number(row, "ffn")
    gated = bool(ffn and abs(ffn - 4 * hidden) > 1)
    moe = number(known, "experts")
    if row["family"] == "transformer-moe" and not moe:
        raise Skip("experts not stated")
    heads = max(number(row, "heads") or number(known, "heads") or hidden / 128, 1.0)
    active = number(row, "params_active") or number(known, "active")
    kv_heads = number(row, "kv_heads") or number(known, "kv_heads")
    return ModelSpec(
        row["model_name"], kind, params, active_params=active if moe else None, layers=int(layers), hidden=int(hidden),
        heads=int(heads), kv_heads=whole(kv_heads), head_dim=whole(number(known, "head_dim")),
        ffn=whole(ffn), gated_mlp=gated or bool(moe), vocab=whole(number(row, "vocab") or number(known, "vocab")),
        tied_embeddings=known["tied"] == "1" if known else not gated,
        architecture=known.get("architecture") or "decoder",  # type: ignore[arg-type]
        experts=whole(moe), experts_per_token=whole(number(known, "experts_per_token")),
        shared_experts=whole(number(known, "shared_experts")) or 0, moe_ffn=whole(number(known, "moe_ffn")),
        attention_ratio=number(known, "attention_ratio") or 1.0,
    )  # fmt: skip


def usual_dimensions(params: float) -> tuple[float, float]:
    """Layers and width of a dense decoder of which only the size is known.

    Published decoders keep about 128 of width per layer (GPT-3 family, arXiv 2005.14165, table 2.1), with 12 width^2
    parameters in each.
    """
    hidden = max(round((params * 128.0 / 12.0) ** (1.0 / 3.0) / 128.0), 1) * 128.0
    return max(round(params / (12.0 * hidden * hidden)), 1.0), hidden


def _layout(
    row: dict[str, str], rule: dict[str, str], kind: ModelFamily, gpus: int
) -> tuple[dict[str, Any] | None, int]:
    """The row's layout (None to be searched) and global batch; what is missing follows the source's rule."""
    tp, pp, cp = (int(number(row, name) or 1) for name in ("tp", "pp", "cp"))
    if min(tp, pp, cp) < 1:
        raise ValueError("degrees of parallelism below 1")
    stated_dp = number(row, "dp")
    global_batch, micro = number(row, "global_batch"), number(row, "micro_batch")
    if kind is ModelFamily.TRANSFORMER and not row["tp"] and global_batch:
        return None, int(global_batch)
    dp = int(stated_dp or max(1, gpus // (tp * pp * cp)))
    # Tables that fold context parallelism into dp would otherwise use more accelerators than there are.
    dp = max(1, dp if dp * tp * pp * cp <= 2 * gpus else gpus // (tp * pp * cp))
    if micro and rule["batch_is_total"] == "1":
        micro = max(1.0, micro / dp)
    accumulation = number(row, "grad_accum") or float(rule["accumulation"] or 1)
    if not micro and global_batch:
        micro = max(1.0, global_batch / (dp * (number(row, "grad_accum") or 1)))
        micro = min(micro, 1.0) if pp > 1 else micro
    if not micro:
        micro = 0.0
    if not global_batch:
        global_batch = micro * dp * accumulation
    # What ran, where the table says otherwise.
    recompute = rule.get("ran_recompute") or row["activation_ckpt"]
    return {
        "tp": tp, "pp": pp, "cp": cp, "dp": dp, "zero": _zero(row["zero_stage"] or rule["zero"]), "micro_batch": micro,
        "accumulation": accumulation, "recompute": _recompute(recompute, rule["recompute"]),
        "sequence_parallel": "+sp" in row["activation_ckpt"] or (rule["attention"] == "flash" and tp > 1),
    }, int(global_batch)  # fmt: skip


def _zero(word: str) -> int:
    digits = re.sub(r"\D", "", word.split(".")[0])
    return int(digits) if digits else 0


def _recompute(word: str, default: str) -> int:
    known = {"none": 0, "selective": 1, "full": 2}
    first = re.split(r"[+/ ]", word)[0] if word else ""
    return known.get(first, known.get(default, 0))


# Cards that talk over PCI Express, by how their names begin.
_BRIDGED = ("RTX", "GTX", "Titan", "T4", "L4", "A10", "A30", "A40")


def read_networks() -> dict[str, dict[str, str]]:
    """Networks where rows do not state theirs, by accelerator or generation: of a node or of `accelerators`."""
    return {row["hardware"]: row for row in read_csv(DATA / "default_networks.csv")}


def hardware_of(
    row: dict[str, str],
    device: dict[str, Any],
    per_node: int,
    gpus: int,
    layout: dict[str, Any] | None,
    networks: dict[str, dict[str, str]],
) -> tuple[dict[str, Any], int]:
    """One hardware row in the planner's own columns; chips that frameworks see as two cores are split."""
    stated = (networks.get(str(device[of])) for of in ("accelerator", "generation"))
    default = next(filter(None, stated), networks[""])
    gbps = parse_gbps(row["interconnect"])
    if gbps is None:
        gbps = float(default["internode_gbps"]) * per_node / float(default["accelerators"] or per_node)
    # An A100 without a word on its form is the SXM module: its name only begins as an A10's does.
    bridged = "PCIe" in row["gpu"] or (row["gpu"].startswith(_BRIDGED) and not row["gpu"].startswith("A100"))
    has_link = device["link_gb_per_s"] == device["link_gb_per_s"] or device["generation"].startswith(
        ("tpu", "train")
    )
    cores = 1
    if layout and layout["tp"] * layout["pp"] * layout["cp"] * layout["dp"] == 2 * gpus:
        cores = 2
    share = {name: device[name] / cores for name in (*PEAK_COLUMN.values(), "memory_gb_per_s", "memory_gib",
                                                     "achievable_bf16_tflops")}  # fmt: skip
    intra = "single" if per_node * cores == 1 else ("nvswitch" if has_link and not bridged else "pcie")
    return {
        **{name: device[name] for name in ("accelerator", "generation", "vendor", "pcie_gen", "link_gb_per_s")},
        **share,
        "accelerator_count": float(per_node * cores), "accelerator_memory_gib": share["memory_gib"],
        "memory_gib": NAN, "vcpus": NAN, "intra_node": intra, "intra_node_gb_per_s": NAN,
        "internode_gbps": gbps, "link_domain_accelerators": number(default, "link_domain") or NAN,
        "rdma": "" if any(word in row["interconnect"] for word in HOST_STAGED) else default["rdma"],
        "trainable": "true",
    }, per_node  # fmt: skip


def parse_gbps(text: str) -> float | None:
    """Network speed of a node in Gb/s from a description such as `IB 8x400Gbps`, None when not told."""
    text = text.rsplit("|", 1)[-1]
    if "Compute:" in text:
        text = text.split("Compute:", 1)[1]
    for pattern in (
        r"(\d+)\s*x\s*(\d+)\s*G?bps?",
        r"(?:IB|EFA|RoCE)\s+(\d+)x(\d+)",
        r"(\d+)\s*x[^,;+]*?(\d{2,3})\s*G(?:b|B)",
    ):
        found = re.search(pattern, text, re.IGNORECASE)
        if found:
            return float(found[1]) * float(found[2])
    found = re.search(r"(\d{3,4})\s*Gbps", text)
    return float(found[1]) if found else None
