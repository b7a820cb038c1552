"""Laws of the performance model that hold whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.performance.layouts import explicit
from planner.performance.search import estimate_layouts, estimate_shapes
from planner.performance.spec import LayoutPin, ModelFamily, ModelSpec, TrainingSpec
from tests.draws import draws
from tests.planner.performance.test_performance import A100, LLAMA_70B, RESNET, SMALL, best, machines

RATES = ("fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops", "achievable_bf16_tflops")
MODELS = st.sampled_from([SMALL, LLAMA_70B, RESNET])
FACTORS = st.floats(1.0, 4.0)
QUICK = draws(40)
MOE = ModelSpec(
    "moe", ModelFamily.TRANSFORMER, 46.7e9, active_params=12.9e9, layers=32, hidden=4096, heads=32, kv_heads=8,
    vocab=32000, gated_mlp=True, experts=8, experts_per_token=2, moe_ffn=14336,
)  # fmt: skip


def _training(model: ModelSpec, batch: int = 512, **more: Any) -> TrainingSpec:
    return TrainingSpec(batch, 1 if model is RESNET else 2048, "bf16", **more)


@QUICK
@given(
    model=MODELS, nodes=st.sampled_from([1, 4, 16, 32]), factor=FACTORS,
    which=st.sampled_from(["peak", "memory_gb_per_s", "internode_gbps", "intra_node_gb_per_s"]),
)  # fmt: skip
def test_a_faster_part_never_slows_the_step(model: ModelSpec, nodes: int, factor: float, which: str) -> None:
    names = RATES if which == "peak" else (which,)
    faster = {**A100, **{name: float(str(A100[name])) * factor for name in names}}
    slow, fast = best(model, _training(model), A100, nodes), best(model, _training(model), faster, nodes)
    if slow["fits"]:
        assert fast["step_time_s"] <= slow["step_time_s"] * (1 + 1e-9)


@QUICK
@given(model=MODELS, nodes=st.sampled_from([1, 2, 8, 32]), stack=st.sampled_from(["eager", "compiled", "tuned"]),
       peak=st.floats(1.0, 3000.0), bandwidth=st.floats(100.0, 1e6))  # fmt: skip
def test_never_above_the_roofline(
    model: ModelSpec, nodes: int, stack: str, peak: float, bandwidth: float
) -> None:
    machine = {**A100, "bf16_tflops": peak, "fp16_tflops": peak, "achievable_bf16_tflops": peak,
               "memory_gb_per_s": bandwidth}  # fmt: skip
    row = best(model, _training(model, stack=stack), machine, nodes)
    if row["fits"]:
        assert 0.0 < row["mfu"] <= 1.0 + 1e-9
        assert row["step_time_low_s"] <= row["step_time_s"] <= row["step_time_high_s"]
        flops = (
            row["samples_per_s"]
            * row["step_time_s"]
            / row["step_time_low_s"]
            * row["mfu"]
            / row["samples_per_s"]
        )
        assert flops <= 1.0 + 1e-9


@QUICK
@given(
    model=st.sampled_from([SMALL, LLAMA_70B, MOE]), tp=st.sampled_from([1, 2, 8]), pp=st.sampled_from([1, 2, 4]),
    micro=st.sampled_from([1, 2, 4]), zero=st.sampled_from([0, 1, 3]), level=st.sampled_from([0, 1, 2]),
    nodes=st.sampled_from([4, 8, 16]), factor=st.sampled_from([2, 4]),
)  # fmt: skip
def test_more_nodes_never_reduce_headroom_at_one_layout(
    model: ModelSpec, tp: int, pp: int, micro: int, zero: int, level: int, nodes: int, factor: int
) -> None:
    training = _training(model, batch=4096)
    same = {"tp": tp, "pp": pp, "zero": zero, "micro_batch": micro, "recompute": level}
    rows = [{**same, "nodes": nodes}, {**same, "nodes": nodes * factor}]
    layout = explicit(8, training, model.layers or 1, model.experts or 1, rows)
    need = estimate_layouts(model, training, machines(A100), layout)["memory_needed_gib"]
    assert need[1] <= need[0] * (1 + 1e-12)


@QUICK
@given(
    model=st.sampled_from([SMALL, LLAMA_70B, MOE]), level=st.sampled_from([0, 1, 2]), micro=st.sampled_from([1, 2]),
    nodes=st.sampled_from([4, 16]),
)  # fmt: skip
def test_memory_falls_with_tensor_parallel_zero_and_recompute(
    model: ModelSpec, level: int, micro: int, nodes: int
) -> None:
    training = _training(model, batch=4096)

    def need(**change: int) -> float:
        row = {"nodes": nodes, "micro_batch": micro, "recompute": level, **change}
        layout = explicit(8, training, model.layers or 1, model.experts or 1, [row])
        return float(estimate_layouts(model, training, machines(A100), layout)["memory_needed_gib"][0])

    assert need(tp=1, zero=0) > need(tp=1, zero=1) > need(tp=1, zero=3)
    assert need(tp=1) > need(tp=2) > need(tp=4) > need(tp=8)
    assert need(recompute=0) >= need(recompute=1) >= need(recompute=2)
    # A pipeline keeps as many micro-batches in flight as it has stages: states shrink, activations do not.
    assert need(pp=1, recompute=2) > need(pp=2, recompute=2)


@QUICK
@given(order=st.permutations(range(5)), nodes=st.sampled_from([1, 8]))
def test_equal_rows_give_equal_output_whatever_the_batch(order: list[int], nodes: int) -> None:
    rows = [{**A100, "internode_gbps": gbps} for gbps in (100.0, 400.0, 1600.0, 100.0, 3200.0)]
    training = _training(SMALL)
    whole = estimate_shapes(SMALL, training, machines(*(rows[k] for k in order)), [nodes])
    for position, k in enumerate(order):
        alone = best(SMALL, training, rows[k], nodes)
        assert whole["step_time_s"][position] == alone["step_time_s"]
        assert whole["tp"][position] == alone["tp"]


@QUICK
@given(nodes=st.sampled_from([1, 2, 4, 16]), batch=st.sampled_from([256, 512]))
def test_a_pinned_layout_is_never_faster_than_the_search(nodes: int, batch: int) -> None:
    free = best(SMALL, _training(SMALL, batch), A100, nodes)
    pinned = best(SMALL, _training(SMALL, batch, layout=LayoutPin(tensor_parallel=2)), A100, nodes)
    assert free["step_time_s"] <= pinned["step_time_s"] * (1 + 1e-12)


@QUICK
@given(micro_batches=st.sampled_from([8, 16, 32, 64]), pp=st.sampled_from([2, 4, 8]))
def test_more_micro_batches_shrink_the_bubble_share(micro_batches: int, pp: int) -> None:
    dp = 8 // pp

    def share(number: int) -> float:
        training = _training(SMALL, batch=number * dp)
        layout = explicit(8, training, 24, 1, [{"pp": pp}])
        row = estimate_layouts(SMALL, training, machines(A100), layout).row(0)
        return float(row["bubble_s"] / row["step_time_s"])

    assert share(2 * micro_batches) < share(micro_batches)


@QUICK
@given(
    model=MODELS,
    nodes=st.sampled_from([8, 16]),
    generation=st.sampled_from(["ampere", "hopper", "volta", "new"]),
)
def test_a_leaner_stack_is_never_much_slower(model: ModelSpec, nodes: int, generation: str) -> None:
    machine = {**A100, "generation": generation}
    rates = [
        best(model, replace(_training(model), stack=stack), machine, nodes)["samples_per_s"]
        for stack in ("eager", "compiled", "tuned")
    ]
    # Each class has its own fitted launch floor, so neighbours may cross by a little.
    assert rates[1] >= 0.95 * rates[0] and rates[2] >= 0.95 * rates[1]


def _synchronised_s(degree: int, **layout: int) -> float:
    """Traffic of data-parallel ranks over a slow network at an expert degree, s per step on eight machines."""
    training = _training(MOE, batch=4096)
    row = {"nodes": 8, "micro_batch": 1, "ep": degree, **layout}
    slow = machines({**A100, "internode_gbps": 10.0})
    step = estimate_layouts(MOE, training, slow, explicit(8, training, 32, 8, [row]))
    return float(step["dp_comm_s"][0])


def test_experts_in_one_node_leave_a_node_as_many_weights_to_gather() -> None:
    """Ranks of an expert group hold different experts: its degree does not lessen what a node's network carries."""
    assert _synchronised_s(8, zero=3) >= 0.9 * _synchronised_s(1, zero=3)


def test_experts_that_no_other_rank_holds_are_not_summed() -> None:
    assert _synchronised_s(8, zero=1, tp=8) < 0.2 * _synchronised_s(1, zero=1, tp=8)


def test_larger_tables_of_a_mixture_take_no_more_rounds_of_the_network() -> None:
    network = {**A100, "internode_gbps": 1e9, "intra_node_gb_per_s": 1e9}  # only latency is left

    def synchronised_s(vocab: int) -> float:
        model, training = replace(MOE, vocab=vocab), _training(MOE, batch=512)
        layout = explicit(8, training, 32, 8, [{"nodes": 2, "zero": 3, "recompute": 2}])
        return float(estimate_layouts(model, training, machines(network), layout)["dp_comm_s"][0])

    assert synchronised_s(256_000) < 1.05 * synchronised_s(1_000)
