"""Python as text: scripts and notebooks around a trainer, and XTuner's configurations. Nothing of them is run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.trainer_files.files import parse_document
from planner.trainer_files.python_text import read_script
from planner.trainer_files.python_values import Call
from tests.planner.trainer_files.fixtures_of_trainers import NEMO_RECIPE, TRAINER_SCRIPT, XTUNER
from tests.planner.trainer_files.test_tuners import draft, read


def test_a_script_around_a_trainer(tmp_path: Path) -> None:
    found = draft(tmp_path, TRAINER_SCRIPT, "train.py", accelerators=8)
    assert found["model.preset"] == "qwen3-8b"
    assert found["training.global_batch"] == 4 * 16 * 8
    assert (found["training.epochs"], found["training.sequence_length"]) == (2, 2048)
    assert (found["training.method"], found["training.lora_rank"]) == ("qlora", 16)
    assert found["training.adapter.targets"] == ["q_proj", "v_proj"]
    assert (found["training.objective"], found["training.packing"]) == ("sft", True)
    assert found["training.optimizer"] == "paged_adamw_8bit"


def test_what_trl_takes_where_a_script_is_silent(tmp_path: Path) -> None:
    found = read(tmp_path, TRAINER_SCRIPT.replace("max_length=2048,", ""), "train.py").facts
    for key, value in (
        ("training.precision", "bf16"), ("training.layout.recompute", "full"), ("training.sequence_length", 1024),
    ):  # fmt: skip
        assert (found[key].value, found[key].assumed) == (value, True)


def test_arguments_of_transformers_keep_its_defaults(tmp_path: Path) -> None:
    found = draft(tmp_path, TRAINER_SCRIPT.replace("SFTConfig", "TrainingArguments"), "train.py")
    assert (found["training.precision"], found["training.layout.recompute"]) == ("fp32", "none")


def test_a_false_bf16_is_no_default(tmp_path: Path) -> None:
    found = draft(tmp_path, TRAINER_SCRIPT.replace("packing=True", "packing=True, bf16=False"), "train.py")
    assert found["training.precision"] == "fp32"


def test_a_notebook_is_read_cell_by_cell(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# a title"]},
        {"cell_type": "code", "source": ["%%bash\n", "pip install trl"]},
        {"cell_type": "code", "source": ["!pip install trl\n", "%matplotlib inline\n"]},
        {"cell_type": "code", "source": TRAINER_SCRIPT.splitlines(keepends=True)},
    ]
    found = draft(tmp_path, json.dumps({"cells": cells}), "train.ipynb")
    assert (found["model.preset"], found["training.lora_rank"]) == ("qwen3-8b", 16)
    with pytest.raises(InputError, match="is not a notebook"):
        read(tmp_path, "{}", "other.ipynb")


GRPO = """
from trl import GRPOConfig, GRPOTrainer
trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-7B-Instruct",
    args=GRPOConfig(output_dir="o", per_device_train_batch_size=8, max_steps=100, max_prompt_length=512),
    train_dataset=data,
)
"""


def test_grpo_generates_what_trl_does_by_default(tmp_path: Path) -> None:
    found = read(tmp_path, GRPO, "train.py", accelerators=4)
    assert found.facts["training.objective"].value == "grpo"
    assert found.facts["training.global_batch"].value == 8 * 4
    example = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    assert "max: 512" in example and "samples_per_prompt: 8" in example


UNSLOTH = """
from unsloth import FastLanguageModel
from trl import GRPOConfig, GRPOTrainer
longest = 1024
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="unsloth/Qwen3-4B", max_seq_length=longest, load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=32, use_gradient_checkpointing="unsloth")
args = GRPOConfig(per_device_train_batch_size=1, num_generations=6, max_steps=250,
                  max_completion_length=longest - 256)
GRPOTrainer(model=model, args=args).train()
"""


def test_unsloth_fills_the_batch_with_a_group(tmp_path: Path) -> None:
    found = draft(tmp_path, UNSLOTH, "train.py")
    assert found["training.global_batch"] == 6
    assert (found["training.method"], found["training.layout.recompute"]) == ("qlora", "full")
    assert found["training.sequence_length"] == 1024


def test_pairs_of_an_embedding_model(tmp_path: Path) -> None:
    text = """
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
model = SentenceTransformer("answerdotai/ModernBERT-base")
args = SentenceTransformerTrainingArguments(output_dir="o", per_device_train_batch_size=256, bf16=True)
SentenceTransformerTrainer(model=model, args=args, train_dataset=data).train()
"""
    found = draft(tmp_path, text, "train.py", accelerators=8)
    assert (found["training.objective"], found["training.contrastive.width"]) == ("contrastive", 768)
    assert found["training.global_batch"] == 256 * 8


def test_a_length_is_never_assumed_beyond_the_model_s_own(tmp_path: Path) -> None:
    text = TRAINER_SCRIPT.replace("Qwen/Qwen3-8B", "bert-base-uncased").replace(
        "SFTConfig", "TrainingArguments"
    )
    text = text.replace("SFTTrainer", "Trainer").replace("max_length=2048,", "")
    found = read(tmp_path, text, "train.py").facts["training.sequence_length"]
    assert (found.value, found.assumed) == (512, True)


def test_what_a_launcher_sets_has_no_default(tmp_path: Path) -> None:
    text = TRAINER_SCRIPT.replace(
        "PER_STEP // EACH", 'PER_STEP // EACH // int(os.environ.get("WORLD_SIZE", 1))'
    )
    found = read(tmp_path, text, "train.py", accelerators=8)
    assert any(
        "gradient_accumulation_steps: the script works out the value" in text for text in found.warnings
    )
    assert found.facts["training.global_batch"].value == 4 * 8


def test_defaults_of_a_script_s_own_command_line_are_named(tmp_path: Path) -> None:
    text = """
import argparse
from transformers import Trainer, TrainingArguments, AutoModelForCausalLM
parser = argparse.ArgumentParser()
parser.add_argument("--model-name", default="Qwen/Qwen3-8B")
parser.add_argument("--batch", type=int, default=2)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model_name)
Trainer(model=model, args=TrainingArguments(output_dir="o", per_device_train_batch_size=args.batch)).train()
"""
    found = read(tmp_path, text, "train.py", accelerators=4)
    assert found.facts["training.global_batch"].value == 8
    assert any("model_name, batch" in text for text in found.warnings)


def test_the_model_that_is_trained_is_not_the_one_that_teaches(tmp_path: Path) -> None:
    text = """
from trl.experimental.gkd import GKDConfig, GKDTrainer
from transformers import AutoModelForCausalLM
teacher = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-32B")
student = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-8B")
GKDTrainer(model=student, teacher_model=teacher, args=GKDConfig(output_dir="o", max_steps=10)).train()
"""
    found = draft(tmp_path, text, "train.py")
    assert (found["model.preset"], found["training.teacher.preset"]) == ("qwen3-8b", "qwen3-32b")
    assert found["training.objective"] == "distill"
    warnings = "; ".join(read(tmp_path, text, "train.py").warnings)
    assert "writes its own answers is not counted" in warnings and "teacher_model" not in warnings
    assert not read(tmp_path, text, "train.py").unknown
    off_policy = text.replace("max_steps=10", "max_steps=10, lmbda=0.0")
    assert not any("own answers" in text for text in read(tmp_path, off_policy, "train.py").warnings)


def test_a_script_without_its_model_asks_for_it(tmp_path: Path) -> None:
    text = TRAINER_SCRIPT.replace('MODEL = "Qwen/Qwen3-8B"', "MODEL = sys.argv[1]")
    with pytest.raises(InputError, match=r"states no model.*--model PRESET"):
        read(tmp_path, text, "train.py")
    assert draft(tmp_path, text, "train.py", model="qwen3-14b")["model.preset"] == "qwen3-14b"


def test_xtuner(tmp_path: Path) -> None:
    found = draft(tmp_path, XTUNER, "run.py", accelerators=8)
    assert found["model.preset"] == "llama-3-8b"
    assert found["training.global_batch"] == 1 * 16 * 8 // 2
    assert (found["training.epochs"], found["training.sequence_length"]) == (3, 4096)
    assert (found["training.method"], found["training.lora_rank"]) == ("qlora", 64)
    assert (found["training.precision"], found["training.optimizer"]) == ("bf16", "adamw")
    assert (found["training.objective"], found["training.packing"]) == ("sft", True)


def test_xtuner_counts_iterations_of_micro_batches(tmp_path: Path) -> None:
    text = XTUNER.replace(
        "train_cfg = dict(type=TrainLoop, max_epochs=max_epochs)", "train_cfg = dict(max_iters=1600)"
    )
    assert draft(tmp_path, text, "run.py")["training.steps"] == 100


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = 3 * 4 + 2", 14), ("a = 7\na //= 2", 3), ("a = -1.5", -1.5), ("b = {'x': 5}\na = b['x']", 5),
        ("a = dict(dict(x=1), y=2)", {"x": 1, "y": 2}), ("a = 1 if False else 2", 2), ("a = '' or 'b'", "b"),
        ("if False:\n  a = 1\nelse:\n  a = 2", 2), ("def f(a=5): pass", 5), ("class C:\n  a: int = 6\na = C().a", 6),
        ("from dataclasses import field\nclass C:\n  x: int = field(default=8)\na = c.x", 8),
        ("a = 1\nif unknown:\n  a = 1", 1), ("if unknown:\n  a = 3", 3), ("b = 'x'\na = 1 if b == 'x' else 2", 1),
        ("if __name__ == '__main__':\n  a = 4\nelse:\n  a = 5", 4), ("a = 1\ndef f(a): a = 2", 1),
        ("f(7)\ndef f(a=5): pass", 7), ("a = 0 and unknown", 0), ("if (a := 3): pass", 3), ("a = None is None", True),
        ("b = dict(x=1)\nif unknown:\n  b['y'] = 2\na = b['y']", 2),
        ("b, a = 1, 2", 2), ("a = [1, 2]", [1, 2]), ("a = x.get('k', 9)", 9), ("a = torch.bfloat16", "bfloat16"),
    ],
)  # fmt: skip
def test_values_that_follow_from_constants(text: str, value: Any) -> None:
    assert read_script(text, Path("a.py")).values["a"] == value


@pytest.mark.parametrize(
    "text",
    [
        "a = 9 ** 9 ** 9",
        "a = 'x' * 10 ** 9",
        "a = [unknown]",
        "a = 1 / 0",
        "a = f'{b}'",
        "a = 1\na = b",
        "if unknown:\n  a = 1\nelse:\n  a = 2",
        "a = 1\nif unknown:\n  a = 2",
        "a = 1\nif unknown:\n  if other:\n    a = 2",
        "try:\n  a = 1\nexcept E:\n  a = 2",
        "a = 1\nfor i in x:\n  a *= 2",
        "a = 1\nfor a in x: pass",
        "a = 1\nb, a = f()",
        "a = 1\nwith f() as (b, a): pass",
        "f(b)\ndef f(a=5): pass",
        "f(1)\nf(2)\ndef f(a=5): pass",
        "match x:\n  case 1:\n    a = 1\n  case _:\n    a = 2",
        "b = dict(x=1)\nif unknown:\n  b['x'] = 2\na = b['x']",
        "a = 1 < 'x'",
        "x = 1\nclass C:\n  def f(self, x=2):\n    global a\n    a = x",
        "a = ~1",
    ],
)
def test_what_follows_from_anything_else_is_not_known(text: str) -> None:
    assert "a" not in read_script(text, Path("a.py")).values


def test_fields_that_are_set_behind_a_call_count(tmp_path: Path) -> None:
    text = """
from trl import SFTConfig, SFTTrainer
args = SFTConfig(output_dir="o", max_steps=5, per_device_train_batch_size=8)
args.max_steps = 77
args.per_device_train_batch_size = unknown()
SFTTrainer(model="Qwen/Qwen3-8B", args=args)
"""
    found = read(tmp_path, text, "train.py")
    assert found.facts["training.steps"].value == 77
    assert any("per_device_train_batch_size: the script works out" in text for text in found.warnings)


def test_what_decides_the_memory_and_is_not_read_is_named(tmp_path: Path) -> None:
    text = TRAINER_SCRIPT.replace("packing=True", "packing=True, **load()").replace(
        "quantization_config=stored", "quantization_config=stored if unknown else None"
    )
    text = text.replace("train_dataset", "peft_config=LoraConfig(r=8) if unknown else None, train_dataset")
    found = read(tmp_path, text, "train.py").warnings
    assert any("**load, peft_config, quantization_config: the script works out" in text for text in found)


def test_what_a_function_returns_is_named(tmp_path: Path) -> None:
    text = """
from trl import SFTTrainer
(args,) = parser.parse_args_into_dataclasses()
SFTTrainer(model="Qwen/Qwen3-8B", args=args, peft_config=get_peft_config(args))
"""
    found = read(tmp_path, text, "train.py").warnings
    assert any("args, peft_config: the script works out" in text for text in found)


def test_lora_of_peft_has_its_own_rank(tmp_path: Path) -> None:
    found = read(tmp_path, TRAINER_SCRIPT.replace("r=16, ", ""), "train.py").facts["training.lora_rank"]
    assert (found.value, found.assumed) == (8, True)


def test_rloo_compares_two_responses_by_default(tmp_path: Path) -> None:
    text = GRPO.replace("GRPO", "RLOO")
    blanks = read(tmp_path, text, "train.py").blanks
    assert any("samples_per_prompt: 2" in blank.example for blank in blanks)


@pytest.mark.parametrize(
    "cell",
    [
        "files = !ls\n",
        "!accelerate launch \\\n  --steps 3\n",
        "?help\n",
        "help?\n",
        "x = %time f()\n",
        " " * 400_000,
    ],
)
def test_commands_of_a_notebook_are_left_out(cell: str, tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": source} for source in (cell, TRAINER_SCRIPT)]
    found = draft(tmp_path, json.dumps({"cells": cells}), "train.ipynb")
    assert found["model.preset"] == "qwen3-8b"


@pytest.mark.parametrize("value", ["device", "batch", "amp", "optimizer", "imgsz", "fraction", "model"])
@pytest.mark.parametrize("kind", ["[x, x]", "dict(a=x, b=x)", "F(x, x)"])
def test_values_that_hold_one_another_many_times_are_read_in_time(
    value: str, kind: str, tmp_path: Path
) -> None:
    text = (
        "import a\nx = 1\n"
        + f"x = {kind}\n" * 60
        + f"YOLO('yolo11m.pt').train(data='coco.yaml', {value}=x)\n"
    )
    begin = time.process_time()
    try:
        read(tmp_path, text, "train.py")
    except InputError as error:
        assert "train.py" in str(error)
    assert time.process_time() - begin < 5


def test_calls_come_in_their_order_and_name_what_is_not_read() -> None:
    calls = read_script("A(B(x=1), y=unknown).run()", Path("a.py")).calls
    assert [call.name for call in calls] == ["B", "A", "A.run"]
    assert calls[1].unread == ["y"] and calls[1].positional == (Call("B", (), {"x": 1}),)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000, "a = " + "[" * 150 + "]" * 150, "x = " + "-" * 20_000 + "1", "x = " + "+".join(["1"] * 20_000),
        "x = a" + ".b" * 20_000, "x = a" + "()" * 5000, "x = a" + "[0]" * 5000, "x = '" + "y" * 900_000 + "'",
        "x = \x00",
        "if a: pass\n" + "elif a: pass\n" * 5000, "x = dict(y=dict(z=1))\n" * 20_000,
        "import a\nf(" + "g(" * 90 + ")" * 91,
        "x = 1\n" + "x = [x, x]\n" * 60 + "y = x == x\n", "lambda: " * 5000 + "1",
    ],
    ids=range(14),
)  # fmt: skip
def test_odd_texts_end_in_time_with_a_workload_or_an_error_that_names_them(text: str) -> None:
    begin = time.process_time()
    try:
        parse_document(text, Path("odd.py"))
    except InputError as error:
        assert "odd.py" in str(error)
    assert time.process_time() - begin < 5


def test_blank_lines_of_a_notebook_are_read_in_time(tmp_path: Path) -> None:
    text = json.dumps({"cells": [{"cell_type": "code", "source": "\n" * 400_000}]})
    begin = time.process_time()
    with pytest.raises(InputError, match=r"blank\.ipynb"):
        read(tmp_path, text, "blank.ipynb")
    assert time.process_time() - begin < 5


def test_a_recipe_of_nemo_and_what_the_script_changes(tmp_path: Path) -> None:
    found = draft(tmp_path, NEMO_RECIPE, "run.py")
    assert found["model.preset"] == "llama-3-70b"
    assert (found["training.global_batch"], found["training.steps"]) == (128, 1000)
    assert (found["training.layout.tensor_parallel"], found["training.layout.pipeline_parallel"]) == (4, 2)
    assert "training.layout.context_parallel" not in found
    assert (found["training.precision"], found["training.objective"]) == ("fp8", "pretrain")
    assert found["training.sequence_length"] == 8192


def test_a_recipe_without_adapters_trains_all_weights(tmp_path: Path) -> None:
    text = NEMO_RECIPE.replace("pretrain_recipe(", "finetune_recipe(")
    assert draft(tmp_path, text, "run.py")["training.method"] == "lora"
    text = text.replace("finetune_recipe(", "finetune_recipe(peft_scheme=None, ")
    assert "training.method" not in draft(tmp_path, text, "run.py")


def test_what_a_recipe_sets_by_itself_is_named(tmp_path: Path) -> None:
    text = NEMO_RECIPE.replace("recipe.data.global_batch_size = 128\n", "").replace(
        "recipe.data.seq_length = 8192\n", ""
    )
    found = read(tmp_path, text, "run.py")
    assert any(
        "global_batch_size, seq_length: what llm.llama3_70b.pretrain_recipe sets" in text
        for text in found.warnings
    )


@pytest.mark.parametrize(
    ("recipe", "preset", "method"),
    [
        ("llama32_1b_pretrain_config", "llama-3.2-1b", None), ("qwen3_1p7b_sft_config", "qwen3-1.7b", None),
        ("qwen25_500m_peft_config", "qwen2.5-0.5b", "lora"), ("qwen3_30b_a3b_pretrain_config", "qwen3-30b-a3b", None),
        ("llama3_8b_128k_pretrain_config", "llama-3-8b", None),
    ],
)  # fmt: skip
def test_recipes_of_megatron_bridge_by_their_names(
    recipe: str, preset: str, method: str | None, tmp_path: Path
) -> None:
    text = (
        f"from megatron.bridge.recipes import {recipe}\ncfg = {recipe}()\ncfg.train.global_batch_size = 256\n"
    )
    found = draft(tmp_path, text, "run.py")
    assert (found["model.preset"], found.get("training.method")) == (preset, method)
    assert found["training.global_batch"] == 256


def test_a_configuration_of_megatron_bridge_around_a_model(tmp_path: Path) -> None:
    text = """
from megatron.bridge import AutoBridge
cfg.model = AutoBridge.from_hf_pretrained("Qwen/Qwen3-8B").to_megatron_provider()
cfg.train.global_batch_size = 512
cfg.train.train_iters = 2000
cfg.dataset.seq_length = 4096
"""
    found = draft(tmp_path, text, "run.py")
    assert (found["model.preset"], found["training.steps"]) == ("qwen3-8b", 2000)


def test_the_trainer_of_lightning_is_none_of_transformers(tmp_path: Path) -> None:
    text = """
import lightning as L
from transformers import AutoModel
model = AutoModel.from_pretrained("bert-base-uncased")
L.Trainer(max_epochs=10, devices=8).fit(model)
"""
    with pytest.raises(InputError, match="is none of the files that are read"):
        read(tmp_path, text, "train.py")
