"""What scripts and files of whole runs say beyond their plain arguments: branches, programs, shares, copies of data."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.trainer_files.arguments import parse_arguments
from planner.trainer_files.gather import Wishes, gather
from tests.planner.trainer_files.drafts import values_of
from tests.planner.trainer_files.test_formats import AXOLOTL, GPT_NEOX, LLAMA_FACTORY_V1

SIZES = "--num-layers 4 --hidden-size 128 --num-attention-heads 2 --seq-length 64 --micro-batch-size 1"


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("form", ["case", "if"])
def test_the_branch_that_the_script_takes_counts(size: str, form: str) -> None:
    branches = {
        "case": 'case "${SIZE}" in\n "small")\n LAYERS=4\n ;;\n large|huge) LAYERS=8; HEADS=16 ;;\n *) exit;;\nesac',
        "if": 'if [ "$SIZE" = small ]; then\n LAYERS=4\nelif [[ $SIZE == large ]]\nthen\n LAYERS=8; HEADS=16\nfi',
    }
    text = f"SIZE={size}\nHEADS=2\n{branches[form]}\nrun --num-layers $LAYERS --num-attention-heads $HEADS"
    found, remarks = parse_arguments(text, "run.sh")
    assert found == {"num_layers": "4" if size == "small" else "8",
                     "num_attention_heads": "2" if size == "small" else "16"}  # fmt: skip
    assert remarks == []


def test_what_only_the_caller_decides_is_named_and_not_taken_from_the_last_branch() -> None:
    text = "if [ $1 = 7B ]; then\n LAYERS=4\nelse\n LAYERS=8\nfi\nrun --num-layers $LAYERS --hidden-size 64"
    found, remarks = parse_arguments(text, "run.sh")
    assert found == {"hidden_size": "64"}
    assert remarks == ["--num-layers is not read: the file does not set its value"]


def test_defaults_stand_where_options_of_the_command_line_may_replace_them() -> None:
    options = "while [ $# -gt 0 ]; do\n  case $1 in\n    --tp) TP=$2; shift 2;;\n    *) break;;\n  esac\ndone"
    text = f"TP=2\n{options}\nrun --tp $TP"
    assert parse_arguments(text, "run.sh") == ({"tp": "2"}, [])


def test_arguments_that_hang_on_an_unknown_condition_are_named() -> None:
    text = 'if [ $1 = fp8 ]; then\n  OPT="--fp8-format hybrid"\nelse\n  OPT="--bf16"\nfi\nrun $OPT'
    found, remarks = parse_arguments(text, "run.sh")
    assert found == {"bf16": True}
    assert remarks == ["OPT depends on a condition that the file does not decide: its last form is read"]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("-z $UNSET", True),
        ("-n $UNSET", False),
        ("$N -gt 2", True),
        ("! $N -eq 4", False),
        ("$N != 4", False),
    ],
)
def test_conditions_that_the_script_decides(condition: str, holds: bool) -> None:
    text = f"N=4\nX=1\nif [ {condition} ]; then X=2; fi\nrun --x $X"
    assert parse_arguments(text, "run.sh")[0] == {"x": "2" if holds else "1"}


def test_a_text_that_only_looks_like_a_branch_hides_nothing() -> None:
    text = "cat <<END\ncase of doubt in general\nEND\nrun --num-layers 4"
    assert parse_arguments(text, "run.sh")[0] == {"num_layers": "4"}


def test_a_flag_at_the_end_of_a_command_takes_no_word_of_the_next() -> None:
    text = "read -r words <<EOF\ntrain --layers 4 --checkpointing\nEOF\ntorchrun --standalone"
    assert parse_arguments(text, "run.sh")[0] == {
        "layers": "4", "checkpointing": True, "standalone": True,
    }  # fmt: skip


def test_a_program_says_what_its_sizes_are_of(tmp_path: Path) -> None:
    bert = values_of(tmp_path, "bert.sh", f"torchrun pretrain_bert.py {SIZES} --max-position-embeddings 64")
    assert (bert["model.architecture"], bert["model.vocab"]) == ("encoder", 30592)
    halves = SIZES.replace("--num-layers 4", "--encoder-num-layers 4 --decoder-num-layers 2")
    t5 = values_of(tmp_path, "t5.sh", f"torchrun pretrain_t5.py {halves}")
    assert (t5["model.architecture"], t5["model.layers"]) == ("encoder_decoder", 6)
    with pytest.raises(InputError, match="pretrain_vision trains a network of images"):
        values_of(tmp_path, "vision.sh", f"torchrun pretrain_vision_classify.py {SIZES}")


@pytest.mark.parametrize(
    ("arguments", "vocab"),
    [("--pad-vocab-size-to 60000", 60_000), ("--make-vocab-size-divisible-by 1000 --vocab-size 50257", 51_000),
     ("--vocab-size 50257", 50_304)],
)  # fmt: skip
def test_the_vocabulary_is_padded_as_the_script_says(arguments: str, vocab: int, tmp_path: Path) -> None:
    assert values_of(tmp_path, "train.sh", f"run {SIZES} {arguments}")["model.vocab"] == vocab


def test_shares_of_a_hybrid_replace_layers_of_attention(tmp_path: Path) -> None:
    # NVIDIA's Mamba-2 hybrid has 8.66 B parameters (arXiv:2406.07887, table 6): 4 attention, 28 MLP, 24 Mamba-2 layers
    sizes = (
        "--num-layers 56 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 "
        "--seq-length 4096 --micro-batch-size 1 --untie-embeddings-and-output-weights --position-embedding-type none "
        "--vocab-size 256000 --hybrid-attention-ratio 0.08 --hybrid-mlp-ratio 0.5"
    )
    assert values_of(tmp_path, "train.sh", f"run {sizes}")["model.params"] == pytest.approx(8.66e9, rel=0.01)


HYBRID = (
    "--hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --seq-length 4096 "
    "--micro-batch-size 1 --untie-embeddings-and-output-weights --position-embedding-type none --vocab-size 256000"
)


def test_a_pattern_of_layers_states_stages_and_further_tokens_too(tmp_path: Path) -> None:
    half = "M-" * 12 + "*-" * 2
    plain = values_of(tmp_path, "train.sh", f'run {HYBRID} --hybrid-layer-pattern "{half * 2}"')
    assert plain["model.layers"] == 56 and plain["model.params"] == pytest.approx(8.66e9, rel=0.01)
    staged = values_of(tmp_path, "train.sh", f'run {HYBRID} --hybrid-layer-pattern "{half}|{half}/*-/*-"')
    assert staged == plain


def test_layers_that_are_not_known_are_a_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="layers 'C', 'H' of the hybrid pattern are not known"):
        values_of(tmp_path, "train.sh", f'run {HYBRID} --hybrid-layer-pattern "M-MCM-MHM-"')


def test_gpt_neox(tmp_path: Path) -> None:
    found = values_of(tmp_path, "run.yml", GPT_NEOX, accelerators=16)
    assert found["model.params"] == pytest.approx(20 * 12 * 2048**2 + 2 * 50_432 * 2048, rel=0.01)
    assert found["training.global_batch"] == 4 * 8 * 16 // 4
    assert (found["training.precision"], found["training.steps"]) == ("fp16", 5000)
    layout = {key.rpartition(".")[2]: value for key, value in found.items() if "layout" in key}
    assert layout == {"tensor_parallel": 2, "pipeline_parallel": 2, "zero_stage": 1, "recompute": "full"}


@pytest.mark.parametrize(
    ("degrees", "copies"),
    [("dp_shard_size: 2\nexpert_parallel_size: 4", 8), ("dp_shard_size: 1\nexpert_parallel_size: 8", 8),
     ("dp_shard_size: 1\ndp_replicate_size: 1", 8), ("dp_shard_size: 2\ntensor_parallel_size: 4", 2)],
)  # fmt: skip
def test_accelerators_of_axolotl_that_share_out_experts_see_samples_of_their_own(
    degrees: str, copies: int, tmp_path: Path
) -> None:
    assert (
        values_of(tmp_path, "run.yml", AXOLOTL + degrees, accelerators=8)["training.global_batch"]
        == 2 * 4 * copies
    )


def test_sizes_that_only_the_caller_decides_are_a_reason(tmp_path: Path) -> None:
    branches = "if [ $1 = 7B ]; then\n L=4\nelse\n L=8\nfi"
    text = f"{branches}\ntorchrun pretrain_gpt.py --num-layers $L --hidden-size 64 --bf16"
    with pytest.raises(
        InputError, match=r"num_layers and num_attention_heads must be given \(--num-layers is not"
    ):
        values_of(tmp_path, "train.sh", text)


NEMO_T5 = """
trainer: {devices: 1, num_nodes: 1, max_steps: 1000, precision: 16}
model:
  micro_batch_size: 4
  global_batch_size: 8
  seq_length: 512
  num_layers: 12
  hidden_size: 768
  ffn_hidden_size: 3072
  num_attention_heads: 12
  tokenizer: {type: BertWordPieceCase}
  data: {dataset_type: t5, seq_length: 512}
"""
NEMO_DPO = """
trainer: {devices: 8, num_nodes: 1, precision: bf16, dpo: {max_epochs: 1}, max_epochs: "${.dpo.max_epochs}"}
model:
  micro_batch_size: 1
  global_batch_size: 64
  restore_from_path: ???
  dpo: {ref_policy_kl_penalty: 0.2}
"""
NEMO_GRPO = """
defaults: ../../base.yaml
grpo:
  num_prompts_per_step: 8
  num_generations_per_prompt: 16
  async_grpo: {enabled: true, max_trajectory_age_steps: 2}
policy:
  model_name: meta-llama/Llama-3.1-8B-Instruct
  generation: {colocated: {enabled: false}}
"""


def test_an_encoder_decoder_of_nemo_has_two_halves(tmp_path: Path) -> None:
    found = values_of(tmp_path, "t5.yaml", NEMO_T5)
    assert (found["model.architecture"], found["model.layers"]) == ("encoder_decoder", 24)
    assert found["model.params"] == pytest.approx(220e6, rel=0.01)  # T5 base


def test_nemo_aligner_states_its_objective_below_the_model(tmp_path: Path) -> None:
    assert values_of(tmp_path, "dpo.yaml", NEMO_DPO, model="llama-3.1-8b")["training.objective"] == "dpo"
    with pytest.raises(InputError, match="states no model"):
        values_of(tmp_path, "dpo.yaml", NEMO_DPO)


def test_where_nemo_rl_generates_is_in_the_blank_and_a_base_that_is_not_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text(NEMO_GRPO, encoding="utf-8")
    found = gather([path], Wishes())
    assert found.facts["training.global_batch"].value == 8 * 16
    blank = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    assert "samples_per_prompt: 16, placement: disaggregated, steps_off_policy: 2" in blank
    assert any("defaults ../../base.yaml" in warning for warning in found.warnings)


def test_a_batch_alone_does_not_make_a_file_of_deepspeed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is none of the files that are read"):
        values_of(tmp_path, "data.yaml", "train_batch_size: 1024\ntrain_files: some.parquet\n")


def test_the_folder_of_a_trainers_file_tells_its_objective_and_its_memory_counts(tmp_path: Path) -> None:
    folder = tmp_path / "dpo"
    folder.mkdir()
    text = "model_name_or_path: mistralai/Mistral-7B-v0.1\nmax_length: 1024\nuse_liger_kernel: true\n"
    text += "fsdp: shard_grad_op auto_wrap"
    found = values_of(folder, "config_full.yaml", text)
    assert found["training.objective"] == "dpo"
    assert found["training.memory.loss"] == "tiled"
    assert found["training.layout.zero_stage"] == 2


@pytest.mark.parametrize(("components", "stack"), [('["loss"]', "eager"), ('["model", "loss"]', "compiled")])
def test_a_compiled_loss_is_no_compiled_model(components: str, stack: str, tmp_path: Path) -> None:
    model = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nsteps = 10'
    text = f"{model}\n[compile]\nenable = true\ncomponents = {components}\n"
    assert values_of(tmp_path, "run.toml", text)["training.stack"] == stack


def test_the_new_engine_of_llama_factory_with_its_defaults(tmp_path: Path) -> None:
    found = values_of(tmp_path, "run.yaml", LLAMA_FACTORY_V1, accelerators=8)
    assert found["model.preset"] == "qwen3-8b"
    assert found["training.global_batch"] == 2 * 8 // 2  # two accelerators share a sequence
    assert (found["training.method"], found["training.lora_rank"]) == ("qlora", 32)
    assert (found["training.precision"], found["training.layout.recompute"]) == ("bf16", "full")
    assert (found["training.layout.zero_stage"], found["training.layout.context_parallel"]) == (3, 2)
    with pytest.raises(InputError, match="names no train_dataset"):
        values_of(tmp_path, "chat.yaml", "model: Qwen/Qwen3-8B\nmodel_class: llm\nsample_backend: hf\n")


AUTOMODEL = """
step_scheduler: {global_batch_size: 64, local_batch_size: 2, max_steps: 100}
model: {pretrained_model_name_or_path: Qwen/Qwen3-32B}
peft: {_target_: nemo_automodel.components._peft.lora.PeftConfig, dim: 16}
quantization: {load_in_4bit: true}
distributed: {strategy: fsdp2, tp_size: 1, cp_size: 2}
loss_fn: {_target_: nemo_automodel.components.loss.linear_ce.FusedLinearCrossEntropy}
"""


def test_automodel_says_how_it_shards_and_what_it_keeps(tmp_path: Path) -> None:
    found = values_of(tmp_path, "run.yaml", AUTOMODEL, accelerators=8)
    assert (found["training.layout.zero_stage"], found["training.memory.loss"]) == (3, "tiled")
    assert (found["training.method"], found["training.lora_rank"]) == ("qlora", 16)


def test_a_text_with_arguments_and_no_words_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("a line --with=a $(command\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"data\.txt"):
        gather([path], Wishes())
    assert parse_arguments("", "empty") == ({}, [])
