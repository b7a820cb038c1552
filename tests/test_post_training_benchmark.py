"""Post-training rows predicted without their group: no constant may know what was left out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.post_training import load, predict
from benchmarks.post_training_fit import PRIORS, fit, measured_kinds, using
from benchmarks.post_training_left_out import SPLITS, left_out
from benchmarks.post_training_rows import Row
from planner.performance.post_training.adapters import load_adapters

COLUMNS = (
    "id,source,objective,method,adapter,rank,targets,model,accelerator,accelerators,nodes,precision,quantization,"
    "micro_batch,global_batch,max_sequence,mean_tokens_per_sample,packed,compile,recompute,optimizer,layout,policy,"
    "generation_gpus_layout,tokens_per_s,tokens_per_s_per_gpu,step_time_s,peak_memory_gib,note"
)
PEFT = "huggingface/peft@x,sft,peft"
REST = "NVIDIA L40S,1,1,bfloat16,,4,4,768,210,False,False,none,AdamW,,,,,"
NEMO = "NVIDIA-NeMo/RL@x,grpo,full"
LINES = (
    f"peft/full,huggingface/peft@x,sft,full,,,,Llama-3.2-3B,{REST},0.36,36,",
    f"peft/lora-rslora,{PEFT},LORA,32,q_proj+v_proj,Llama-3.2-3B,{REST},0.12,21,",
    f"peft/hira,{PEFT},HIRA,32,q_proj+v_proj,Llama-3.2-3B,{REST},0.17,22,",
    f"peft/boft,{PEFT},BOFT,,q_proj+v_proj,Llama-3.2-3B,{REST},0.66,23,",
    'nemo/h100,' + NEMO + ',,,,LLAMA3.1_8B,H100 80GB,16,2,bf16,,,512,4096,1019,,,,,,On policy,"[TP,PP]=[1,1]",,,92.8,,'
    '"rollout samples per step 2,048"',
    'nemo/gb200,' + NEMO + ',,,,Qwen3-32B,GB200,16,4,bf16,,,512,4096,3253,,,,,"[TP,PP]=[2,1]",On policy,'
    '"[TP,PP]=[1,1]",,,381,,"rollout samples per step 2,048"',
)  # fmt: skip
TUNED, REINFORCED = slice(0, 4), slice(4, 6)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder: Path = tmp_path_factory.mktemp("rows")
    (folder / "measured.csv").write_text("\n".join((COLUMNS, *LINES)) + "\n", encoding="utf-8")
    made, unused = load(folder)
    assert (len(made), dict(unused)) == (6, {})
    return made


@pytest.mark.parametrize("part", [TUNED, REINFORCED], ids=["fine-tuning", "reinforcement learning"])
@pytest.mark.parametrize("split", ["publisher", list(SPLITS)[-1]])
def test_a_left_out_row_is_predicted_without_what_was_measured_of_it(
    rows: list[Row], part: slice, split: str
) -> None:
    group, own = SPLITS[split], rows[part]
    target = own[-1]
    alike = {row.key for row in own if group(row) == group(target)}
    lies = [
        replace(
            row, key=row.key + "!", step_s=100.0 * (row.step_s or 1.0), memory_gib=row.memory_gib and 900.0
        )
        if row.key in alike
        else row
        for row in own
    ]
    honest, misled = left_out(own, group)[-1], left_out(lies, group)[-1]
    assert math.isfinite(honest.step_s)
    assert (honest.step_s, honest.low_s, honest.high_s) == (misled.step_s, misled.low_s, misled.high_s)
    assert honest.memory_gib == pytest.approx(misled.memory_gib, nan_ok=True)


def test_without_any_row_the_priors_count_and_no_figure_of_the_bundled_files(rows: list[Row]) -> None:
    empty = fit([])
    assert {name: empty.constants[name] for name in PRIORS} == PRIORS
    assert all(math.isnan(value) for name, value in empty.constants.items() if name not in PRIORS)
    assert {(cost.step_ratio, cost.weight_bytes, cost.rows) for cost in empty.adapters.values()} == {
        (1.0, 0.0, 0)
    }
    with using(empty) as constants:
        bare = predict(rows[3], constants).step_s
    # rotations by butterflies take several times as long as LoRA, which only their own rows say
    assert bare < 0.5 * predict(rows[3]).step_s


def test_a_fit_counts_inside_its_block_only(rows: list[Row]) -> None:
    before = dict(load_adapters())
    with using(fit([])):
        assert load_adapters()["boft"].weight_bytes == 0.0
    assert load_adapters() == before


def test_all_rows_together_recover_a_kind_of_adapter_and_its_class(rows: list[Row]) -> None:
    fitted = fit(rows[TUNED])
    boft, hira, loha = (fitted.adapters[kind] for kind in ("boft", "hira", "loha"))
    assert boft.rows == hira.rows == 1
    assert loha.rows == 0
    assert loha.weight_bytes == pytest.approx(hira.weight_bytes)
    assert hira.weight_bytes > 0.0
    assert loha.spread > hira.spread
    with using(fitted) as constants:
        assert predict(rows[3], constants).step_s == pytest.approx(0.66, rel=1e-6)
    assert np.isclose(measured_kinds(rows[TUNED], fitted)["boft"][0].weight_bytes, boft.weight_bytes)


def test_rows_of_several_cards_widen_intervals_by_what_each_says_of_the_others(rows: list[Row]) -> None:
    fast = rows[1]
    slow = replace(fast, key=fast.key + "+", step_s=2.0 * (fast.step_s or 1.0))
    elsewhere = replace(slow, device={**slow.device, "accelerator": "l40s-of-another-maker"})
    alike, apart = (fit([fast, other]).constants["interval.tuning.eager"] for other in (slow, elsewhere))
    assert apart > alike
