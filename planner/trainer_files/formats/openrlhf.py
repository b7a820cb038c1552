"""OpenRLHF: the arguments of its trainers in a launch script, with underscores (to 0.9) or dots (from 0.10).

Keys and defaults: openrlhf/cli/train_*.py. Batches of rollouts count prompts there, and those of training responses.
"""

from __future__ import annotations

from planner.trainer_files.formats.common import ACCELERATORS, MICRO_BATCH, Reader
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

# what is read -> its names, the newest first
_NAMES: dict[str, tuple[str, ...]] = {
    "model": ("actor.model_name_or_path", "model.model_name_or_path", "pretrain", "model_name_or_path"),
    "reward": ("reward.model_name_or_path", "reward_pretrain"),
    "batch": ("train.batch_size", "train_batch_size"),
    "micro": ("train.micro_batch_size", "micro_train_batch_size"),
    "rollouts": ("rollout.batch_size", "rollout_batch_size"),
    "samples": ("rollout.n_samples_per_prompt", "n_samples_per_prompt"),
    "epochs": ("train.max_epochs", "max_epochs"),
    "episodes": ("train.num_episodes", "num_episodes"),
    "most": ("data.max_samples", "max_samples"),
    "length": ("data.max_len", "max_len"),
    "prompt": ("prompt_max_len",),
    "response": ("rollout.max_new_tokens", "generate_max_len"),
    "estimator": ("algo.advantage.estimator", "advantage_estimator"),
    "penalty": ("algo.kl.init_coef", "init_kl_coef"),
    "engines": ("vllm.num_engines", "vllm_num_engines"),
    "eager": ("vllm.enforce_eager", "enforce_eager"),
    "engine_split": ("vllm.tensor_parallel_size", "vllm_tensor_parallel_size"),
    "together": ("train.colocate_all", "colocate_all_models"),
    "ahead": ("train.async_enable", "async_train"),
    "flying": ("train.partial_rollout_enable", "partial_rollout"),
    "stage": ("ds.zero_stage", "zero_stage"),
    "offload": ("ds.adam_offload", "adam_offload"),
    "tensor": ("ds.tensor_parallel_size", "ds_tensor_parallel_size"),
    "ring": ("ds.ring_attn_size", "ring_attn_size"),
    "precision": ("ds.param_dtype", "param_dtype"),
    "packing": ("ds.packing_samples", "packing_samples"),
    "loss": ("ds.use_liger_kernel", "use_liger_kernel"),
    "rank": ("ds.lora.rank", "lora_rank"),
    "targets": ("ds.lora.target_modules", "target_modules"),
    "bits": ("ds.load_in_4bit", "load_in_4bit"),
    "plain": ("model.pretrain_mode_enable", "pretrain_mode"),
    "recompute": ("actor.gradient_checkpointing_enable", "model.gradient_checkpointing_enable",
                  "gradient_checkpointing"),
    "teacher": ("teacher.model_name_or_path", "teacher_model"),
}  # fmt: skip
# trainer -> objective; what an argument or a loss changes is decided where it is read
_TRAINERS = {
    "train_ppo_ray": "ppo", "train_ppo": "ppo", "train_dpo": "dpo", "train_kto": "kto", "train_rm": "reward",
    "train_sft": "sft", "train_kd": "distill", "train_ct": "sft", "train_prm": "sft",
    "train_knowledge_distillation": "distill", "train_opd": "distill",
}  # fmt: skip
_MARKS = ("micro_train_batch_size", "rollout_batch_size", "train.batch_size", "train.micro_batch_size")
# What its trainers take where an argument is left out.
_BATCH, _ROLLOUTS, _STAGE, _LONGEST, _ALL = 128, 1024, 2, 1024, 10**8
_EPOCHS = {"sft": 2.0, "distill": 2.0}


def recognises(document: Document) -> bool:
    """Whether the arguments are OpenRLHF's."""
    keys = Lookup(document)
    has_model = bool(keys.first(*_NAMES["model"]))
    return document.syntax == "arguments" and has_model and bool(keys.first(*_MARKS))


def read(document: Document) -> Reading:
    """Read a launch script."""
    reader = Reader(document, "OpenRLHF")
    reader.hub_key = reader.first(*_NAMES["model"])
    reader.hub_name = reader.text(reader.hub_key)
    objective = _objective(document, reader)
    estimator = reader.first(*_NAMES["estimator"]) if objective == "grpo" else ""
    reader.add(
        "training.objective",
        objective,
        f"{estimator} {reader.text(estimator)}" if estimator else "the trainer",
    )
    reader.add_whole(MICRO_BATCH, *_NAMES["micro"])
    _batch(reader, "training.global_batch")
    if objective in ("ppo", "grpo"):
        _reinforcement(reader)
    else:
        reader.add_launcher()
        _epochs(reader, "epochs", _EPOCHS.get(objective, 1.0))
        reader.add_whole("training.sequence_length", *_NAMES["length"])
        if objective == "distill":
            teacher = reader.first(*_NAMES["teacher"])
            reader.add("training.teacher", reader.text(teacher) or None, teacher)
        _flag(reader, "training.packing", "packing")
    _samples(reader)
    _method(reader)
    if "training.method" in reader.facts and "training.reference" not in reader.facts:
        text = "OpenRLHF loads the reference beside adapters too"
        reader.add("training.reference", "resident", text, assumed=True)
    if reader.flag("ref_offload"):
        reader.warn("ref_offload: the reference in host memory counts as on the accelerators")
    _layout(reader)
    if "train_opd" in document.programs:
        reader.warn("train_opd: the responses that the student generates in each step are not counted")
    for remark in document.programs:
        if remark in ("train_ct", "train_prm"):
            reader.warn(f"{remark}: counted as fine-tuning on the sequences")
    return reader


def _objective(document: Document, keys: Lookup) -> str:
    """By the trainer that is started, else by arguments that one trainer alone has."""
    name = next((_TRAINERS[program] for program in document.programs if program in _TRAINERS), "")
    if not name:
        name = "ppo" if keys.first(*_NAMES["rollouts"], *_NAMES["engines"]) else "sft"
    if name == "sft" and keys.flag(keys.first(*_NAMES["plain"])):
        return "pretrain"
    estimator = keys.text(keys.first(*_NAMES["estimator"]))
    return "grpo" if name == "ppo" and estimator not in ("", "gae") else name


def _batch(reader: Reader, target: str) -> None:
    reader.add_whole(target, *_NAMES["batch"])
    if target not in reader.facts:
        reader.add(target, _BATCH, f"the default of {_NAMES['batch'][-1]}", assumed=True)


def _epochs(reader: Reader, name: str, default: float) -> None:
    key = reader.first(*_NAMES[name])
    passes = reader.whole(key)
    reader.add("training.epochs", float(passes or default), key or f"the default of {_NAMES[name][-1]}",
               assumed=not passes)  # fmt: skip


def _reinforcement(reader: Reader) -> None:
    """A step generates `n_samples_per_prompt` responses to each prompt of its batch and learns in several updates."""
    update = reader.facts.pop("training.global_batch")
    key, many = reader.first(*_NAMES["rollouts"]), reader.first(*_NAMES["samples"])
    prompts, samples = reader.whole(key), reader.whole(many) or 1
    text = f"{key or _NAMES['rollouts'][-1]} x {many or _NAMES['samples'][-1]}"
    step = (prompts or _ROLLOUTS) * samples
    reader.add("training.global_batch", step, text, assumed=prompts is None)
    if step % update.value:
        reader.warn(f"train_batch_size: {update.value} does not divide {step} responses: left out")
    else:
        reader.add("rollouts.update_batch", update.value, update.where.partition(": ")[2])
    reader.add("rollouts.samples_per_prompt", samples, many or "one response to a prompt")
    reader.add_whole("rollouts.epochs", *_NAMES["epochs"])
    _epochs(reader, "episodes", 1.0)
    _lengths(reader)
    if reader.first(*_NAMES["engines"]):
        reader.add("rollouts.engine", "vllm", reader.first(*_NAMES["engines"]))
        reader.add_eager(*_NAMES["eager"])
        reader.add_whole("rollouts.tensor_parallel", *_NAMES["engine_split"])
    ahead = reader.first(*_NAMES["ahead"])
    ahead = ahead if reader.flag(ahead) else ""
    # of what generates ahead, only the trained models share accelerators
    together = bool(reader.flag(reader.first(*_NAMES["together"]))) and not ahead
    reader.add("rollouts.placement", "colocated" if together else "disaggregated",
               ahead or reader.first(*_NAMES["together"]) or "not colocate_all_models")  # fmt: skip
    if ahead:
        flying = reader.first(*_NAMES["flying"])
        reader.add("rollouts.steps_off_policy", 1, ahead)
        reader.add("rollouts.in_flight_updates", bool(reader.flag(flying)), flying or f"{ahead} alone waits",
                   assumed=not flying)  # fmt: skip
    penalty = reader.first(*_NAMES["penalty"])
    if penalty and reader.number(penalty) == 0:
        reader.add("training.reference", "none", f"{penalty} 0")
    if reader.first(*_NAMES["reward"]):
        reader.warn(
            f"{reader.first(*_NAMES['reward'])}: the time and memory of a reward model are not counted"
        )
    nodes = reader.first("actor.num_nodes", "actor_num_nodes")
    each = reader.first("actor.num_gpus_per_node", "actor_num_gpus_per_node")
    if each:
        count = (reader.whole(each) or 1) * (reader.whole(nodes) or 1)
        reader.add(ACCELERATORS, count, f"{each}{f' x {nodes}' if nodes else ''}, those of the trained model")


def _lengths(reader: Reader) -> None:
    whole, prompt, response = (reader.first(*_NAMES[name]) for name in ("length", "prompt", "response"))
    longest, answer = (reader.whole(key) for key in (whole, response))
    asked = reader.whole(prompt)
    if longest is not None:
        reader.add("training.sequence_length", longest, whole)
        asked = asked or (longest - answer if answer and answer < longest else None)
    else:
        text = "prompt_max_len + generate_max_len"
        stated = asked is not None and answer is not None
        reader.add(
            "training.sequence_length", (asked or _LONGEST) + (answer or _LONGEST), text, assumed=not stated
        )
    reader.add("rollouts.prompt_max", asked, prompt or whole)
    reader.add("rollouts.response_max", answer, response)


def _samples(reader: Reader) -> None:
    most = reader.first(*_NAMES["most"])
    count = reader.whole(most)
    if count is not None and count < _ALL:
        reader.add("data.samples", count, f"{most}: at most so many", assumed=True)


def _method(reader: Reader) -> None:
    key = reader.first(*_NAMES["rank"])
    rank = reader.whole(key)
    if rank is None:
        return
    reader.add_adapter("lora", key, rank, key)
    targets = reader.first(*_NAMES["targets"])
    reader.add("training.lora_targets", reader.get(targets) if targets else "all-linear", targets or "all by default",
               assumed=not targets)  # fmt: skip
    if reader.flag(reader.first(*_NAMES["bits"])):
        reader.add("training.frozen_bits", 4, reader.first(*_NAMES["bits"]))


def _flag(reader: Reader, target: str, name: str) -> None:
    key = reader.first(*_NAMES[name])
    reader.add(target, bool(reader.flag(key)), key or f"{_NAMES[name][-1]} is not set", assumed=not key)


def _layout(reader: Reader) -> None:
    layout = "training.layout."
    stage = reader.first(*_NAMES["stage"])
    number = reader.number(stage)
    if number in (None, 0, 1, 2, 3):
        value = _STAGE if number is None else int(number)
        reader.add(f"{layout}zero_stage", value, stage or "the default of zero_stage", assumed=not stage)
    reader.add_whole(f"{layout}tensor_parallel", *_NAMES["tensor"])
    reader.add_whole(f"{layout}context_parallel", *_NAMES["ring"])
    if reader.flag(reader.first(*_NAMES["offload"])):
        reader.add_offload(reader.first(*_NAMES["offload"]), "optimizer")
    key = reader.first(*_NAMES["recompute"])
    reader.add(f"{layout}recompute", "full" if reader.flag(key) else "none",
               key or "gradient_checkpointing is not set", assumed=not key)  # fmt: skip
    word = reader.text(reader.first(*_NAMES["precision"])).lower()
    precision = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}.get(word, "bf16")
    reader.add("training.precision", precision, reader.first(*_NAMES["precision"]) or "bf16 by default",
               assumed=not word)  # fmt: skip
    if reader.flag(reader.first(*_NAMES["loss"])):
        reader.add("training.memory.loss", "tiled", reader.first(*_NAMES["loss"]))
    reader.add("training.stack", "eager", "the model runs as Transformers has it", assumed=True)
