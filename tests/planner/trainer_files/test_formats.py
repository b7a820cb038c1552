"""Each kind of file: what is read, what is assumed, what is refused. Fixtures are written from documented keys."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from planner.commands.init import FORMAT_NAMES
from planner.errors import InputError
from planner.inputs import parse_workload
from planner.trainer_files.answer import workload_from
from planner.trainer_files.files import parse_document
from planner.trainer_files.gather import Wishes, gather
from planner.trainer_files.registry import FORMATS, detect
from tests.conftest import ROOT

AXOLOTL = """
base_model: NousResearch/Meta-Llama-3.1-8B
adapter: qlora
load_in_4bit: true
lora_r: 32
lora_target_linear: true
datasets: [{path: some/set, type: alpaca}]
sequence_len: 4096
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
num_epochs: 3
optimizer: adamw_bnb_8bit
bf16: auto
gradient_checkpointing: true
deepspeed: configs/zero3_bf16.json
"""
DEEPSPEED = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
}
LLAMA_FACTORY = """
model_name_or_path: Qwen/Qwen3-8B
stage: dpo
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
dataset: first,second
template: qwen3
cutoff_len: 2048
max_samples: 1000
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
num_train_epochs: 3.0
bf16: true
"""
ACCELERATE = """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config:
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_offload_params: false
mixed_precision: bf16
num_machines: 2
num_processes: 16
"""
PEFT = {"peft_type": "LORA", "r": 64, "base_model_name_or_path": "meta-llama/Llama-2-7b-hf",
        "target_modules": ["q_proj", "v_proj"]}  # fmt: skip
TRL = """
model_name_or_path: mistralai/Mistral-7B-v0.1
dataset_name: some/set
max_length: 1024
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
max_steps: 500
bf16: true
"""
CONFIG = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
          "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
          "tie_word_embeddings": True, "max_position_embeddings": 131072}  # fmt: skip
FIXTURES: dict[str, str] = {
    "axolotl": AXOLOTL, "deepspeed": json.dumps(DEEPSPEED), "llama_factory": LLAMA_FACTORY,
    "accelerate": ACCELERATE, "peft": json.dumps(PEFT), "trl": TRL, "huggingface": json.dumps(CONFIG),
}  # fmt: skip


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def draft(folder: Path, *texts: str, **wishes: Any) -> dict[str, Any]:
    paths = [write(folder, f"file{at}.txt", text) for at, text in enumerate(texts)]
    found = gather(paths, Wishes(**wishes))
    return {key: fact.value for key, fact in found.facts.items()}


def filled(text: str) -> str:
    """The blanks uncommented: what a user does first."""
    lines: list[str] = []
    for line in text.splitlines():
        section = re.fullmatch(r"# (model|training|data|constraints):", line)
        if section or (lines and "# FILL" in lines[-1]):
            line = line.replace("# ", "", 1)
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_fixture_and_is_told_by_its_content(name: str) -> None:
    assert detect(parse_document(FIXTURES[name], Path("some-file"))) == name


def test_the_command_offers_every_format() -> None:
    assert set(FORMAT_NAMES) == set(FORMATS)


def test_axolotl(tmp_path: Path) -> None:
    found = draft(tmp_path, AXOLOTL, accelerators=8)
    assert found["model.preset"] == "llama-3.1-8b"
    assert found["training.epochs"] == 3
    assert found["training.global_batch"] == 2 * 4 * 8
    assert found["training.sequence_length"] == 4096
    assert found["training.optimizer"] == "adamw_8bit"
    assert found["training.lora_rank"] == 32
    assert found["training.layout.recompute"] == "full"
    assert found["training.layout.zero_stage"] == 3  # by the name of the absent file


def test_a_named_file_is_read_beside_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write(folder, "zero3_bf16.json", json.dumps(DEEPSPEED))
    path = write(folder, "a.yaml", AXOLOTL)
    found = gather([path], Wishes())
    assert found.facts["training.layout.zero_stage"].value == 2
    assert any(
        "offload_optimizer" in text for text in found.warnings
    ) or "training.memory.offload_optimizer" in (found.facts)
    write(tmp_path, "ds.json", json.dumps({"zero_optimization": {"stage": 1}}))
    outside = write(folder, "b.yaml", AXOLOTL.replace("configs/zero3_bf16.json", "../ds.json"))
    found = gather([outside], Wishes())
    assert "training.layout.zero_stage" not in found.facts


def test_llama_factory(tmp_path: Path) -> None:
    found = draft(tmp_path, LLAMA_FACTORY, ACCELERATE)
    assert found["training.global_batch"] == 1 * 8 * 16
    assert found["data.samples"] == 2000
    assert found["training.layout.zero_stage"] == 2
    assert found["training.layout.recompute"] == "full"  # its default
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 8)


def test_predicting_files_train_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="trains nothing"):
        draft(tmp_path, LLAMA_FACTORY.replace("do_train: true", "do_predict: true"))


def test_deepspeed_auto_is_left_to_the_trainer(tmp_path: Path) -> None:
    found = draft(tmp_path, TRL, json.dumps(DEEPSPEED), accelerators=4)
    assert found["training.global_batch"] == 4 * 2 * 4
    assert found["training.steps"] == 500
    assert found["training.layout.zero_stage"] == 2


def test_contradictions_are_named_and_the_trainer_counts(tmp_path: Path) -> None:
    engine = write(tmp_path, "ds.json", json.dumps({"gradient_accumulation_steps": 16, "fp16": {"enabled": True}}
                                                    | {"zero_optimization": {"stage": 1}}))  # fmt: skip
    found = gather([write(tmp_path, "t.yaml", TRL), engine], Wishes())
    assert found.facts["training.precision"].value == "bf16"
    assert any("ds.json: fp16.enabled says fp16" in text for text in found.warnings)


def test_peft_names_adapter_and_model(tmp_path: Path) -> None:
    found = draft(tmp_path, json.dumps(PEFT))
    assert found["model.preset"] == "llama-2-7b"
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 64)


def test_a_model_alone_is_sized_and_its_training_assumed(tmp_path: Path) -> None:
    found = gather([write(tmp_path, "config.json", json.dumps(CONFIG))], Wishes())
    assert found.facts["model.params"].value == pytest.approx(1.2358e9, rel=0.001)
    assert found.facts["training.global_batch"].assumed
    assert {blank.key for blank in found.blanks} == {"training.tokens", "constraints.deadline"}


def test_model_config_serves_where_the_name_is_unknown(tmp_path: Path) -> None:
    unknown = AXOLOTL.replace("NousResearch/Meta-Llama-3.1-8B", "someone/unheard-of")
    with pytest.raises(InputError, match=r"base_model 'someone/unheard-of' is no preset.*--model-config"):
        draft(tmp_path, unknown)
    config = write(tmp_path, "config.json", json.dumps(CONFIG))
    assert draft(tmp_path, unknown, model_config=config)["model.layers"] == 16


def test_a_model_in_a_folder_beside_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", "config.json", json.dumps(CONFIG))
    assert draft(tmp_path, AXOLOTL.replace("NousResearch/Meta-Llama-3.1-8B", "./mine"))["model.layers"] == 16


@pytest.mark.parametrize("name", FORMATS)
def test_every_fixture_gives_a_valid_workload(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, "file", FIXTURES[name])
    model = "" if name not in ("deepspeed", "accelerate") else "llama-3.1-8b"
    initial = workload_from([path], Wishes(model=model))
    loaded = parse_workload(filled(initial.text), tmp_path / "workload.yaml")
    assert loaded.workload.training is not None


def test_anchors_and_merge_keys_mean_what_the_trainer_reads(tmp_path: Path) -> None:
    text = "base: &base {micro_batch_size: 3, sequence_len: 512}\n<<: *base\n" + AXOLOTL.replace(
        "sequence_len: 4096", "gradient_accumulation_steps: 2"
    )
    found = draft(tmp_path, text)
    assert found["training.sequence_length"] == 512
    assert found["training.global_batch"] == 2 * 4  # the last of repeated keys, over the merged one


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("just words", "holds no mapping"),
        ("a: 1\nb: 2\n", "is none of the files that are read"),
        ("a: [1, 2\n", "is not valid YAML"),
        ("base_model: x\nadapter: lora\nmicro_batch_size: two\n", "micro_batch_size: must be a number"),
        ("base_model: x\nadapter: lora\nmicro_batch_size: 1.5\n", "micro_batch_size: must be a whole number"),
        (
            "base_model: x\nadapter: lora\nmodel_name_or_path: y\ntemplate: z\n",
            "looks like axolotl and LLaMA",
        ),
        ("[" * 5000, "nested"),
        ("&a [*a]", "refers to itself"),
    ],
)
def test_odd_files_are_refused_with_a_reason(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        draft(tmp_path, text)
    assert "file0.txt" in str(error.value)
    assert reason in str(error.value)


def test_nothing_in_a_file_ends_a_comment_early(tmp_path: Path) -> None:
    text = AXOLOTL.replace("base_model: NousResearch/Meta-Llama-3.1-8B",
                           'base_model: "x/Meta-Llama-3.1-8B"\noptimizer_note: 1').replace(
        "adamw_bnb_8bit", '"odd\\nversion: 2"')  # fmt: skip
    initial = workload_from([write(tmp_path, "a.yaml", text)], Wishes())
    assert parse_workload(filled(initial.text), tmp_path / "w.yaml").workload.version == 1


SAMPLES = ROOT.parent / "shared" / "training_configs"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples beside the project")
@pytest.mark.shared
def test_every_sample_gives_a_valid_workload_or_a_named_reason(tmp_path: Path) -> None:
    reasons = {}
    for path in sorted(SAMPLES.glob("*/*")):
        launcher = path.parent.name in ("accelerate", "deepspeed")
        wishes = Wishes(model="llama-3.1-8b" if launcher else "", accelerators=8)
        try:
            initial = workload_from([path], wishes)
        except InputError as error:
            reasons[path.name] = str(error)
            continue
        parse_workload(filled(initial.text), tmp_path / "workload.yaml")
    assert all(path in text for path, text in reasons.items())
    assert all("is no preset" in text or "trains nothing" in text for text in reasons.values()), reasons
