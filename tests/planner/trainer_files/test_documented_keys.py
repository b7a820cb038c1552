"""Keys that files of trainers have by their documentation, and that change what a run costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.trainer_files.gather import Draft, Wishes, gather

TRL = "trl {} --model_name_or_path Qwen/Qwen2.5-7B-Instruct --per_device_train_batch_size 2 --max_steps 10"
SLIME = """python3 train.py --num-layers 36 --hidden-size 4096 --num-attention-heads 32 --swiglu --colocate \\
 --actor-num-nodes 1 --actor-num-gpus-per-node 8 --hf-checkpoint /root/Qwen3-8B --rollout-batch-size 32 \\
 --n-samples-per-prompt 8 --num-rollout 300 --rollout-max-response-len 8192 --global-batch-size 256 \\
 --tensor-model-parallel-size 2 --advantage-estimator grpo
"""
RECIPE = """from nemo.collections import llm
recipe = llm.mixtral_8x7b.finetune_recipe(name="ft", num_nodes=2, num_gpus_per_node=8, packed_sequence={})
recipe.data.global_batch_size = 128
recipe.data.seq_length = 4096
recipe.trainer.max_steps = 300
"""
QWEN_VL = (
    "torchrun --nproc_per_node=8 train_qwen.py --model_name_or_path Qwen/Qwen2.5-7B --max_steps 5 "
    "--model_max_length 8192 --per_device_train_batch_size 1"
)


def draft(folder: Path, name: str, text: str) -> Draft:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return gather([path], Wishes())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", TRL.format("dpo") + " --precompute_ref_log_probs"),
        ("run.yaml", "base_model: Qwen/Qwen2.5-7B\nrl: dpo\nmicro_batch_size: 1\nsequence_len: 2048\nmax_steps: 5\n"
         "precompute_ref_log_probs: true\n"),
        ("run.sh", "swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B --max_steps 5 --precompute_ref_log_probs true"),
    ],
)  # fmt: skip
def test_a_reference_that_answers_beforehand_takes_no_memory(name: str, text: str, tmp_path: Path) -> None:
    assert draft(tmp_path, name, text).facts["training.reference"].value == "precomputed"
    stated = text.replace(" --precompute_ref_log_probs true", "").replace(" --precompute_ref_log_probs", "")
    without = draft(tmp_path, name, stated.replace("precompute_ref_log_probs: true\n", ""))
    assert "training.reference" not in without.facts


def test_slime_with_the_sizes_of_megatron_in_its_script_is_slime(tmp_path: Path) -> None:
    result = draft(tmp_path, "run.sh", SLIME)
    assert result.tools == ["slime"]
    found = {key: fact.value for key, fact in result.facts.items()}
    assert (found["model.preset"], found["training.objective"]) == ("qwen3-8b", "grpo")
    assert (found["training.global_batch"], found["training.steps"]) == (256, 300)


@pytest.mark.parametrize("packed", [True, False])
def test_recipes_of_nemo_say_whether_samples_are_packed(packed: bool, tmp_path: Path) -> None:
    assert draft(tmp_path, "run.py", RECIPE.format(packed)).facts["training.packing"].value is packed


def test_samples_cut_at_a_length_are_asked_for_their_own_under_either_name(tmp_path: Path) -> None:
    result = draft(tmp_path, "run.sh", QWEN_VL)
    assert any(blank.key == "training.lengths" for blank in result.blanks)
    assert draft(tmp_path, "run.sh", f"{QWEN_VL} --data_packing True").facts["training.packing"].value is True
