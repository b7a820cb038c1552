"""Published facts beside our prediction: `python -m benchmarks.sanity [--out docs/sanity.md]`.

Each fact is one a reader can look up; no constant is tuned to this table.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.table import Table
from planner.performance.post_training.spec import Tuning
from planner.performance.search import estimate_shapes
from planner.performance.spec import LayoutPin, ModelFamily, ModelSpec, TrainingSpec

NAN = float("nan")
GPT3 = ModelSpec(
    "gpt-3-175b", ModelFamily.TRANSFORMER, 175e9, layers=96, hidden=12288, heads=96, ffn=49152, vocab=50257,
    tied_embeddings=True,
)  # fmt: skip
BERT_LARGE = ModelSpec(
    "bert-large", ModelFamily.TRANSFORMER, 335e6, layers=24, hidden=1024, heads=16, ffn=4096, vocab=30522,
    tied_embeddings=True, architecture="encoder",
)  # fmt: skip
LLAMA2_70B = ModelSpec(
    "llama-2-70b", ModelFamily.TRANSFORMER, 69e9, layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocab=32000,
    gated_mlp=True,
)  # fmt: skip
LLAMA2_7B = ModelSpec(
    "llama-2-7b", ModelFamily.TRANSFORMER, 6.74e9, layers=32, hidden=4096, heads=32, ffn=11008, vocab=32000,
    gated_mlp=True,
)  # fmt: skip
RESNET_50 = ModelSpec(
    "resnet-50", ModelFamily.CNN, 25.6e6, forward_flops_per_sample=8.22e9, activations_per_sample=11.11e6
)


@dataclass(frozen=True)
class Fact:
    """A published figure, the range we accept, and ours."""

    name: str
    published: str
    accepted: tuple[float, float]
    ours: float
    low: float
    high: float
    unit: str
    source: str

    @property
    def holds(self) -> bool:
        """True when our figure lies in the accepted range."""
        return self.accepted[0] <= self.ours <= self.accepted[1]


def hardware(accelerator: str, count: int, internode_gbps: float, intra_node: str = "nvswitch") -> Table:
    """One hardware row of the planner from the accelerator table."""
    row = next(row for row in load_accelerators().rows() if row["accelerator"] == accelerator)
    names = ("generation", "vendor", "memory_gb_per_s", "fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops",
             "fp8_tflops", "achievable_bf16_tflops", "link_gb_per_s", "pcie_gen", "trainable")  # fmt: skip
    values: dict[str, Any] = {name: row[name] for name in names}
    values |= {
        "accelerator_count": float(count), "accelerator_memory_gib": float(row["memory_gib"]), "memory_gib": 1024.0,
        "vcpus": 96.0, "intra_node": intra_node if count > 1 else "single", "intra_node_gb_per_s": NAN,
        "internode_gbps": internode_gbps, "rdma": "infiniband", "local_nvme_gib": NAN,
    }  # fmt: skip
    return Table({name: [value] for name, value in values.items()})


def facts() -> list[Fact]:
    """All facts, computed now with the bundled constants."""
    llama2 = _llama2(LLAMA2_70B, 1_720_320), _llama2(LLAMA2_7B, 184_320)
    return [_gpt3(), _bert_scaling(), *llama2, _lora(), *_resnet()]


def _best(model: ModelSpec, training: TrainingSpec, machine: Table, nodes: int) -> dict[str, Any]:
    return estimate_shapes(model, training, machine, [nodes]).row(0)


def _gpt3() -> Fact:
    """Megatron-LM SC'21: 300 B tokens on 1,024 A100-80 take about 34 days at 140 TFLOP/s each."""
    pin = LayoutPin(tensor_parallel=8, pipeline_parallel=8, recompute="full")
    training = TrainingSpec(1536, 2048, "bf16", layout=pin, attention="materialised")
    row = _best(GPT3, training, hardware("a100-80gb-sxm", 8, 1600.0), 128)
    days = 300e9 / 2048 / 1536 / 86400
    return Fact(
        "GPT-3 175B, 300 B tokens, 1,024 A100-80, tp 8, pp 8, full recompute", "34 days", (28.0, 40.0),
        days * row["step_time_s"], days * row["step_time_low_s"], days * row["step_time_high_s"], "days",
        "Megatron-LM SC'21, arXiv 2104.04473, section 5.1",
    )  # fmt: skip


def _bert_scaling() -> Fact:
    """NVIDIA's BERT training example scales about seven-fold from 1 to 8 A100 with accumulation per update."""
    training = TrainingSpec(
        256, 512, "fp16", attention="materialised", stack="eager", layout=LayoutPin(micro_batch=32)
    )
    one = _best(BERT_LARGE, training, hardware("a100-80gb-sxm", 1, 1600.0), 1)
    eight = _best(BERT_LARGE, training, hardware("a100-80gb-sxm", 8, 1600.0), 1)
    ratio = eight["samples_per_s"] / one["samples_per_s"]
    return Fact(
        "BERT-large, 8 against 1 A100-80, batch 256", "about 7 x", (6.0, 8.0), ratio, ratio, ratio, "x",
        "NVIDIA DeepLearningExamples, BERT for PyTorch, training performance",
    )  # fmt: skip


def _llama2(model: ModelSpec, hours: float) -> Fact:
    training = TrainingSpec(1024, 4096, "bf16")
    row = _best(model, training, hardware("a100-80gb-sxm", 8, 1600.0), 32)
    per_step = 256 / 3600.0
    steps = 2e12 / 4096 / 1024
    return Fact(
        f"{model.name}, 2 T tokens, accelerator-hours of A100-80", f"{hours:,} h", (0.6 * hours, 1.25 * hours),
        steps * per_step * row["step_time_s"], steps * per_step * row["step_time_low_s"],
        steps * per_step * row["step_time_high_s"], "h",
        "Llama 2 paper, arXiv 2307.09288, table 2 (includes stops and restarts)",
    )  # fmt: skip


def _lora() -> Fact:
    """MLPerf's reference of LoRA: eager code, ZeRO-3, full recompute, a sequence of 8,192 tokens per accelerator."""
    pin = LayoutPin(
        tensor_parallel=1,
        pipeline_parallel=1,
        context_parallel=1,
        zero_stage=3,
        micro_batch=1,
        recompute="full",
    )
    training = TrainingSpec(
        8, 8192, "bf16", lora_rank=16, stack="eager", attention="flash", layout=pin,
        tuning=Tuning(objective="sft", adapter="lora", targets=("qkv_proj", "o_proj")),
    )  # fmt: skip
    row = _best(LLAMA2_70B, training, hardware("a100-80gb-sxm", 8, 1600.0), 1)
    return Fact(
        "llama-2-70b, LoRA of 8 x 8,192 tokens on 8 A100-80, ZeRO-3, full recompute", "19.65 s a step", (15.7, 24.6),
        row["step_time_s"], row["step_time_low_s"], row["step_time_high_s"], "s",
        "MLPerf Training's reference, log of mlcommons/training@52b7253 llama2_70b_lora/convergence_example.txt",
    )  # fmt: skip


def _resnet() -> list[Fact]:
    out = []
    base = TrainingSpec(256, 1, "fp16", optimizer="sgd", layout=LayoutPin(micro_batch=256))
    for stack, published in (("eager", 1582.0), ("tuned", 3411.0)):
        training = replace(base, stack=stack)  # type: ignore[arg-type]
        row = _best(RESNET_50, training, hardware("a100-80gb-sxm", 1, 1600.0), 1)
        rate = row["samples_per_s"]
        out.append(
            Fact(
                f"ResNet-50, 1 A100-80, mixed precision, {stack} stack",
                f"{published:,.0f} images/s",
                (0.7 * published, 1.4 * published),
                rate,
                256 / row["step_time_high_s"],
                256 / row["step_time_low_s"],
                "images/s",
                "NVIDIA NGC and Lambda training benchmarks (eager AMP; MXNet)",
            )
        )
    return out


def render() -> str:
    """The table as Markdown."""
    lines = [
        "# Published facts beside our prediction",
        "",
        "Generated by `python -m benchmarks.sanity --out docs/sanity.md`; a test checks that it is current.",
        "",
        "| fact | published | ours | 80 % interval | accepted | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for fact in facts():
        digits = 0 if fact.ours >= 100 else 1
        ours, low, high = (f"{value:,.{digits}f}" for value in (fact.ours, fact.low, fact.high))
        accepted = f"{fact.accepted[0]:,.{digits}f} to {fact.accepted[1]:,.{digits}f}"
        verdict = "yes" if fact.holds else "NO"
        lines.append(
            f"| {fact.name} | {fact.published} | {ours} {fact.unit} | {low} to {high} | {verdict}: {accepted} | "
            f"{fact.source} |"
        )
    from benchmarks import sanity_plans

    return "\n".join([*lines, "", *sanity_plans.render()]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    text = render()
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    from benchmarks import sanity_plans

    return 0 if all(item.holds for item in (*facts(), *sanity_plans.checks())) else 1


if __name__ == "__main__":
    raise SystemExit(main())
