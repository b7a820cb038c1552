"""What other people's files say that the first samples did not: small files with keys that the tools document."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.trainer_files.arguments import parse_arguments, programs_of
from planner.trainer_files.gather import Wishes, gather
from tests.planner.trainer_files.drafts import draft, values_of
from tests.planner.trainer_files.fixtures_of_trainers import UNSLOTH
from tests.planner.trainer_files.test_scripts import SIZES

MEGATRON = f"pretrain_gpt.py {SIZES}"
NEMO = """\
trainer: {devices: 8, num_nodes: 1, precision: bf16, max_steps: 10}
model:
  micro_batch_size: 1
  global_batch_size: 8
  encoder_seq_length: 2048
  num_layers: 4
  hidden_size: 256
  ffn_hidden_size: 1024
  num_attention_heads: 4
  tokenizer: {library: sentencepiece, model: /models/tokenizer.model}
"""
VERL_SFT = (
    "torchrun -m verl.trainer.sft_trainer data.train_files=x data.train_batch_size=64 data.max_length=2048 "
    "model.path=Qwen/Qwen3-30B-A3B trainer.total_epochs=1"
)
GRPO = {"model_name_or_path": "Qwen/Qwen2.5-7B-Instruct", "per_device_train_batch_size": "8", "num_generations": "16",
        "max_prompt_length": "512", "max_completion_length": "1024", "bf16": "true"}  # fmt: skip


def _yaml(values: dict[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in values.items())


def test_key_and_value_heads_by_the_word_of_megatron_deepspeed(tmp_path: Path) -> None:
    shared = values_of(tmp_path, "run.sh", f"{MEGATRON} --num-key-value-heads 1 --swiglu")
    whole = values_of(tmp_path, "run.sh", f"{MEGATRON} --swiglu")
    assert (shared["model.kv_heads"], whole["model.kv_heads"]) == (1, 2)
    assert (
        whole["model.params"] - shared["model.params"] == 4 * 2 * 128 * 64
    )  # a key and a value head less a layer


def test_layers_with_different_numbers_of_experts_are_named(tmp_path: Path) -> None:
    found = draft(tmp_path, "run.sh", f"{MEGATRON} --deepspeed --num-experts 4 4 8 8")
    assert found.facts["model.experts"].value == 4
    assert any("different numbers of experts" in text for text in found.warnings)
    assert not any(
        "different" in text
        for text in draft(tmp_path, "run.sh", f"{MEGATRON} --num-experts 4 pretrain_gpt.py").warnings
    )


def test_a_deepspeed_file_beside_megatrons_arguments_gives_the_stage(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "train_batch_size": 16}')
    assert (
        values_of(tmp_path, "a.sh", f"{MEGATRON} --deepspeed_config ds.json")["training.layout.zero_stage"]
        == 2
    )
    stated = values_of(tmp_path, "a.sh", f"{MEGATRON} --deepspeed_config ds.json --zero-stage 1")
    assert stated["training.layout.zero_stage"] == 1


def test_the_recompute_argument_of_2021_counts(tmp_path: Path) -> None:
    found = values_of(tmp_path, "a.sh", f"{MEGATRON} --activations-checkpoint-method uniform")
    assert found["training.layout.recompute"] == "full"


def test_powers_and_remainders_are_calculated() -> None:
    text = (
        "TOKENS=$((2 ** 22))\nSEQ=32768\nREST=$((10 % 4))\nrun --global-batch $((TOKENS / SEQ)) --rest $REST"
    )
    assert parse_arguments(text, "run.sh") == ({"global_batch": "128", "rest": "2"}, [])
    _, remarks = parse_arguments("run --batch $((9 ** 999999))", "run.sh")
    assert remarks == ["--batch is not read: the file does not set its value"]


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("[[ $A -gt 1 && $B = yes ]]", True),
        ("[ $A -gt 1 ] && [ $B = no ]", False),
        ("[[ $UNKNOWN = x && $B = no ]]", False),  # one that fails decides
        ("[[ $UNKNOWN = x || $B = yes ]]", True),
        ('[ $A -eq 1 -o "$B" = no ]', False),
        ('[ "$B" = "test yes" ]', False),  # a word of the value, not of the shell
        ("[ $A -gt 1 ] && ! [ $B = no ]", True),
    ],
)
def test_joined_conditions_are_decided(condition: str, taken: bool) -> None:
    text = f"A=2\nB=yes\nC=1\nif {condition}; then\n C=8\nfi\nrun --count $C"
    assert parse_arguments(text, "run.sh") == ({"count": "8" if taken else "1"}, [])


def test_a_condition_that_needs_the_unknown_stays_open() -> None:
    text = "A=2\nif [[ $UNKNOWN = x && $A -gt 1 ]]; then\n C=8\nelse\n C=1\nfi\nrun --count $C"
    assert parse_arguments(text, "run.sh")[0] == {}


def test_commands_of_tools_name_what_they_do(tmp_path: Path) -> None:
    assert programs_of("swift pt \\\n --model Qwen/Qwen3-8B", "run.sh") == ("swift", "pt")
    command = "megatron sft --load Qwen2.5-7B-mcore --tensor_model_parallel_size 4 --micro_batch_size 1 "
    found = values_of(
        tmp_path, "run.sh", f"{command} --global_batch_size 8 --max_length 4096 --train_iters 10"
    )
    assert (found["model.preset"], found["training.layout.tensor_parallel"]) == ("qwen2.5-7b", 4)


def test_grpo_of_trl_says_what_generates_and_that_no_reference_is_kept(tmp_path: Path) -> None:
    text = _yaml({**GRPO, "use_vllm": "true", "vllm_mode": "colocate", "beta": "0.0"})
    found = draft(tmp_path, "grpo.yaml", text)
    example = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    assert "engine: vllm" in example and "placement: colocated" in example
    assert found.facts["training.reference"].value == "none"
    assert "training.reference" not in draft(tmp_path, "grpo.yaml", _yaml({**GRPO, "beta": "0.04"})).facts


def test_weighty_keys_that_are_not_known_are_named(tmp_path: Path) -> None:
    light = {"wandb_project": "mine", "bnb_4bit_quant_type": "nf4", "save_shard_size": "5GB"}
    text = _yaml({**GRPO, "mtp_enabled": "true", **light})
    assert draft(tmp_path, "grpo.yaml", text).unknown == {"grpo.yaml": ["mtp_enabled"]}


def test_open_instruct_counts_its_own_words(tmp_path: Path) -> None:
    launch = "torchrun --nproc_per_node=8 open_instruct/dpo.py --model_name_or_path allenai/OLMo-2-1124-7B "
    dpo = f"{launch} --max_seq_length 4096 --per_device_train_batch_size 4 --num_epochs 1 --tensor_parallel_degree 2"
    found = values_of(tmp_path, "dpo.sh", dpo)
    assert (found["training.epochs"], found["training.global_batch"]) == (1, 4 * 8 // 2)
    grpo = "python grpo_fast.py --model_name_or_path Qwen/Qwen3-4B --total_episodes 1000 --num_learners_per_node 8 "
    longer = f"{grpo} --num_unique_prompts_rollout 32 --sequence_parallel_size 4"
    assert values_of(tmp_path, "grpo.sh", longer)["training.layout.context_parallel"] == 4


def test_simpo_is_told_by_its_margin_and_eager_attention_by_name(tmp_path: Path) -> None:
    text = "model_name_or_path: google/gemma-2-9b-it\nper_device_train_batch_size: 2\nmax_length: 2048\nbf16: true\n"
    found = values_of(tmp_path, "run.yaml", f"{text}gamma_beta_ratio: 0.5\nattn_implementation: eager\n")
    assert found["training.objective"] == "orpo"  # without a reference model, as SimPO
    assert found["training.attention"] == "materialised"
    assert "training.attention" not in values_of(tmp_path, "run.yaml", f"{text}attn_implementation: sdpa\n")
    for kernel in (
        "flash_attention_3",
        "kernels-community/vllm-flash-attn3",
        "kernels-community/flash-attn4",
    ):
        new = values_of(tmp_path, "run.yaml", f"{text}attn_implementation: {kernel}\n")
        assert new["training.attention"] == "native"
    for kernel in ("flash_attention_2", "kernels-community/flash-attn2", "kernels-community/flash-attn"):
        assert "training.attention" not in values_of(
            tmp_path, "run.yaml", f"{text}attn_implementation: {kernel}\n"
        )


def test_bfloat16_auto_of_axolotl(tmp_path: Path) -> None:
    text = "base_model: NousResearch/Llama-2-7b-hf\nmicro_batch_size: 1\nsequence_len: 512\nbfloat16: auto\n"
    assert values_of(tmp_path, "run.yaml", text)["training.precision"] == "bf16"


def test_weights_in_bf16_without_flags_of_the_trainer_are_trained_in_bf16(tmp_path: Path) -> None:
    text = "model_name_or_path: Qwen/Qwen2.5-0.5B\nper_device_train_batch_size: 2\ntorch_dtype: bfloat16\n"
    assert values_of(tmp_path, "run.yaml", text)["training.precision"] == "bf16"


def test_a_share_of_the_offload_of_deepspeed_is_named(tmp_path: Path) -> None:
    share = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.4}}}'
    found = draft(tmp_path, "ds.json", share, model="llama-3.1-8b")
    assert found.facts["training.memory.offload_optimizer"].value
    assert any("ratio" in text for text in found.warnings)
    groups = '{"zero_optimization": {"stage": 3, "mics_shard_size": 8}}'
    assert any(
        "mics_shard_size" in text for text in draft(tmp_path, "ds.json", groups, model="phi-2").warnings
    )


def test_optimizer_states_on_the_host_in_verl_count_and_moves_for_generation_are_named(
    tmp_path: Path,
) -> None:
    text = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B data.train_batch_size=32 "
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 actor_rollout_ref.actor.ppo_mini_batch_size=16 "
        "actor_rollout_ref.actor.megatron.param_offload=True algorithm.adv_estimator=grpo "
        "+actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_cpu_offload=True"
    )
    found = draft(tmp_path, "run.sh", text)
    assert found.facts["training.memory.offload_optimizer"].value
    assert any("param_offload" in warning for warning in found.warnings)


def test_the_engines_of_verls_supervised_trainer(tmp_path: Path) -> None:
    degrees = "engine.tensor_model_parallel_size=2 engine.expert_model_parallel_size=8"
    recompute = "+engine.override_transformer_config.recompute_granularity=full"
    found = values_of(tmp_path, "run.sh", f"{VERL_SFT} {degrees} {recompute}")
    assert (found["training.layout.tensor_parallel"], found["training.layout.expert_parallel"]) == (2, 8)
    assert (found["training.stack"], found["training.layout.zero_stage"]) == ("tuned", 1)
    assert found["training.layout.recompute"] == "full"
    staged = values_of(tmp_path, "run.sh", f"{VERL_SFT} engine.pipeline_model_parallel_size=2")
    assert (staged["training.stack"], staged["training.layout.zero_stage"]) == ("tuned", 1)
    automodel = values_of(
        tmp_path, "run.sh", f"{VERL_SFT} engine.ep_size=8 engine.activation_checkpointing=False"
    )
    assert (automodel["training.layout.expert_parallel"], automodel["training.layout.zero_stage"]) == (8, 3)
    assert automodel["training.layout.recompute"] == "none"


def test_a_sentencepiece_vocabulary_is_that_of_llama_2(tmp_path: Path) -> None:
    assert values_of(tmp_path, "run.yaml", NEMO)["model.vocab"] == 32000


def test_recurrent_layers_of_nemo_are_counted_or_asked_for(tmp_path: Path) -> None:
    recurrent = NEMO + "  activations_checkpoint_recurrent: false\n"
    with pytest.raises(InputError, match="recurrent"):
        values_of(tmp_path, "run.yaml", recurrent)
    mamba = f"{recurrent}  ngroups_mamba: 8\n"
    narrow, wide = (
        values_of(tmp_path, "run.yaml", mamba.replace("1024", width)) for width in ("1024", "4096")
    )
    assert narrow["model.params"] == wide["model.params"]  # no feed-forward networks beside the mixers


def test_files_of_nemo_rl_that_build_on_others_take_no_batch_from_the_micro_batch(tmp_path: Path) -> None:
    text = """\
defaults: grpo_math_1B.yaml
grpo: {val_period: 20}
policy:
  model_name: Qwen/Qwen3-4B
  train_micro_batch_size: 1
  megatron_cfg: {enabled: true, tensor_model_parallel_size: 4, optimizer: {optimizer_cpu_offload: true,
    use_distributed_optimizer: true}, peft: {enabled: true, dim: 16}}
cluster: {gpus_per_node: 8, num_nodes: 64}
"""
    found = draft(tmp_path, "run.yaml", text).facts
    assert found["training.global_batch"].assumed and found["training.global_batch"].value == 128
    assert found["training.memory.offload_optimizer"].value
    assert (found["training.layout.zero_stage"].value, found["training.lora_rank"].value) == (1, 16)


def test_a_teacher_in_a_file_of_nemo_rl_is_learned_from(tmp_path: Path) -> None:
    text = "policy: {model_name: Qwen/Qwen3-1.7B-Base}\nteacher: {model_name: Qwen/Qwen3-4B}\ndefaults: distill.yaml\n"
    found = values_of(tmp_path, "run.yaml", text)
    assert (found["training.objective"], found["training.teacher.preset"]) == ("distill", "qwen3-4b")


def test_unsloths_own_file(tmp_path: Path) -> None:
    found = values_of(tmp_path, "run.yaml", UNSLOTH)
    assert (found["model.preset"], found["training.method"]) == ("qwen2.5-0.5b", "qlora")
    assert (found["training.epochs"], found["training.global_batch"]) == (2, 8)
    assert (found["training.lora_rank"], found["training.adapter.targets"]) == (64, ["q_proj", "v_proj"])
    assert (found["training.layout.recompute"], found["training.packing"]) == ("full", False)
    full = values_of(tmp_path, "run.yaml", UNSLOTH.replace("training_type: lora", "training_type: full"))
    assert full["training.method"] == "full" and "training.lora_rank" not in full


def test_a_flavour_of_torchtitan_may_be_the_model_itself(tmp_path: Path) -> None:
    text = '[model]\nname = "deepseek_v3"\nflavor = "kimi_k2"\n[training]\nlocal_batch_size = 1\nseq_len = 4096\n'
    assert values_of(tmp_path, "run.toml", text)["model.preset"] == "kimi-k2"


def test_lora_in_a_name_of_torchtitan_is_not_full_training(tmp_path: Path) -> None:
    text = '[model]\nname = "deepseek_v3"\nflavor = "{}"\n[training]\nlocal_batch_size = 1\nseq_len = 4096\n'
    found = values_of(tmp_path, "run.toml", text.format("671B_lora"))
    assert (found["model.preset"], found["training.method"], found["training.lora_rank"]) == (
        "deepseek-v3",
        "lora",
        8,
    )
    assert "training.method" not in values_of(tmp_path, "run.toml", text.format("671B"))
    named = gather([Path("llama3_8b_float8_lora")], Wishes()).facts
    assert (named["model.preset"].value, named["training.method"].value) == ("llama-3.1-8b", "lora")


def test_fp8_of_gpt_neox(tmp_path: Path) -> None:
    text = (
        '{"pipe_parallel_size": 1, "model_parallel_size": 1, "num_layers": 4, "hidden_size": 128, "seq_length": 64, '
        '"num_attention_heads": 2, "train_micro_batch_size_per_gpu": 4, "te_fp8_format": "hybrid", '
        '"fp16": {"enabled": true}}'
    )
    assert values_of(tmp_path, "run.yml", text)["training.precision"] == "fp8"


AXOLOTL = {"sequence_len": "2048", "micro_batch_size": "2", "gradient_accumulation_steps": "4", "num_epochs": "1",
           "pretraining_dataset": "x", "bf16": "true"}  # fmt: skip


def test_axolotl_makes_a_new_model_from_sizes(tmp_path: Path) -> None:
    sizes = (
        "{model_type: mixtral, vocab_size: 32000, hidden_size: 1024, intermediate_size: 3584, "
        "num_hidden_layers: 16, num_attention_heads: 16, num_key_value_heads: 4, num_local_experts: 8, "
        "num_experts_per_tok: 2}"
    )
    found = draft(tmp_path, "run.yml", _yaml({**AXOLOTL, "base_model": "", "model_config": sizes}))
    attention = 2 * 1024 * 1024 + 2 * 1024 * 256
    layer = attention + 8 * 3 * 1024 * 3584 + 8 * 1024 + 2 * 1024
    assert found.facts["model.params"].value == 16 * layer + 2 * 32000 * 1024 + 1024
    assert found.facts["model.experts"].value == 8


def test_axolotl_names_sizes_that_differ_from_the_base_model(tmp_path: Path) -> None:
    base = {**AXOLOTL, "base_model": "Qwen/Qwen2.5-7B"}
    changed = {**base, "overrides_of_model_config": "{num_hidden_layers: 12, rope_theta: 10000}"}
    found = draft(tmp_path, "run.yml", _yaml(changed))
    assert any("overrides_of_model_config.num_hidden_layers:" in text for text in found.warnings)
    same = draft(tmp_path, "run.yml", _yaml({**base, "overrides_of_model_config": "{rope_theta: 10000}"}))
    assert not any("overrides" in text for text in same.warnings)


def test_llama_factory_without_a_kernel_of_attention(tmp_path: Path) -> None:
    run = {"model_name_or_path": "Qwen/Qwen2.5-7B", "stage": "sft", "finetuning_type": "full", "cutoff_len": "1024",
           "per_device_train_batch_size": "1", "template": "qwen", "dataset": "x"}  # fmt: skip
    found = values_of(tmp_path, "run.yaml", _yaml({**run, "flash_attn": "disabled"}))
    assert found["training.attention"] == "materialised"
    assert (
        values_of(tmp_path, "run.yaml", _yaml({**run, "flash_attn": "fa3"}))["training.attention"] == "native"
    )
    assert "training.attention" not in values_of(tmp_path, "run.yaml", _yaml({**run, "flash_attn": "fa2"}))


@pytest.mark.parametrize("flag", ["bf16", "fp16"])
def test_fp8_names_no_flag_of_what_it_computes_in_beside(tmp_path: Path, flag: str) -> None:
    run = {**AXOLOTL, "base_model": "Qwen/Qwen2.5-7B", flag: "true", "fp8": "true"}
    found = draft(tmp_path, "run.yml", _yaml(run))
    assert found.facts["training.precision"].value == "fp8"
    assert not any(flag in text for text in found.warnings)
