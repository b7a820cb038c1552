"""What chips reach of an engine's efficiency, and their peak at the precision of generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats, Table
from planner.performance.inference.engines import find_engine

if TYPE_CHECKING:
    from planner.performance.constants import Constants
    from planner.performance.post_training.spec import Engine, Requests, Tuning
    from planner.performance.spec import ModelSpec

# Bytes per weight with scales, and the columns of peaks that its arithmetic may use, best first. MXFP4 has a scale of 8
# bits for 32 weights (arXiv 2310.10537).
WEIGHT_BYTES = {
    "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.56, "fp4": 0.56, "mxfp4": 4.25 / 8.0,
}  # fmt: skip
# Of all but the routed experts of a model in MXFP4 (vLLM's notes on gpt-oss, August 2025: 63 and 14 GB in all).
_OTHERS_OF_MXFP4 = 2.0
# Weights in 8- and 4-bit floats are unpacked by kernels for chips with bf16 (docs.vllm.ai v0.14, supported hardware).
_PEAKS = {
    "fp8": ("fp8_tflops", "bf16_tflops"), "fp4": ("fp4_tflops", "fp8_tflops", "bf16_tflops"),
    "mxfp4": ("bf16_tflops",),
}  # fmt: skip
_HALF = ("bf16_tflops", "fp16_tflops")
# Software for AMD's chips reached far less before: their class in engines released before this year is another.
CHANGED_BY = 2025
_FACTORS = ("compute", "bandwidth", "step")
# Kernels of MXFP4 weights differ by engine, release and chip in releases before this year.
SETTLED = 2026
# Generations with arithmetic in 4-bit floats; not all of their cards state a peak.
_FOUR_BIT = ("blackwell", "cdna4")


def routed_params(model: ModelSpec) -> float:
    """Parameters in routed experts, from all and those of a token; 0 of dense models."""
    experts, used = float(model.experts or 0), float(model.experts_per_token or 0)
    fewer = model.params - (model.active_params or model.params)
    return fewer / (experts - used) * experts if experts > used else 0.0


def bytes_each(precision: str, routed: float) -> tuple[float, float]:
    """Bytes of a weight of routed experts, of which a model has so many, and of all others."""
    each = WEIGHT_BYTES[precision]
    return each, _OTHERS_OF_MXFP4 if precision == "mxfp4" and routed > 0 else each


def table_params(model: ModelSpec) -> float:
    """Parameters of the input's table and of the output layer of the vocabulary, which is another if not tied.

    They are no more than a model has beside its routed experts (sizes may be stated that contradict each other).
    """
    one = float(model.vocab or 0) * float(model.hidden or 0)
    tables = one if model.tied_embeddings or model.architecture != "decoder" else 2.0 * one
    return min(tables, max(model.params - routed_params(model), 0.0))


def table_bytes(engine: Engine) -> float:
    """Bytes of a parameter of those tables: the methods of most engines leave them in 16 bits."""
    quantised = find_engine(engine.name, engine.year).quantised_tables
    own = bytes_each(engine.precision, 1.0)[1]  # as all but the routed experts
    return own if quantised else max(2.0, own)


def stored_bytes(model: ModelSpec, engine: Engine) -> float:
    """Bytes of all weights of a model."""
    routed, tables = routed_params(model), table_params(model)
    of_experts, of_others = bytes_each(engine.precision, routed)
    others = model.params - routed - tables
    return routed * of_experts + others * of_others + tables * table_bytes(engine)


def chip_class(vendor: str, generation: str, year: int) -> str:
    """The class by which constants `chip.<class>.*` are named, in engines released in that year."""
    word = {"cdna2": "amd.cdna2", "gaudi2": "habana", "gaudi3": "habana"}.get(generation, vendor)
    return f"{word}.before_{CHANGED_BY}" if word == "amd" and year < CHANGED_BY else word


def serving_columns(hardware: Table, tuning: Tuning, c: Constants) -> dict[str, Floats]:
    """Columns of `Devices` for generation; NaN peaks and factors of 1 where nothing is generated."""
    engine = engine_of(tuning)
    size = hardware.n_rows
    if engine is None:
        none = {
            "serve_peak": np.full(size, np.nan),
            "step_tokens": np.zeros(size),
            "serve_unpack": np.ones(size),
        }
        return none | {f"serve_{name}": np.ones(size) for name in _FACTORS}
    peak = np.full(size, np.nan)
    for column in _PEAKS.get(engine.precision, _HALF):
        peak = np.where(np.isnan(peak), hardware.number(column) * 1e12, peak)
    year = engine.year or find_engine(engine.name, None).year
    classes = [
        chip_class(str(v), str(g), year)
        for v, g in zip(hardware["vendor"], hardware["generation"], strict=True)
    ]
    factors = {
        f"serve_{name}": np.asarray([c.get(f"chip.{word}.{name}", 1.0) for word in classes])
        for name in _FACTORS
    }
    fraction = np.minimum(hardware.number("accelerator_count"), 1.0)  # a part of a card is a slower card
    steps, unpack = _step_tokens(hardware, engine), _unpack(hardware, engine.precision, year, c)
    return {"serve_peak": peak * fraction, "step_tokens": steps, "serve_unpack": unpack, **factors}


def _unpack(hardware: Table, precision: str, year: int, c: Constants) -> Floats:
    """How many times slower MXFP4 weights are than their size and arithmetic say, on chips that unpack them."""
    slower = c["mxfp4.unpack.before_2026" if year < SETTLED else "mxfp4.unpack"]
    unpacks = np.asarray([str(generation) not in _FOUR_BIT for generation in hardware["generation"]])
    result: Floats = np.where(unpacks & (precision == "mxfp4"), slower, 1.0)
    return result


def _step_tokens(hardware: Table, engine: Engine) -> Floats:
    """Most tokens of prompts in a step that also writes answers, by the card's memory.

    The A100 counts as small, as in vLLM, and the A800 with it, which is the same chip but which vLLM does not name.
    """
    row = find_engine(engine.name, engine.year)
    ampere = np.asarray([str(generation) == "ampere" for generation in hardware["generation"]])
    large = (hardware.number("accelerator_memory_gib") >= row.large_gib) & ~ampere
    result: Floats = np.where(large, row.step_tokens, row.small_step_tokens)
    return result


def may_use_fp16(requests: Requests | None) -> bool:
    """Whether what is answered runs in fp16 on a chip without bf16: 16 bits, and int4 that is unpacked to them."""
    return requests is not None and requests.engine.precision in ("bf16", "fp16", "int4")


def engine_of(tuning: Tuning) -> Engine | None:
    """The engine of a job that generates, else None."""
    return None if tuning.generates is None else tuning.generates.engine
