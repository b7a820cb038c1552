"""What public files of people say that was read wrong, or not at all: small files with the same keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.inputs.item_passes import load_passes
from planner.trainer_files.answer import workload_from
from planner.trainer_files.gather import Wishes
from planner.trainer_files.hub import preset_of_hub_name
from tests.planner.trainer_files.drafts import draft, facts

RL2_NEWEST = """
torchrun --nproc_per_node=4 -m RL2.trainer.ppo rollout.train.path=prompts rollout.train.prompts_per_rollout=128 \\
    rollout.train.responses_per_prompt=64 rollout.train.sampling_params.max_new_tokens=8192 \\
    actor.model_name=Qwen/Qwen2.5-7B adv.estimator=gae trainer.total_steps=512
"""
ALPACA = """
python finetune.py --base_model 'llama-7b-hf' --batch_size 256 --num_epochs=1 --cutoff_len=512 \\
    --lora_target_modules='[q_proj,k_proj,v_proj,o_proj]' --lora_r=16
"""
TITAN = """
[model]
name = "qwen3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 8192
steps = 1000
"""
DPO = """
accelerate launch --config_file accelerate.yaml train_dpo.py --model_name_or_path Qwen/Qwen2-0.5B-Instruct \\
    --per_device_train_batch_size 4 --max_length 1024
"""


def test_the_newest_names_of_rl2_state_prompts_and_responses(tmp_path: Path) -> None:
    result = draft(tmp_path, "run.sh", RL2_NEWEST)
    found = facts(result)
    assert (found["training.global_batch"], found["training.sequence_length"]) == (128 * 64, 8192)
    assert not result.warnings
    (tmp_path / "split.sh").write_text(RL2_NEWEST.strip() + " rollout.tp_size=2")
    texts = [workload_from([tmp_path / name], Wishes()).text for name in ("run.sh", "split.sh")]
    assert ["tensor_parallel: 2" in text for text in texts] == [False, True]


def test_a_step_of_prompts_that_is_not_stated_is_named(tmp_path: Path) -> None:
    result = draft(tmp_path, "run.sh", RL2_NEWEST.replace("prompts_per_rollout", "how_many"))
    assert any("prompts_per_rollout" in text and "assumed" in text for text in result.warnings)


def test_alpaca_lora_stores_weights_in_8_bits_and_recomputes(tmp_path: Path) -> None:
    found = facts(draft(tmp_path, "run.sh", ALPACA))
    assert (found["training.method"], found["training.quantization"]) == ("qlora", "int8")
    assert found["training.adapter.targets"] == ["q_proj", "k_proj", "v_proj", "o_proj"]
    assert (found["training.layout.recompute"], found["training.precision"]) == ("full", "fp16")
    usual = facts(draft(tmp_path, "run.sh", ALPACA.replace("--lora_target_modules", "--other")))
    assert usual["training.adapter.targets"] == ["q_proj", "v_proj"]


def test_commands_of_litgpt_are_read_with_its_defaults(tmp_path: Path) -> None:
    tuned = "litgpt finetune_lora meta-llama/Llama-3.2-1B --data JSON --train.max_seq_length 512 --devices 4"
    found = facts(draft(tmp_path, "tune.sh", tuned))
    assert (found["model.preset"], found["training.method"], found["training.lora_rank"]) == (
        "llama-3.2-1b", "lora", 8,
    )  # fmt: skip
    assert (found["training.global_batch"], found["training.epochs"]) == (16, 5.0)
    assert found["training.sequence_length"] == 512
    begun = "litgpt pretrain pythia-160m --train.global_batch_size 64 --train.max_tokens 1_000_000_000"
    found = facts(draft(tmp_path, "begin.sh", begun))
    assert (found["model.preset"], found["training.tokens"]) == ("pythia-160m", 10**9)
    assert found["training.global_batch"] == 64
    silent = facts(draft(tmp_path, "silent.sh", "litgpt pretrain pythia-160m --train.micro_batch_size 4"))
    assert (silent["training.global_batch"], silent["training.tokens"]) == (512, 3 * 10**12)
    whole = facts(draft(tmp_path, "whole.sh", tuned.replace("finetune_lora", "finetune_full")))
    assert (whole["training.method"], whole["training.global_batch"]) == ("full", 16)


def test_answers_written_during_dpo_and_their_judge_are_named(tmp_path: Path) -> None:
    online = DPO.replace("--max_length", "--reward_model_path trl-lib/judge --max_length")
    texts = " ".join(draft(tmp_path, "run.sh", online).warnings)
    assert "reward model are not counted" in texts
    assert "writes during training" in texts
    assert "reward model" not in " ".join(draft(tmp_path, "run.sh", DPO).warnings)
    renamed = draft(tmp_path, "run.sh", online.replace("--reward_model_path", "--reward_model_name_or_path"))
    assert "reward model are not counted" in " ".join(renamed.warnings)


def test_the_precision_that_an_absent_file_may_state_is_not_said_to_be_single(tmp_path: Path) -> None:
    precision = draft(tmp_path, "run.sh", DPO).facts["training.precision"]
    assert (precision.value, precision.assumed) == ("bf16", True)
    assert "accelerate.yaml" in precision.where
    own = draft(
        tmp_path, "own.sh", DPO.replace("--config_file accelerate.yaml ", "").strip() + " --config dpo.yaml"
    )
    assert "dpo.yaml" in own.facts["training.precision"].where
    alone = draft(tmp_path, "run.sh", DPO.replace("--config_file accelerate.yaml ", ""))
    assert alone.facts["training.precision"].value == "fp32"


def test_lengths_of_open_retrievals_are_read(tmp_path: Path) -> None:
    text = (
        "torchrun -m retrievals.pipelines.embed --model_name_or_path BAAI/bge-base-en-v1.5 --train_group_size 4 "
        "--per_device_train_batch_size 32 --num_train_epochs 1 --query_max_length 64 --document_max_length 512"
    )
    found = facts(draft(tmp_path, "run.sh", text))
    # 32 queries of 64 tokens and 128 documents of 512, in pairs of documents
    assert (found["training.sequence_length"], found["training.global_batch"]) == (512, 66)


def test_a_configuration_of_nanogpt_without_a_batch_is_read(tmp_path: Path) -> None:
    result = draft(
        tmp_path, "small.py", "out_dir = 'out'\nblock_size = 64\nn_layer = 6\nn_head = 8\nn_embd = 128\n"
    )
    batch = result.facts["training.global_batch"]
    assert (batch.value, batch.assumed) == (480, True)


def test_constants_of_an_unknown_script_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its keys: learning_rate, hidden"):
        draft(tmp_path, "own.py", "learning_rate = 0.1\nhidden = 3\n")


def test_a_space_in_a_value_is_part_of_it(tmp_path: Path) -> None:
    text = '--model_name_or_path="/my drive/Qwen2.5-7B" --num_train_epochs 1 --per_device_train_batch_size 2'
    assert facts(draft(tmp_path, "run.sh", f"python train.py {text}"))["model.preset"] == "qwen2.5-7b"


def test_a_folder_of_modelscope_names_its_model(tmp_path: Path) -> None:
    text = "python train.py --model_name_or_path /hub/qwen/Qwen1___5-0___5B --per_device_train_batch_size 2"
    result = draft(tmp_path, "run.sh", f"{text} --num_train_epochs 1")
    assert facts(result)["model.preset"] == "qwen1.5-0.5b"


def test_a_name_that_begins_with_a_preset_is_answered_with_it(tmp_path: Path) -> None:
    text = "python train.py --model_name_or_path deepset/roberta-base-squad2 --per_device_train_batch_size 2"
    with pytest.raises(InputError, match="--model roberta-base if it is that model tuned further"):
        draft(tmp_path, "run.sh", f"{text} --num_train_epochs 1")


@pytest.mark.parametrize("name", ["Qwen/Qwen3-ForcedAligner-0.6B", "facebook/wav2vec2-xls-r-300m-en-to-15"])
def test_a_network_called_after_another_is_not_that_one(name: str) -> None:
    assert preset_of_hub_name(name) is None


def test_a_vocabulary_that_is_assumed_is_said_with_the_warnings(tmp_path: Path) -> None:
    sizes = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1"
    text = (
        f"python pretrain_gpt.py {sizes} --tokenizer-type SentencePieceTokenizer --tokenizer-model /own.model"
    )
    assert any("vocabulary" in text for text in draft(tmp_path, "run.sh", text).warnings)
    started = text.replace("python", "torchrun --standalone --rdzv_id 3 --nproc_per_node 2")
    stated = draft(tmp_path, "run.sh", f"{started} --padded-vocab-size 99584")
    assert stated.unknown == {}
    assert not any("vocabulary" in text for text in stated.warnings)


def test_a_kind_of_model_that_is_guessed_is_said_with_the_warnings(tmp_path: Path) -> None:
    sizes = '"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500'
    guessed = draft(
        tmp_path, "config.json", f'{{"model_type": "brand_new", {sizes}, "intermediate_size": 256}}'
    )
    assert any("brand_new" in text for text in guessed.warnings)


@pytest.mark.parametrize(
    ("kind", "gated"),
    [("apertus", False), ("arcee", False), ("seed_oss", True), ("helium", True), ("hyperclovax", True)],
)
def test_newer_kinds_of_model_have_a_gate_or_none(kind: str, gated: bool, tmp_path: Path) -> None:
    sizes = '"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500'
    known = draft(tmp_path, "config.json", f'{{"model_type": "{kind}", {sizes}, "intermediate_size": 256}}')
    assert not known.warnings
    assert facts(known)["model.gated_mlp"] is gated


def test_a_name_that_swift_gives_its_model_makes_it_no_script_of_the_trainer(tmp_path: Path) -> None:
    text = (
        "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type lora --model_name robot --max_length 2048"
    )
    result = draft(tmp_path, "run.sh", f"{text} --freeze_vit true --num_train_epochs 1")
    assert facts(result)["training.method"] == "lora"
    assert not any(
        "frozen" in warning for warning in result.warnings
    )  # adapters leave the rest frozen anyway


def test_a_projector_beside_a_frozen_model_of_swift_is_no_training_of_all_weights(tmp_path: Path) -> None:
    text = (
        "swift pt --model Qwen/Qwen2.5-VL-7B-Instruct --train_type full --freeze_llm true --freeze_vit true"
    )
    result = draft(tmp_path, "run.sh", f"{text} --max_steps 50")
    assert facts(result)["training.method"] == "lora"
    assert any("projector" in warning for warning in result.warnings)


def test_adapters_are_read_from_other_names_of_their_flag_and_rank(tmp_path: Path) -> None:
    run = "--per_device_train_batch_size 1 --num_train_epochs 1"
    flag = f"deepspeed train.py --lora --model_name_or_path Qwen/Qwen2-VL-7B-Instruct {run}"
    assert facts(draft(tmp_path, "flag.sh", flag))["training.lora_rank"] == 16
    vision = (
        f"deepspeed train.py --model_id Qwen/Qwen2-VL-7B-Instruct --lora_enable True --lora_rank 32 {run}"
    )
    found = facts(draft(tmp_path, "vision.sh", vision))
    assert (found["model.preset"], found["training.lora_rank"]) == ("qwen2.5-vl-7b", 32)
    named = draft(tmp_path, "named.sh", f"python train_lora.py --model_name_or_path Qwen/Qwen3-8B {run}")
    assert any("called after LoRA" in warning for warning in named.warnings)
    own = draft(
        tmp_path, "own.sh", f"python train.py --model_name_or_path Qwen/Qwen3-8B --expert_lora true {run}"
    )
    assert own.unknown == {"own.sh": ["expert_lora"]}
    scaled = (
        f"torchrun --standalone train.py --model_name_or_path Qwen/Qwen3-8B --lora_r 8 --lora_alpha 16 {run}"
    )
    assert draft(tmp_path, "scaled.sh", f"{scaled} --custom_offload None").unknown == {}


def test_programs_of_verl_that_learn_from_pairs_or_only_generate(tmp_path: Path) -> None:
    text = "torchrun -m verl.trainer.fsdp_dpo_trainer data.train_files=a.parquet data.train_batch_size=64 "
    found = facts(
        draft(tmp_path, "dpo.sh", f"{text} model.partial_pretrain=Qwen/Qwen2.5-3B trainer.total_epochs=2")
    )
    assert found["training.objective"] == "dpo"
    text = (
        "python3 -m verl.trainer.main_generation trainer.nnodes=1 model.path=Qwen/Qwen3-8B data.n_samples=1"
    )
    with pytest.raises(InputError, match="only generates"):
        draft(tmp_path, "generate.sh", text)


def test_a_model_card_quotes_its_configuration(tmp_path: Path) -> None:
    run = "base_model: Qwen/Qwen3-14B\nadapter: qlora\nload_in_4bit: true\nlora_r: 16\nmicro_batch_size: 2\n"
    run += "datasets: [{path: a}]\nnum_epochs: 4\n"
    card = f"---\nbase_model: other\n---\n\n```yaml\n{run}```\n\n# Results\n---\n"
    result = draft(tmp_path, "README.md", card)
    found = facts(result)
    assert (found["model.preset"], found["training.method"], found["training.epochs"]) == (
        "qwen3-14b",
        "qlora",
        4.0,
    )
    assert "README.md" in result.facts["training.epochs"].where
    with pytest.raises(InputError, match="quotes no configuration"):
        draft(tmp_path, "EMPTY.md", "# A page\n\nwithout a block\n")


def test_the_image_that_wan_starts_from_has_keys_and_values_of_its_own() -> None:
    of_text, of_image = (preset_of_hub_name(f"Wan-AI/Wan2.1-{kind}-14B") for kind in ("T2V", "I2V"))
    assert of_text is not None and of_image is not None
    more = int(of_image.values["params"]) - int(of_text.values["params"])
    blocks = 40 * (2 * 5120 * 5121 + 5120)  # two matrices with biases and a norm in each
    projection = 2 * 1280 + 1280 * 1281 + 1281 * 5120 + 2 * 5120
    assert more == blocks + projection + 20 * 4 * 5120  # 36 channels instead of 16, patches of 2 x 2
    assert "wan2.1-i2v-14b" in load_passes()


def test_a_value_stated_beside_the_files_that_cannot_be_is_named() -> None:
    values = {"training.tokens": "1e9", "constraints.deadline": "friday"}
    warnings = workload_from([], Wishes(model="qwen2.5-7b", values=values)).warnings
    assert any("constraints.deadline: is not a duration: 'friday'" in text for text in warnings)
    fine = {**values, "constraints.deadline": "7d"}
    assert not workload_from([], Wishes(model="qwen2.5-7b", values=fine)).warnings


def test_what_is_still_to_be_given_is_said_once() -> None:
    initial = workload_from([], Wishes(model="qwen2.5-7b", values={"training.epochs": 3}))
    assert any(text.startswith("data.samples") for text in initial.to_fill)
    assert not any("data.samples" in text for text in initial.warnings)


def test_a_stated_list_is_checked_value_by_value() -> None:
    values = {"training.tokens": "1e9", "constraints.purchase_options": ["spott"]}
    [warning] = workload_from([], Wishes(model="qwen2.5-7b", values=values)).warnings
    assert "constraints.purchase_options" in warning and "spott" in warning


@pytest.mark.parametrize(("section", "objective"), [("grpo", "grpo"), ("rl", "grpo"), ("dpo", "dpo")])
def test_forks_of_torchtitan_that_do_not_pretrain_are_refused(
    section: str, objective: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=rf"\[{section}\] is of a fork.* training.objective={objective}"):
        draft(tmp_path, "run.toml", f"{TITAN}[{section}]\nbeta = 0.1\n")


def test_keys_inside_sections_that_are_not_known_are_named(tmp_path: Path) -> None:
    usual = "dataset = 'c4'\nmax_norm = 1.0\n[optimizer]\nname = 'AdamW'\nlr = 3e-4\n"
    assert draft(tmp_path, "run.toml", f"{TITAN}{usual}").unknown == {}
    own = draft(tmp_path, "own.toml", f"{TITAN}teacher = 'b'\nprofile = false\n[model.args]\nlayers = 2\n")
    assert own.unknown == {"own.toml": ["training.teacher"]}


@pytest.mark.parametrize(
    ("model", "stated", "length", "warned"),
    [
        ("google/flan-t5-base", "--max_source_length 1024 --max_target_length 128", 576, False),
        ("google/flan-t5-base", "--max_source_length 1024", 1024, True),
        ("Qwen/Qwen2.5-7B", "--max_source_length 1024 --max_target_length 128", 1152, False),
    ],
)
def test_sources_and_targets_are_halves_of_an_encoder_decoder_and_parts_of_a_decoder_s_sequence(
    model: str, stated: str, length: int, warned: bool, tmp_path: Path
) -> None:
    run = "--per_device_train_batch_size 8 --num_train_epochs 1"
    result = draft(
        tmp_path, "run.sh", f"python run_summarization.py --model_name_or_path {model} {stated} {run}"
    )
    assert facts(result)["training.sequence_length"] == length
    assert any("max_target_length is not stated" in text for text in result.warnings) is warned


def test_an_image_encoder_that_swift_trains_beside_a_frozen_model_is_said(tmp_path: Path) -> None:
    text = "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type full --num_train_epochs 1"
    result = draft(tmp_path, "run.sh", f"{text} --freeze_llm true --freeze_vit false")
    assert any("image encoder learns too" in warning for warning in result.warnings)


def test_other_commands_of_litgpt_around_the_training_do_not_count(tmp_path: Path) -> None:
    fetched = "litgpt download meta-llama/Llama-3.2-1B --access_token a\n"
    tuned = "litgpt {} meta-llama/Llama-3.2-1B --train.epochs 2\n"
    found = facts(draft(tmp_path, "lora.sh", fetched + tuned.format("finetune_lora")))
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 8)
    for command in ("finetune_adapter", "finetune_adapter_v2"):
        found = facts(draft(tmp_path, "own.sh", fetched + tuned.format(command)))
        assert (found["training.method"], found["training.adapter.kind"]) == ("lora", "adaption_prompt")


def test_a_script_of_verl_that_also_generates_or_prepares_pairs_is_what_it_trains(tmp_path: Path) -> None:
    generates = (
        "python3 -m verl.trainer.main_generation trainer.nnodes=1 model.path=Qwen/Qwen3-8B data.n_samples=1\n"
    )
    learns = (
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 "
        "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.rollout.n=4\n"
    )
    assert facts(draft(tmp_path, "both.sh", generates + learns))["training.objective"] == "grpo"
    prepares = "python prepare_dpo.py --out pairs\n"
    tunes = (
        "torchrun -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet data.train_batch_size=64 "
        "model.partial_pretrain=Qwen/Qwen2.5-3B trainer.total_epochs=2\n"
    )
    assert facts(draft(tmp_path, "sft.sh", prepares + tunes))["training.objective"] == "sft"


@pytest.mark.parametrize("name", ["defog/Mistral-7B-text-to-sql", "Qwen2.5-7B-how-to"])
def test_to_in_a_name_is_no_other_network(name: str) -> None:
    assert preset_of_hub_name(name) is not None


def test_what_a_program_prints_on_a_page_is_no_configuration(tmp_path: Path) -> None:
    run = "python train.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 --num_train_epochs 1"
    page = f'# Use\n```json\n{{"answer": 1}}\n```\n```bash\n{run}\n```\n'
    assert facts(draft(tmp_path, "README.md", page))["model.preset"] == "qwen3-8b"
