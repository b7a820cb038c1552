"""Measured inference rows as cases of the planner's inference model.

Chips and models that the planner's tables lack have their sizes in `benchmarks/data/inference_accelerators.csv` and
`benchmarks/data/inference_models.csv` (vendor figures and model cards).

MLPerf v4.1 rows of TensorRT-LLM say fp16 of their weights, but Llama-2-70B (140 GB) ran on one GH200 of 96 GB; v5.1,
with the same engine and accelerators, says fp8 on Hopper and Ada and fp4 on Blackwell, and v4.1 is read so.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.rows import number, plain_name, read_csv
from catalogs.tables.table import Bools
from planner.performance.inference.chips import chip_class
from planner.performance.inference.engines import find_engine
from planner.performance.inference.rates import Cases, read_bytes, room
from planner.records import record

DATA = Path(__file__).parent / "data"
ANSWERING = ("dense llm batched", "dense llm single stream", "moe llm", "llm prefill only")
# Of systems that do not state their parallelism: the fewest accelerators whose memory the weights fill by this much.
FILLED = 0.75
_WEIGHTS = {"fp16": 2.0, "bf16": 2.0, "": 2.0, "fp8": 1.0, "int8": 1.0, "int8_sq": 1.0, "fp4": 0.56,
            "mxfp4": 4.25 / 8.0, "int4": 0.56, "int4 gptq": 0.56, "q4_k_m": 0.6, "fp32": 4.0}  # fmt: skip
_ENGINES = {
    "vllm": "vllm", "tensorrt-llm": "tensorrt_llm", "sglang": "sglang", "llama.cpp": "llama.cpp",
    "deepspeed": "deepspeed", "deepspeed-mii": "deepspeed_mii", "fastertransformer": "fastertransformer",
    "transformers neuronx": "neuronx", "optimum-habana": "optimum_habana", "sambaflow": "sambaflow",
    "gpt-fast (torch.compile)": "gpt_fast", "exllamav2": "exllama", "exllama": "exllama",
    "lmdeploy turbomind": "lmdeploy", "mlc-llm": "mlc_llm",
}  # fmt: skip
# Where a chip's link is not known, Gbytes/s: PCI Express of the fourth generation.
UNSTATED_LINK = 31.5
# MLPerf v4.1: names of accelerators by the precision that v5.1 states for them.
_SUBMITTED = ((("B200", "GB200"), "fp4"), (("H100", "H200", "GH200", "L40S"), "fp8"))
# Faster than the chip's full rates allow by more than this: answers ended before their stated length.
IMPOSSIBLE = 1.25
_CHIPS = (
    (("MI2",), "amd.cdna2"), (("MI", "RX"), "amd"), (("PVC", "Arc"), "intel"), (("Gaudi",), "habana"),
    (("Inferentia", "Trainium"), "aws"), (("Apple",), "apple"), (("TPU",), "google"), (("SN40",), "sambanova"),
)  # fmt: skip


@record(frozen=True)
class Measured:
    """One row beside its case: engine and year, class of chip, replicas, rate per replica in tokens/s."""

    key: str
    kind: str
    group: str
    source: str
    engine: str
    year: int
    chip: str
    scenario: str
    rate: float
    ttft_s: float
    tpot_s: float


@cache
def _table(name: str) -> dict[str, dict[str, str]]:
    rows = read_csv(DATA / name)
    return {plain_name(row[next(iter(row))]): row for row in rows}


def engine_of(row: dict[str, str]) -> tuple[str, int]:
    """Engine and year of its release; MLPerf's submissions are classes of their own, tuned by their vendors."""
    name, year = row["engine"], int(row["date"][:4] or 2025)
    if row["source"].startswith("mlcommons"):
        other = any(word in name for word in ("vLLM", "SGLang", "Mango"))
        return ("vllm_mlperf" if other else "tensorrt_llm_mlperf"), year
    if row["source"].startswith("SemiAnalysis"):
        return "vllm_long_prompts", year
    return _ENGINES.get(name.lower(), "other"), year


def chip_of(accelerator: str, year: int) -> str:
    """Class of chip in engines of that year, as constants name it; empty for NVIDIA."""
    word = next((word for starts, word in _CHIPS if accelerator.startswith(starts)), "")
    return chip_class(word, "", year)


def precision_of(row: dict[str, str]) -> list[str]:
    """Precision of weights, and of keys and values where stated."""
    words = [word.strip() for word in row["precision"].split("/")]
    if row["engine"] == "TensorRT-LLM" and words == ["fp16"] and "inference_results_v4.1@" in row["source"]:
        return [next((word for starts, word in _SUBMITTED if row["accelerator"].startswith(starts)), "fp16")]
    return words


def possible(cases: Cases, rows: list[Measured]) -> Bools:
    """Rows that do not beat the full rates of memory and arithmetic, with each weight of a token read once per step."""
    number = np.clip(np.minimum(cases.running, room(cases)), 1.0, 2048.0)
    chips = cases.tp * cases.pp
    work = 2.0 * cases.active / (chips * cases.peak)
    reads = read_bytes(cases, np.ones(1)) / (np.where(number > 1, chips, cases.tp) * cases.memory_rate)
    answer = cases.answer * np.maximum(reads, number * work)
    tokens = np.where(cases.answer > 0, cases.answer, cases.prompt)
    most = number * tokens / (number * cases.prompt * work + answer)
    result: Bools = np.asarray([row.rate for row in rows]) <= IMPOSSIBLE * most
    return result


def _weight_bytes(word: str) -> float:
    bits = re.match(r"([\d.]+)bpw", word)
    return float(bits[1]) / 8.0 if bits else _WEIGHTS.get(word, 2.0)


def _peak(word: str, chip: dict[str, str]) -> float:
    half = float(chip["dense_fp16_tflops"])
    eight = float(chip["dense_8bit_tops"] or 0.0) or half
    if word in ("fp8", "int8_sq"):
        return eight * 1e12
    if word == "fp4":
        return (float(chip["dense_4bit_tops"] or 0.0) or eight) * 1e12
    return (half / 2.0 if word == "fp32" else half) * 1e12


def load_cases(path: Path) -> tuple[Cases, list[Measured], Counter[str]]:
    """All language-model rows of a file as cases of one replica, and why others are left out."""
    columns: dict[str, list[float]] = {}
    rows, left_out = [], Counter[str]()
    for row in read_csv(path):
        if row["class"] not in ANSWERING:
            left_out[f"class {row['class']}"] += 1
            continue
        made = _case(row)
        if isinstance(made, str):
            left_out[made] += 1
            continue
        values, measured = made
        for name, value in values.items():
            columns.setdefault(name, []).append(value)
        rows.append(measured)
    return Cases(**{name: np.asarray(values) for name, values in columns.items()}), rows, left_out


def _case(row: dict[str, str]) -> tuple[dict[str, float], Measured] | str:
    model, chip = (
        _table("inference_models.csv").get(plain_name(row["model"])),
        _table("inference_accelerators.csv").get(plain_name(row["accelerator"])),
    )
    if model is None or chip is None:
        return f"sizes of {row['model'] if model is None else row['accelerator']} unknown"
    if row["confidence"] == "low":
        return "low confidence"
    row = {**row, "accelerator": chip["accelerator"]}  # as the table writes it
    prompt, answer = number(row, "input_tokens"), number(row, "output_tokens")
    rate = number(row, "tokens_per_s_total" if answer == 0 else "output_tokens_per_s")
    if not rate:
        return "no rate"
    words = precision_of(row)
    params, active = float(model["params"]), float(model["active_params"])
    experts, used = float(model["experts"]), float(model["experts_per_token"])
    routed = (params - active) / (experts - used) * experts if experts else 0.0
    table = float(model["vocab"]) * float(model["hidden"])
    tied = model["tied"] == "1"
    weight, total = _weight_bytes(words[0]), number(row, "accelerators") or 1.0
    tp, pp = _parallel(row, total, params * weight, float(chip["memory_gb"]) * 1e9)
    single = row["scenario"] == "single stream"
    replicas = 1.0 if single else max(1.0, total / (tp * pp))
    at_once = number(row, "concurrency")
    running = 1.0 if single else max(at_once / replicas, 1.0) if at_once else math.inf
    cached = float(model["mla_cache_dim"]) * float(model["layers"])
    cached = cached or 2.0 * float(model["attention_layers"]) * float(model["kv_heads"]) * float(
        model["head_dim"]
    )
    copies = max(1.0, tp / (float(model["kv_heads"]) or tp))
    engine, year = engine_of(row)
    in_bits = find_engine(engine, year).quantised_tables
    values = {
        "params": params, "active": active, "routed": routed,
        "layers": float(model["layers"]), "hidden": float(model["hidden"]), "attends": 1.0,
        "window": math.inf, "windowed": 0.0,
        "experts": experts, "per_token": used,
        "key_value_bytes": copies * cached * (1.0 if words[-1] in ("fp8", "int8") and len(words) > 1 else 2.0),
        "weight_bytes": 2.0 if words[0] == "mxfp4" and routed else weight, "expert_bytes": weight,
        "tables": table * (1.0 if tied else 2.0),
        "table_bytes": weight if in_bits else max(weight, 2.0), "prompt": 1024.0 if prompt is None else prompt,
        "answer": 512.0 if answer is None else answer, "running": running, "tp": tp, "pp": pp,
        "peak": _peak(words[0], chip), "memory_rate": float(chip["memory_gb_s"]) * 1e9,
        "memory": float(chip["memory_gb"]) * 1e9, "link_rate": float(chip["link_gb_s"] or UNSTATED_LINK) * 1e9,
    }  # fmt: skip
    return values, Measured(
        row["id"], row["class"], row["group"], row["source"].split("@")[0], engine, year,
        chip_of(row["accelerator"], year), row["scenario"], rate / replicas,
        number(row, "ttft_s") or math.nan, number(row, "tpot_s") or math.nan,
    )  # fmt: skip


def _parallel(row: dict[str, str], total: float, weights: float, memory: float) -> tuple[float, float]:
    tp, pp = number(row, "tensor_parallel"), number(row, "pipeline_parallel") or 1.0
    if row["engine"] == "Transformers NeuronX":  # its degrees count cores, two to a chip
        return total, 1.0
    if tp is None:
        tp = 1.0
        while pp <= 1 and tp * 2 <= total and weights > FILLED * tp * memory:
            tp *= 2
    return (tp, pp) if tp * pp <= total else (max(1.0, total / pp), pp)
