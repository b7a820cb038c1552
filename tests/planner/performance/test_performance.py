"""The performance model as a user meets it: sane figures, clear reasons, published facts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from catalogs.tables.table import Table
from planner.performance.constants import Constants, load_constants
from planner.performance.layouts import explicit
from planner.performance.search import estimate_layouts, estimate_shapes
from planner.performance.spec import COMPONENTS, LayoutPin, ModelFamily, ModelSpec, Precision, TrainingSpec

NAN = math.nan
A100 = {
    "accelerator_count": 8.0, "accelerator_memory_gib": 80.0, "memory_gib": 1152.0, "vcpus": 96.0,
    "intra_node": "nvswitch", "intra_node_gb_per_s": 600.0, "internode_gbps": 1600.0, "rdma": "infiniband",
    "local_nvme_gib": NAN, "generation": "ampere", "vendor": "nvidia", "memory_gb_per_s": 2039.0, "fp32_tflops": 19.5,
    "tf32_tflops": 156.0, "fp16_tflops": 312.0, "bf16_tflops": 312.0, "fp8_tflops": NAN,
    "achievable_bf16_tflops": 271.2, "link_gb_per_s": 600.0, "pcie_gen": 4.0, "trainable": "true",
}  # fmt: skip
T4 = {
    **A100, "accelerator_count": 4.0, "accelerator_memory_gib": 16.0, "intra_node": "pcie", "intra_node_gb_per_s": NAN,
    "internode_gbps": 50.0, "rdma": "", "generation": "turing", "memory_gb_per_s": 320.0, "fp32_tflops": 8.1,
    "tf32_tflops": NAN, "fp16_tflops": 65.0, "bf16_tflops": NAN, "achievable_bf16_tflops": NAN, "link_gb_per_s": NAN,
    "pcie_gen": 3.0,
}  # fmt: skip
SMALL = ModelSpec(
    "gpt-1b", ModelFamily.TRANSFORMER, 1.3e9, layers=24, hidden=2048, heads=16, ffn=8192, vocab=50257,
    tied_embeddings=True,
)  # fmt: skip
LLAMA_70B = ModelSpec(
    "llama-70b", ModelFamily.TRANSFORMER, 70.6e9, layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocab=128256,
    gated_mlp=True,
)  # fmt: skip
RESNET = ModelSpec(
    "resnet-50", ModelFamily.CNN, 25.6e6, forward_flops_per_sample=8.22e9, activations_per_sample=11.11e6
)


def machines(*rows: dict[str, Any]) -> Table:
    return Table({name: [row[name] for row in rows] for name in rows[0]})


def best(
    model: ModelSpec, training: TrainingSpec, machine: dict[str, Any], nodes: int = 1, **more: Any
) -> dict[str, Any]:
    return estimate_shapes(model, training, machines(machine), [nodes], **more).row(0)


def test_one_row_per_hardware_and_node_count_in_order() -> None:
    table = estimate_shapes(SMALL, TrainingSpec(64, 2048, "fp16"), machines(A100, T4, A100), [1, 2])
    assert table["hardware_row"].tolist() == [0, 0, 1, 1, 2, 2]
    assert table["nodes"].tolist() == [1, 2, 1, 2, 1, 2]
    assert table["step_time_s"][0] == table["step_time_s"][4]


def test_parts_sum_to_the_step_and_the_layout_uses_all_accelerators() -> None:
    row = best(LLAMA_70B, TrainingSpec(1024, 8192, "bf16"), A100, 32)
    assert row["fits"] and row["reason"] == ""
    assert sum(row[name] for name in COMPONENTS) == pytest.approx(row["step_time_s"], rel=1e-9)
    assert row["tp"] * row["pp"] * row["cp"] * row["dp"] == 256
    assert row["dp"] * row["micro_batch"] * row["grad_accum"] == 1024
    assert row["memory_needed_gib"] <= row["memory_available_gib"] < 80.0
    assert row["step_time_low_s"] < row["step_time_s"] < row["step_time_high_s"]
    assert row["samples_per_s"] == pytest.approx(1024 / row["step_time_s"])
    assert row["checkpoint_gib"] == pytest.approx(14 * 70.6e9 / 1024**3)


def test_reasons_tell_why_nothing_fits() -> None:
    bf16 = TrainingSpec(64, 2048, "bf16")
    assert best(SMALL, bf16, T4)["reason"] == "no_peak_for_precision"
    assert best(LLAMA_70B, bf16, A100)["reason"] == "out_of_memory"
    assert best(SMALL, bf16, {**A100, "trainable": "false"})["reason"] == "not_trainable"
    unlinked = {**A100, "internode_gbps": NAN}
    assert best(SMALL, bf16, unlinked, 2)["reason"] == "unknown_link"
    assert best(SMALL, bf16, unlinked, 1)["fits"]
    data_parallel = replace(bf16, layout=LayoutPin(tensor_parallel=1, pipeline_parallel=1))
    assert best(SMALL, data_parallel, A100, 3)["reason"] == "batch_not_divisible"
    assert best(SMALL, bf16, A100, 8, max_accelerators=32)["reason"] == "too_many_accelerators"
    pinned = replace(bf16, layout=LayoutPin(tensor_parallel=16))
    assert best(SMALL, pinned, A100)["reason"] == "layout_not_possible"
    missing = best(SMALL, bf16, {**A100, "memory_gb_per_s": NAN})
    assert missing["reason"] == "unknown_memory" and math.isnan(missing["step_time_s"])


def test_fp16_stands_in_for_bf16_only_when_allowed() -> None:
    tiny = replace(SMALL, params=1.2e8, layers=12, hidden=768, heads=12, ffn=3072)
    refused = best(tiny, TrainingSpec(64, 512, "bf16"), T4)
    allowed = best(tiny, TrainingSpec(64, 512, "bf16", allow_fp16_fallback=True), T4)
    assert not refused["fits"] and allowed["fits"]


def test_pins_are_respected() -> None:
    pin = LayoutPin(tensor_parallel=4, pipeline_parallel=2, zero_stage=1, micro_batch=2, recompute="full")
    row = best(SMALL, TrainingSpec(64, 2048, "bf16", layout=pin), A100, 2)
    assert (row["tp"], row["pp"], row["zero_stage"], row["micro_batch"], row["recompute"]) == (
        4,
        2,
        1,
        2,
        "full",
    )


def test_explicit_layouts_agree_with_the_search() -> None:
    training = TrainingSpec(1024, 8192, "bf16")
    row = best(LLAMA_70B, training, A100, 32)
    level = {"none": 0, "selective": 1, "full": 2}[row["recompute"]]
    given = {"nodes": 32, "tp": row["tp"], "pp": row["pp"], "cp": row["cp"], "zero": row["zero_stage"],
             "micro_batch": row["micro_batch"], "recompute": level}  # fmt: skip
    table = estimate_layouts(LLAMA_70B, training, machines(A100), explicit(8, training, 80, 1, [given]))
    assert table["step_time_s"][0] == pytest.approx(row["step_time_s"], rel=1e-12)
    with pytest.raises(ValueError, match="layout 0"):
        explicit(8, training, 80, 1, [{"nodes": 1, "tp": 16}])


def test_the_search_is_exhaustive_within_its_bounds() -> None:
    training = TrainingSpec(32, 2048, "bf16")
    row = best(SMALL, training, A100)
    every = []
    for tp in (1, 2, 4, 8):
        for pp in (1, 2, 3, 4, 6, 8):
            if 8 % (tp * pp):
                continue
            dp = 8 // (tp * pp)
            for micro in (1, 2, 4, 8, 16, 32):
                for zero in (0, 1, 3):
                    if 32 % (dp * micro) or (zero == 3 and pp > 1):
                        continue
                    given = {"tp": tp, "pp": pp, "zero": zero, "micro_batch": micro}
                    every += [{**given, "recompute": level} for level in (0, 1, 2)]
    found = estimate_layouts(SMALL, training, machines(A100), explicit(8, training, 24, 1, every))
    assert row["step_time_s"] == pytest.approx(found["step_time_s"][found["fits"]].min(), rel=1e-12)


def test_gpt3_training_takes_about_a_month_on_1024_a100() -> None:
    from benchmarks.sanity import facts

    gpt3 = facts()[0]
    assert "GPT-3" in gpt3.name and 28.0 <= gpt3.ours <= 40.0
    bert = facts()[1]
    assert "BERT-large" in bert.name and 6.0 <= bert.ours <= 8.0
    assert all(fact.holds for fact in facts())


def test_lora_is_cheaper_and_smaller_than_full_training() -> None:
    full = best(LLAMA_70B, TrainingSpec(64, 4096, "bf16"), A100, 8)
    lora = best(LLAMA_70B, TrainingSpec(64, 4096, "bf16", lora_rank=16), A100, 8)
    assert lora["step_time_s"] < full["step_time_s"]
    assert best(LLAMA_70B, TrainingSpec(64, 4096, "bf16", lora_rank=16), A100, 1)["fits"]
    assert lora["checkpoint_gib"] < 0.02 * full["checkpoint_gib"]


def test_moe_costs_its_active_parameters_and_holds_all() -> None:
    mixtral = ModelSpec(
        "mixtral", ModelFamily.TRANSFORMER, 46.7e9, active_params=12.9e9, layers=32, hidden=4096, heads=32, kv_heads=8,
        vocab=32000, gated_mlp=True, experts=8, experts_per_token=2, moe_ffn=14336,
    )  # fmt: skip
    dense = replace(
        mixtral, active_params=None, experts=None, experts_per_token=None, moe_ffn=None, ffn=8 * 14336
    )
    training = TrainingSpec(256, 4096, "bf16")
    sparse_row, dense_row = best(mixtral, training, A100, 8), best(dense, training, A100, 8)
    assert sparse_row["samples_per_s"] > dense_row["samples_per_s"]
    assert best(mixtral, training, A100, 1)["reason"] == "out_of_memory"


def test_data_loading_can_be_the_limit() -> None:
    plain = best(RESNET, TrainingSpec(2048, 1, "fp16"), A100)
    slow = best(
        RESNET,
        TrainingSpec(2048, 1, "fp16", bytes_per_sample=114660.0, decode_samples_per_s_per_core=50.0),
        A100,
    )
    assert plain["data_loading_s"] == 0.0
    assert slow["limited_by"] == "data_loading"
    assert slow["step_time_s"] == pytest.approx(2048 / (50.0 * 48.0))


def test_thin_data_widens_the_interval() -> None:
    training = TrainingSpec(64, 512, "fp16")
    tiny = replace(SMALL, params=1.2e8, layers=12, hidden=768, heads=12, ffn=3072)
    known, thin = best(tiny, training, A100), best(tiny, training, T4)
    width = [math.log(row["step_time_high_s"] / row["step_time_s"]) for row in (known, thin)]
    assert width[1] > width[0] > 0.1


def test_a_model_without_sizes_is_a_clear_error() -> None:
    with pytest.raises(ValueError, match=r"'bare': layers, hidden must be given"):
        best(ModelSpec("bare", ModelFamily.TRANSFORMER, 1e9), TrainingSpec(8, 128, "bf16"), A100)
    with pytest.raises(ValueError, match="forward_flops_per_sample"):
        best(ModelSpec("bare", ModelFamily.CNN, 1e6), TrainingSpec(8, 1, "bf16"), A100)


def test_no_hardware_gives_no_rows() -> None:
    empty = machines(A100).take([])
    assert estimate_shapes(SMALL, TrainingSpec(8, 128, "bf16"), empty, [1, 2]).n_rows == 0


def test_fractions_of_a_card_count_as_one_slower_device() -> None:
    half = {**A100, "accelerator_count": 0.5, "accelerator_memory_gib": 40.0, "intra_node": "single"}
    whole = {**A100, "accelerator_count": 1.0, "intra_node": "single"}
    training = TrainingSpec(64, 1, "fp16")
    slow, fast = best(RESNET, training, half), best(RESNET, training, whole)
    assert slow["tp"] == slow["dp"] == 1
    assert slow["samples_per_s"] < fast["samples_per_s"]


def test_every_constant_lies_within_its_bounds_and_has_a_provenance() -> None:
    import csv

    from planner.performance.constants import DIRECTORY

    for path in DIRECTORY.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                assert float(row["lower"]) <= float(row["value"]) <= float(row["upper"]), row["name"]
                assert row["provenance"] and row["unit"], row["name"]


def test_a_faulty_constants_file_names_the_line(tmp_path: Any) -> None:
    path = tmp_path / "constants.csv"
    path.write_text("name,value\na,1\na,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"constants.csv:3: constant 'a' is given twice"):
        load_constants(path)
    path.write_text("name,value\nb,\n", encoding="utf-8")
    with pytest.raises(ValueError, match="'b' has no number"):
        load_constants(path)


def test_constants_can_be_replaced_for_sensitivity() -> None:
    base = load_constants()
    slower = base.replace({"gemm.max_ratio": 0.5 * base["gemm.max_ratio"]})
    assert isinstance(slower, Constants)
    training = TrainingSpec(64, 2048, "bf16")
    assert (
        best(SMALL, training, A100, constants=slower)["step_time_s"]
        > best(SMALL, training, A100)["step_time_s"]
    )


def test_a_70b_search_covers_250_machines_at_20_node_counts() -> None:
    """What it costs is printed by `benchmarks.layout_search`."""
    rng = np.random.default_rng(7)
    rows = [
        {**A100, "accelerator_count": float(rng.choice([1, 4, 8])),
         "accelerator_memory_gib": float(rng.choice([24, 40, 80])),
         "internode_gbps": float(rng.choice([50, 100, 400, 1600, 3200]))}
        for _ in range(250)
    ]  # fmt: skip
    nodes = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 112, 128]
    training = TrainingSpec(1024, 8192, "bf16")
    table = estimate_shapes(LLAMA_70B, training, machines(*rows), nodes)
    assert table.n_rows == 5000 and table["fits"].any()


def test_the_committed_table_of_facts_is_current() -> None:
    from pathlib import Path

    from benchmarks.sanity import render

    committed = Path(__file__).resolve().parents[3] / "docs" / "sanity.md"
    assert committed.read_text(encoding="utf-8") == render()


def test_fewer_bits_and_a_higher_four_bit_peak_are_faster() -> None:
    def step_s(precision: Precision, fp4_tflops: float = 10_000.0) -> float:
        chip = {
            **A100, "accelerator_memory_gib": 186.0, "generation": "blackwell", "memory_gb_per_s": 8000.0,
            "fp16_tflops": 2500.0, "bf16_tflops": 2500.0, "fp8_tflops": 5000.0, "fp4_tflops": fp4_tflops,
            "achievable_bf16_tflops": 1822.0,
        }  # fmt: skip
        pinned = LayoutPin(tensor_parallel=8, pipeline_parallel=1, zero_stage=1, micro_batch=1)
        training = TrainingSpec(64, 8192, precision, layout=pinned)
        return float(best(LLAMA_70B, training, chip, 4)["step_time_s"])

    assert step_s("bf16") > step_s("fp8") > step_s("fp4") > step_s("fp4", 15_000.0) > 0
    # Attention, and what recipes keep in 16 bit, gain nothing.
    assert step_s("fp8") < 2.0 * step_s("fp4")
