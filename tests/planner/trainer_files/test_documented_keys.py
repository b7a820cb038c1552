"""Keys that files of trainers have by their documentation, and that change what a run costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.trainer_files.gather import Wishes, gather
from tests.planner.trainer_files.drafts import draft

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


@pytest.mark.parametrize(("peft", "method"), [('peft="lora"', "lora"), ("peft=None", None), ("", "lora")])
def test_adapters_of_megatron_bridge_are_an_argument_of_its_recipe(
    peft: str, method: str | None, tmp_path: Path
) -> None:
    text = "from megatron.bridge.recipes.qwen.qwen3 import qwen3_8b_finetune_config\n"
    text += f"cfg = qwen3_8b_finetune_config({peft})\ncfg.train.global_batch_size = 64\n"
    facts = draft(tmp_path, "run.py", text).facts
    assert (facts["training.method"].value if "training.method" in facts else None) == method


def test_embedders_of_swift_compare_pairs(tmp_path: Path) -> None:
    text = "swift sft --model Qwen/Qwen3-Embedding-0.6B --task_type {} --train_type full --max_steps 5"
    assert (
        draft(tmp_path, "run.sh", text.format("embedding")).facts["training.objective"].value == "contrastive"
    )
    assert any("seq_cls" in warning for warning in draft(tmp_path, "run.sh", text.format("seq_cls")).warnings)


def test_prompts_and_the_default_of_responses_make_the_length_of_grpo(tmp_path: Path) -> None:
    facts = draft(tmp_path, "run.sh", TRL.format("grpo") + " --max_prompt_length 1024").facts
    assert facts["training.sequence_length"].value == 1024 + 512


def test_a_command_that_names_a_file_which_is_not_there_asks_for_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"add grpo\.yaml to --from"):
        draft(tmp_path, "run.sh", "trl grpo --config grpo.yaml --num_processes 8")


def test_a_stated_objective_that_is_not_known_is_left_to_the_checks_of_workloads(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(TRL.format("sft"), encoding="utf-8")
    facts = gather([path], Wishes(values={"training.objective": "foo"})).facts
    assert facts["training.objective"].value == "foo"


CLM = "torchrun --nproc_per_node 8 run_clm.py --per_device_train_batch_size 4 --block_size 1024 --do_train"


def test_scripts_of_transformers_train_from_scratch_by_a_configuration(tmp_path: Path) -> None:
    found = draft(tmp_path, "run.sh", f"{CLM} --config_name gpt2-xl --tokenizer_name gpt2")
    assert found.facts["model.preset"].value == "gpt-2-1.5b"
    assert found.facts["training.global_batch"].value == 32
    sized = f"{CLM} --model_type gpt2 --tokenizer_name gpt2 --config_overrides n_embd=1024,n_layer=48"
    with pytest.raises(InputError, match=r"config_overrides n_embd=1024,n_layer=48.*--model-config"):
        draft(tmp_path, "run.sh", sized)


def test_scripts_without_a_trainer_count_their_steps(tmp_path: Path) -> None:
    text = "accelerate launch run_mlm_no_trainer.py --model_name_or_path roberta-large --train_file x.txt "
    found = draft(tmp_path, "run.sh", f"{text} --per_device_train_batch_size 32 --max_train_steps 10000")
    assert found.facts["training.steps"].value == 10000
    assert "training.epochs" not in found.facts


def test_a_controlnet_is_told_from_the_denoiser_beside_it(tmp_path: Path) -> None:
    text = "--pretrained_model_name_or_path stabilityai/stable-diffusion-xl-base-1.0 --resolution 1024"
    for program, warns in (("train_controlnet_sdxl.py", True), ("train_text_to_image_sdxl.py", False)):
        path = tmp_path / "run.sh"
        path.write_text(f"accelerate launch {program} {text} --max_train_steps 100\n", encoding="utf-8")
        found = gather([path], Wishes())
        assert any("a ControlNet learns" in warning for warning in found.warnings) is warns


@pytest.mark.parametrize(("encoder", "trains"), [("lora", "through"), ("frozen", "none")])
def test_torchtune_states_whether_adapters_are_in_the_encoder(
    encoder: str, trains: str, tmp_path: Path
) -> None:
    text = f"""model:
  _component_: torchtune.models.llama3_2_vision.lora_llama3_2_vision_11b
  decoder_trainable: lora
  encoder_trainable: {encoder}
  fusion_trainable: lora
  lora_rank: 8
batch_size: 2
epochs: 1
dtype: bf16
optimizer: {{_component_: torch.optim.AdamW}}
tokenizer: {{max_seq_len: 8192}}
"""
    assert draft(tmp_path, "run.yaml", text).facts["model.parts.1.trainable"].value == trains


def test_a_loop_of_accelerate_is_named_with_what_to_give_instead(tmp_path: Path) -> None:
    script = "from accelerate import Accelerator\naccelerator = Accelerator(mixed_precision='bf16')\n"
    with pytest.raises(InputError, match=r"training loop is code: planner init --model"):
        draft(tmp_path, "run.py", script)


@pytest.mark.parametrize(
    ("built", "params"),
    [
        ("LlamaForCausalLM(LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, "
         "num_hidden_layers=24, num_attention_heads=16, num_key_value_heads=4))", 336_118_784),
        ("BertForMaskedLM(BertConfig())", 109_500_000),
        ("GPT2LMHeadModel(AutoConfig.from_pretrained('gpt2', n_embd=1280, n_layer=36, n_head=20))", 774_000_000),
        ("AutoModelForCausalLM.from_config(GPT2Config(n_layer=24, n_embd=1024, n_head=16))", 354_800_000),
    ],
)  # fmt: skip
def test_models_that_scripts_build_from_a_configuration(built: str, params: int, tmp_path: Path) -> None:
    found = draft(tmp_path, "run.py", _script(built))
    assert found.facts["model.params"].value == pytest.approx(params, rel=0.01)


def test_sizes_that_a_script_works_out_are_asked_for(tmp_path: Path) -> None:
    for built, reason in (
        ("GPT2LMHeadModel(AutoConfig.from_pretrained('gpt2', vocab_size=len(tokenizer)))", "vocab_size"),
        ("Qwen2ForCausalLM(Qwen2Config(num_hidden_layers=24))", "hidden_size"),
    ):
        with pytest.raises(InputError, match=f"{reason}.*--model-config"):
            draft(tmp_path, "run.py", _script(built))


def _script(built: str) -> str:
    return (
        "from transformers import *\nimport torch\n"
        f"model = {built}\n"
        "args = TrainingArguments('out', per_device_train_batch_size=16, max_steps=1000, bf16=True)\n"
        "Trainer(model, args, train_dataset=None).train()\n"
    )


def test_alternatives_of_an_expression_are_matrices_of_their_own(tmp_path: Path) -> None:
    text = r"""base_model: Qwen/Qwen2.5-VL-7B-Instruct
processor_type: AutoProcessor
adapter: lora
lora_r: 32
lora_target_modules: 'model.language_model.layers.[\d]+.(mlp|self_attn).(up|down|gate|q|k|v|o)_proj'
sequence_len: 2048
micro_batch_size: 2
max_steps: 10
"""
    found = draft(tmp_path, "run.yml", text)
    names = ["up_proj", "down_proj", "gate_proj", "q_proj", "k_proj", "v_proj", "o_proj"]
    assert found.facts["training.adapter.targets"].value == names
    assert found.facts["model.parts.1.trainable"].value == "none"


def test_the_usual_file_of_sdxl_is_known(tmp_path: Path) -> None:
    text = 'pretrained_model_name_or_path = "/models/sd_xl_base_1.0.safetensors"\nresolution = "1024,1024"\n'
    text += (
        'train_batch_size = 4\nmax_train_steps = 100\nnetwork_module = "networks.lora"\nnetwork_dim = 32\n'
    )
    assert draft(tmp_path, "run.toml", text).facts["model.preset"].value == "stable-diffusion-xl"
