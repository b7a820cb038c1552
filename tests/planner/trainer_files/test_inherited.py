"""Files that build on others (`defaults` of NeMo RL and Hydra), and the engines that verl names in place of degrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.trainer_files.files import MAX_BYTES
from planner.trainer_files.gather import Wishes, gather
from tests.planner.trainer_files.drafts import facts, values_of
from tests.planner.trainer_files.test_unseen_files import VERL_SFT

BASE = """
grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16, max_num_epochs: 1, max_num_steps: 1000000}
policy:
  model_name: Qwen/Qwen2.5-1.5B
  train_global_batch_size: 512
  train_micro_batch_size: 4
  max_total_sequence_length: 512
  precision: bfloat16
  dtensor_cfg: {enabled: true, tensor_parallel_size: 1}
  megatron_cfg: {enabled: false, tensor_model_parallel_size: 1, optimizer: {use_distributed_optimizer: true}}
  generation: {backend: vllm, max_new_tokens: "${policy.max_total_sequence_length}", colocated: {enabled: true}}
cluster: {gpus_per_node: 1, num_nodes: 1}
"""
MEGATRON = """
defaults: grpo.yaml
policy: {dtensor_cfg: {enabled: false}, megatron_cfg: {enabled: true, tensor_model_parallel_size: 2}}
"""
RUN = """
defaults: ../../megatron.yaml
grpo: {num_prompts_per_step: 64}
policy: {model_name: Qwen/Qwen3-8B, max_total_sequence_length: 4096}
cluster: {gpus_per_node: 8, num_nodes: 4}
"""
VERL_PPO = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=x data.train_batch_size=256 "
    "data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen3-8B"
)


def _written(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder / f"{next(iter(texts))}.yaml"


def test_a_chain_of_files_beside_the_first_is_read(tmp_path: Path) -> None:
    found = gather([_written(tmp_path, run=RUN, megatron=MEGATRON, grpo=BASE)], Wishes())
    values = facts(found)
    assert (values["model.preset"], values["training.global_batch"]) == ("qwen3-8b", 64 * 16)
    assert (values["training.sequence_length"], values["training.epochs"]) == (4096, 1)
    assert (values["training.layout.tensor_parallel"], values["training.layout.zero_stage"]) == (2, 1)
    assert any("builds on megatron.yaml, grpo.yaml" in note for note in found.notes)
    assert not any("defaults" in warning for warning in found.warnings)


def test_what_a_file_states_itself_counts_before_its_base(tmp_path: Path) -> None:
    sharded = "defaults: [grpo.yaml]\npolicy: {train_global_batch_size: 128, dtensor_cfg: {tensor_parallel_size: 4}}\n"
    values = facts(gather([_written(tmp_path, run=sharded, grpo=BASE)], Wishes()))
    assert (values["training.layout.tensor_parallel"], values["training.layout.zero_stage"]) == (4, 3)
    assert values["model.preset"] == "qwen2.5-1.5b"


@pytest.mark.parametrize("first", [True, False])
def test_a_base_elsewhere_is_read_where_it_is_named_and_never_by_itself(
    tmp_path: Path, *, first: bool
) -> None:
    run = _written(tmp_path / "recipes" / "llm", run=RUN)
    named = gather([run], Wishes())
    assert any("defaults ../../megatron.yaml: is not next to it" in warning for warning in named.warnings)
    _written(tmp_path, megatron=MEGATRON, grpo=BASE)
    bases = [tmp_path / "megatron.yaml", tmp_path / "grpo.yaml"]
    found = gather([*bases, run] if first else [run, *bases], Wishes())
    assert found.files == ["run.yaml"]
    assert facts(found)["training.layout.tensor_parallel"] == 2
    assert (
        facts(gather([run], Wishes())).get("training.layout.tensor_parallel") is None
    )  # not above its folder


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere = _written(tmp_path / "elsewhere", grpo=BASE)
    run = _written(tmp_path / "run", run=RUN.replace("../../megatron", "grpo"))
    (run.parent / "grpo.yaml").symlink_to(elsewhere)
    assert any("grpo.yaml: is not next to it" in warning for warning in gather([run], Wishes()).warnings)


def test_bases_are_read_by_the_same_limits(tmp_path: Path) -> None:
    circle = _written(tmp_path, run=RUN, megatron=MEGATRON, grpo=BASE + "defaults: run.yaml\n")
    with pytest.raises(InputError, match=r"grpo\.yaml: defaults run\.yaml: the file builds on itself"):
        gather([circle], Wishes())
    large = _written(tmp_path, run=RUN, megatron=MEGATRON, grpo=BASE + "#" * MAX_BYTES)
    with pytest.raises(InputError, match=r"grpo\.yaml"):
        gather([large], Wishes())
    wide = {f"base{at}": f"defaults: base{at + 1}.yaml\n" for at in range(30)}
    with pytest.raises(InputError, match="builds on more than 20 files"):
        gather([_written(tmp_path, run="defaults: base0.yaml\npolicy: {model_name: x}\n", **wide)], Wishes())
    many = f"defaults: [{', '.join(f'base{at}' for at in range(21))}]\npolicy: {{model_name: x}}\n"
    with pytest.raises(InputError, match="builds on more than 20 files"):
        gather([_written(tmp_path / "many", run=many)], Wishes())


def test_hydra_leaves_the_ending_out(tmp_path: Path) -> None:
    trainer = (
        "actor_rollout_ref: {model: {path: Qwen/Qwen3-4B}, rollout: {n: 8}}\ndata: {train_batch_size: 64}\n"
    )
    run = "defaults: [ppo_trainer, _self_, model@model: hf]\ndata: {train_batch_size: 128}\ntrainer: {nnodes: 2}\n"
    found = gather([_written(tmp_path, run=run, ppo_trainer=trainer)], Wishes())
    values = facts(found)
    assert (values["model.preset"], values["training.global_batch"]) == ("qwen3-4b", 128 * 8)
    assert any("defaults model@model: hf: choices of groups are not read" in text for text in found.warnings)


def test_what_a_file_states_before_its_base_gives_way_to_it(tmp_path: Path) -> None:
    run = "defaults: [_self_, grpo]\ngrpo: {num_prompts_per_step: 8}\npolicy: {precision: float32}\n"
    values = facts(gather([_written(tmp_path, run=run, grpo=BASE)], Wishes()))
    assert (values["training.global_batch"], values["training.precision"]) == (32 * 16, "bf16")


def test_an_absent_base_without_an_ending_is_named_too(tmp_path: Path) -> None:
    run = "defaults: [ppo_trainer, _self_, override hydra/job_logging: none]\n"
    run += "actor_rollout_ref: {model: {path: Qwen/Qwen3-4B}}\ndata: {train_batch_size: 64}\n"
    warnings = gather([_written(tmp_path, run=run)], Wishes()).warnings
    assert any("defaults ppo_trainer: is not next to it" in text for text in warnings)
    assert not any("choices of groups" in text for text in warnings)


@pytest.mark.parametrize(
    ("command", "tensors"),
    [
        (f"{VERL_SFT} engine=megatron optim=megatron", None),
        (f"{VERL_SFT} engine=megatron engine.tensor_model_parallel_size=2", 2),
        (f"E=megatron\n{VERL_SFT} engine=$E engine.tensor_model_parallel_size=2", 2),
        (f"{VERL_SFT} engine.strategy=megatron", None),
        (f"{VERL_PPO} model_engine=megatron", None),
        (f"{VERL_PPO} actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.ref.strategy=megatron", None),
        (f"{VERL_PPO} --config-name=ppo_megatron_trainer.yaml", None),
        (f"{VERL_PPO} actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4", 4),
    ],
)  # fmt: skip
def test_verl_on_megatron_by_name(tmp_path: Path, command: str, tensors: int | None) -> None:
    found = values_of(tmp_path, "run.sh", command)
    assert (found["training.stack"], found["training.layout.zero_stage"]) == ("tuned", 1)
    assert found.get("training.layout.tensor_parallel") == tensors
    assert found.get("training.layout.sequence_parallel") == (True if tensors else None)


@pytest.mark.parametrize(
    "command",
    [
        f"{VERL_SFT} engine=fsdp", VERL_SFT, VERL_PPO, f"{VERL_PPO} actor_rollout_ref.actor.strategy=fsdp2",
        f"{VERL_PPO} actor_rollout_ref.actor.strategy=fsdp actor_rollout_ref.actor.megatron.seed=1",
    ],
)  # fmt: skip
def test_verl_on_fsdp_otherwise(tmp_path: Path, command: str) -> None:
    found = values_of(tmp_path, "run.sh", command)
    assert (found["training.stack"], found["training.layout.zero_stage"]) == ("eager", 3)
