"""Random jobs and machines for the tests of the layout search."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from planner.performance.spec import LayoutPin, ModelFamily, ModelSpec, TrainingSpec
from tests.planner.performance.test_performance import A100

NAN = math.nan


@st.composite
def models(draw: st.DrawFn, *, experts: bool = True) -> ModelSpec:
    """A transformer of a plausible shape, dense or with experts."""
    heads = draw(st.sampled_from([8, 12, 16, 25, 40, 64]))
    layers = draw(st.sampled_from([6, 12, 20, 24, 31, 80]))
    hidden = heads * draw(st.sampled_from([64, 128]))
    kv = draw(st.sampled_from([k for k in (1, 2, 4, 8, heads) if heads % k == 0]))
    count = draw(st.sampled_from([None, None, 8, 60])) if experts else None
    dense = layers * 12.0 * hidden * hidden
    return ModelSpec(
        "random", ModelFamily.TRANSFORMER, dense * (4.0 if count else 1.0),
        active_params=dense * 1.2 if count else None,
        layers=layers, hidden=hidden, heads=heads, kv_heads=kv, vocab=draw(st.sampled_from([32000, 128256])),
        gated_mlp=draw(st.booleans()), experts=count, experts_per_token=2 if count else None,
        moe_ffn=hidden if count else None,
    )  # fmt: skip


@st.composite
def trainings(draw: st.DrawFn) -> TrainingSpec:
    """A batch, sequence, precision, stack and sometimes a pin."""
    pin = draw(
        st.sampled_from(
            [LayoutPin()] * 4
            + [LayoutPin(tensor_parallel=2), LayoutPin(recompute="full"), LayoutPin(zero_stage=3)]
            + [LayoutPin(pipeline_parallel=2, micro_batch=1), LayoutPin(sequence_parallel=False)]
        )
    )
    return TrainingSpec(
        draw(st.sampled_from([16, 96, 480, 1024])), draw(st.sampled_from([512, 4096, 32768])),
        draw(st.sampled_from(["bf16", "fp16", "fp32"])), stack=draw(st.sampled_from(["eager", "compiled", "tuned"])),
        lora_rank=draw(st.sampled_from([None, None, 16])), layout=pin,
    )  # fmt: skip


@st.composite
def machine_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A machine of 1 to 72 accelerators, fast or slow inside and outside; some networks are unknown."""
    link = draw(st.sampled_from([("nvswitch", 600.0), ("nvlink", 300.0), ("pcie", NAN)]))
    return {
        **A100, "accelerator_count": draw(st.sampled_from([1.0, 2.0, 4.0, 6.0, 8.0, 16.0, 72.0])),
        "accelerator_memory_gib": draw(st.sampled_from([16.0, 40.0, 80.0, 192.0])), "intra_node": link[0],
        "intra_node_gb_per_s": link[1], "link_gb_per_s": link[1],
        "link_domain_accelerators": draw(st.sampled_from([NAN, NAN, 72.0])),
        "internode_gbps": draw(st.sampled_from([NAN, 10.0, 100.0, 3200.0])),
        "rdma": draw(st.sampled_from(["", "efa"])), "bf16_tflops": draw(st.sampled_from([65.0, 312.0, 989.0])),
        "memory_gb_per_s": draw(st.sampled_from([300.0, 2039.0, 8000.0])),
    }  # fmt: skip
