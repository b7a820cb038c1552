"""From a model, an engine and devices to the cases of `planner.performance.inference.rates`."""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.inference.beyond import beyond_measured
from planner.performance.inference.chips import (
    SETTLED,
    bytes_each,
    routed_params,
    table_bytes,
    table_params,
)
from planner.performance.inference.engines import EngineRow, find_engine
from planner.performance.inference.rates import Cases, Efficiency
from planner.performance.kernels import score_ratio
from planner.performance.memory_risk import usable_gib
from planner.performance.post_training.spec import Engine
from planner.performance.spec import ModelSpec

GIB = 1024.0**3
_KEY_BYTES = {"bf16": 2.0, "fp8": 1.0}
# vLLM has CUDA graphs since December 2023 (pull request 1926): figures of 2023 hold launches as well.
GRAPHS_SINCE = 2024


def build_cases(
    model: ModelSpec,
    engine: Engine,
    devices: Devices,
    *,
    prompt: float,
    answer: float,
    running: Floats,
    tp: Floats,
    c: Constants,
) -> Cases:
    """One case per device row.

    Args:
        model: sizes of a transformer.
        engine: precision of weights, keys and values.
        devices: one row per case.
        prompt: tokens of a request.
        answer: tokens of its answer.
        running: requests at once on a replica.
        tp: accelerators of a replica.
        c: constants.
    """
    assert model.layers is not None and model.hidden is not None
    heads = float(model.heads or max(1, model.hidden // 64))
    head = float(model.head_dim or model.hidden / heads)
    width = float(model.kv_width or 2.0 * (model.kv_heads or heads) * head)
    params, active = float(model.params), float(model.active_params or model.params)
    experts, used = float(model.experts or 0), float(model.experts_per_token or 0)
    routed = routed_params(model)
    of_experts, of_others = bytes_each(engine.precision, routed)
    shape = devices.count.shape
    values = {
        "params": params, "active": active, "routed": routed, "layers": model.layers, "hidden": model.hidden,
        "experts": experts, "per_token": used,
        "key_value_bytes": model.layers * width * _KEY_BYTES[engine.kv_precision],
        "weight_bytes": of_others, "expert_bytes": of_experts, "tables": table_params(model),
        "table_bytes": table_bytes(engine),
        "prompt": prompt, "answer": answer, "pp": 1.0,
        "attends": score_ratio(model, prompt) * heads * head / model.hidden,
        "window": float(model.attention_window or np.inf), "windowed": _windowed_share(model),
    }  # fmt: skip
    columns = {name: np.full(shape, float(value)) for name, value in values.items()}
    # a group larger than the key/value heads keeps copies of them
    columns["key_value_bytes"] = columns["key_value_bytes"] * np.maximum(tp / (model.kv_heads or heads), 1.0)
    # a group larger than a node adds up over the network, of which each accelerator has its share
    across = np.fmin(devices.node_rate / devices.count, devices.intra_rate)
    memory = usable_gib(devices.memory_gib, devices.memory_rate, c) * GIB
    return Cases(
        **columns,
        running=running,
        tp=tp,
        peak=devices.serve_peak,
        memory_rate=devices.memory_rate,
        memory=memory,
        link_rate=np.where(tp > devices.count, across, devices.intra_rate),
    )


def _windowed_share(model: ModelSpec) -> float:
    """Share of the layers that keep the tokens of a window alone."""
    if model.attention_window is None or not model.layers:
        return 0.0
    return 1.0 if model.windowed_layers is None else model.windowed_layers / model.layers


def efficiency(engine: Engine, devices: Devices, c: Constants) -> Efficiency:
    """What the engine reaches on each device row."""
    row = find_engine(engine.name, engine.year)
    most = float(engine.most_running or row.most_running)
    return Efficiency(
        np.minimum(row.compute * devices.serve_compute / devices.serve_unpack, 0.95),
        np.minimum(row.bandwidth * devices.serve_bandwidth / devices.serve_unpack, 0.98),
        row.step_s * devices.serve_step,
        c["decode.layer_s"],
        c["decode.expert_layer_s"],
        c["decode.tensor_loss"],
        np.full(devices.count.shape, most),
        c["decode.layers_power"],
        c["decode.link_ratio"],
        row.sequence_s,
        c["decode.eager_layer_s"] * devices.host_pace if _launches(engine, row) else 0.0,
        devices.step_tokens,
    )


def _launches(engine: Engine, row: EngineRow) -> bool:
    """Whether launches take longer than in the engine's figures: eager mode of a release that has CUDA graphs."""
    return not engine.graphs and row.year >= GRAPHS_SINCE


def rate_spread(
    engine: Engine, devices: Devices, c: Constants, base: float | None = None, ratio: float = 0.0
) -> Floats:
    """Half width in log of the 80 % interval of an engine's rate on each device row, wider on chips of few rows.

    Prompts that are longer for their answers than measured ones widen it as much as a chip that was not measured.

    Args:
        engine: what answers.
        devices: one row per case.
        c: constants.
        base: width on the chips that most rows measured; that of the engine (data/engines.csv) by default, or more for
            MXFP4 in releases before `SETTLED` and in eager mode.
        ratio: `prompt_ratio` of what is asked.
    """
    if base is None:
        row = find_engine(engine.name, engine.year)
        base = row.spread
        if engine.precision == "mxfp4" and row.year < SETTLED:
            base = max(base, c["mxfp4.spread"])
        if _launches(engine, row):
            base = float(np.hypot(base, c["decode.eager_spread"]))
    unlike = np.where(devices.serve_compute == 1.0, 0.0, c["items.spread"] / 2.0)
    beyond = beyond_measured(engine, ratio) * c["items.spread"] / 2.0
    result: Floats = np.hypot(np.hypot(base, beyond), unlike)
    return result
