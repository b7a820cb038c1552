"""What the files of several tools state alike: optimizer, precision, sharding, adapters, the figures of the batch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from planner.errors import shortened
from planner.inputs.model_config import parse_json
from planner.trainer_files.arguments import CHOICES, CONFIGURATION, LAUNCHED, SLURM_GPUS, SLURM_NODES, VISIBLE
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import FROZEN_ENCODER, Document, Reading

MICRO_BATCH, ACCUMULATION = "batch.per_accelerator", "batch.accumulation"
ACCELERATORS, NODES = "batch.accelerators", "batch.nodes"
# of trainers that count optimizer updates: micro-batches, or responses, of one generation, and passes over it
GENERATION_STEPS, GENERATED, PASSES = "batch.generation_steps", "batch.generated", "batch.passes"

# degree of the layout -> Megatron's argument
MEGATRON_DEGREES = {
    "tensor_parallel": "tensor_model_parallel_size", "pipeline_parallel": "pipeline_model_parallel_size",
    "context_parallel": "context_parallel_size", "expert_parallel": "expert_model_parallel_size",
}  # fmt: skip
NOT_COMPILED = "torch_compile is not set: the framework without a compiler"
# name of an optimizer (a pattern over letters and digits) -> the workload's name, and what differs
_OPTIMIZERS: tuple[tuple[str, str, str], ...] = (
    (r".*(galore|apollo|qgalore).*", "adamw", "its projected states are counted as those of AdamW"),
    (r".*adafactor.*", "adafactor", ""),
    (r".*4bit.*", "adamw_8bit", "states of 4 bit are counted as 8 bit"),
    (r".*paged.*8bit.*", "paged_adamw_8bit", ""),
    (r".*8bit.*|adamw?bnb.*|.*fp8adam.*", "adamw_8bit", ""),
    (r".*paged.*lion.*", "lion", "paging to the host is not counted"),
    (r".*paged.*", "paged_adamw", ""),
    (r".*lion.*", "lion", ""),
    (r"(torch)?(fused)?sgd.*|lomo|adalomo", "sgd", ""),
    (
        r"adam|adamtorch.*|fusedadam|distributedfusedadam|mcoredistributedoptim|cpuadam|deepspeedcpuadam",
        "adamw",
        "",
    ),
    (r".*adamw.*|distributedfusedadam.*|.*adam", "adamw", ""),
)

# FlashAttention-3 and 4, by their own names and those of kernels in a collection; `auto` assumes the usual 2.
_NEW_ATTENTION = re.compile(r"(flash[-_]?att(n|ention)[-_]?|\bfa)[34]", re.IGNORECASE)
_PROJECTOR_RANK = 8
_UNSET: tuple[object, ...] = (None, "", [], {}, False, "False", "false", "None")
# arguments of launchers that change nothing but how processes find each other
_STARTS = (
    "standalone",
    "npernode",
    "rdzv_backend",
    "rdzv_endpoint",
    "rdzv_id",
    "machine_rank",
    "main_process_ip",
)
_HOSTS = re.compile(
    r"[\w.-]+:\d+(,\d+)*(@[\w.-]+:\d+(,\d+)*)*"
)  # of deepspeed: `localhost:4,5`, `a:0,1@b:0,1`


class Reader(Lookup, Reading):
    """A document, and what is noted of it: values are looked up by the file's keys and added as facts."""

    def __init__(self, document: Document, tool: str) -> None:
        """Take the parsed file; `tool` is the title of its format."""
        Lookup.__init__(self, document)
        Reading.__init__(self, document.path, tool)

    def add_optimizer(self, key: str) -> None:
        """Note the optimizer by the memory of its states."""
        name = shortened(self.text(key))
        plain = re.sub(r"[^a-z0-9]", "", name.lower().rsplit(".", 1)[-1])
        if not plain or plain == "auto":
            return
        for pattern, canonical, difference in _OPTIMIZERS:
            if re.fullmatch(pattern, plain):
                self.add("training.optimizer", canonical, f"{key} {name}")
                if difference:
                    self.warn(f"{key} {name}: {difference}")
                return
        self.add(
            "training.optimizer", "adamw", f"{key} {name} is not modelled: AdamW is assumed", assumed=True
        )
        self.warn(f"{key} {name} is not modelled: its memory is assumed to be AdamW's")

    def add_whole(self, target: str, *names: str, default: int | None = None) -> None:
        """Note the first of several keys that holds a whole number above zero, else what the tool takes by default."""
        for name in names:
            value = self.whole(name)
            if value is not None:
                self.add(target, value, name)
                return
        self.add(target, default, f"the default of {names[0]}", assumed=True)

    def add_flag(
        self, target: str, name: str, on: Any, off: Any, absent: str, *, usual: bool = False
    ) -> None:
        """Note one of two values by a flag; `absent` says why the `usual` one is taken where the flag is not stated."""
        stated = self.flag(name)
        chosen = usual if stated is None else stated
        self.add(target, on if chosen else off, absent if stated is None else name, assumed=stated is None)

    def add_recompute(self, name: str, absent: str, *, usual: bool = False) -> None:
        """Note by a flag whether all activations are computed again; `absent`, `usual`: as for `add_flag`."""
        self.add_flag("training.layout.recompute", name, "full", "none", absent, usual=usual)

    def add_stack(self, compiled: bool, source: str, otherwise: str) -> None:
        """Note whether the model is compiled: `source` says so, `otherwise` why it is assumed not to be."""
        kind, text = ("compiled", source) if compiled else ("eager", otherwise)
        self.add("training.stack", kind, text, assumed=not compiled)

    def add_targets(self, *names: str) -> None:
        """Note the matrices that have adapters, by the first of several keys that is given."""
        if name := self.first(*names):
            self.add("training.lora_targets", self.get(name), name)

    def add_stage(self, name: str) -> None:
        """Note the ZeRO stage, where it is one."""
        stage = self.number(name)
        if stage in (0, 1, 2, 3):
            self.add("training.layout.zero_stage", int(stage), name)

    def add_generations(self, section: str = "") -> None:
        """Note the responses of one generation, by what and how often they are learned from, as TRL counts them."""
        self.add_whole("rollouts.response_max", f"{section}max_completion_length")
        self.add_whole("rollouts.samples_per_prompt", f"{section}num_generations")
        self.add_whole(GENERATION_STEPS, f"{section}steps_per_generation")
        self.add_whole(GENERATED, f"{section}generation_batch_size")
        self.add_whole(PASSES, f"{section}num_iterations")
        if self.flag(f"{section}use_vllm"):
            self.add("rollouts.engine", "vllm", f"{section}use_vllm")
        placement = {"server": "disaggregated", "colocate": "colocated"}.get(self.text(f"{section}vllm_mode"))
        self.add("rollouts.placement", placement, f"{section}vllm_mode")
        self.add_whole("rollouts.tensor_parallel", f"{section}vllm_tensor_parallel_size")
        if self.has(f"{section}beta") and self.number(f"{section}beta") == 0:
            self.add("training.reference", "none", f"{section}beta 0")

    def add_precomputed_reference(self) -> None:
        """Note that the reference answers once, before training; TRL's key, which others pass on."""
        key = "precompute_ref_log_probs"
        if self.flag(key):
            self.add("training.reference", "precomputed", key)

    def add_length(self, *, steps: str, epochs: str, default_epochs: float | None) -> None:
        """Note how long training runs: steps count before epochs, as in the Trainer of Hugging Face."""
        count = self.whole(steps)
        self.seen.add(epochs)
        if count is not None:
            self.add("training.steps", count, steps)
            return
        passes = self.number(epochs)
        if passes is not None and passes > 0:
            self.add("training.epochs", float(passes), epochs)
        elif default_epochs is not None:
            self.add("training.epochs", default_epochs, f"the default of {epochs}", assumed=True)

    def add_trainer_precision(self) -> None:
        """Note the arithmetic from the flags of the Trainer of Hugging Face."""
        if self.flag("fp8"):
            self.add("training.precision", "fp8", "fp8")
            self.seen.update(("bf16", "fp16"))  # what it computes in beside fp8
        elif self.flag("bf16") or self.text("bf16") == "full":
            self.add("training.precision", "bf16", "bf16")
        elif self.flag("bfloat16") or self.flag("pure_bf16"):
            self.add("training.precision", "bf16", self.first("pure_bf16", "bfloat16"))
        elif left := next((name for name in ("bf16", "bfloat16") if self.text(name) == "auto"), ""):
            note = f"{left}: auto, on accelerators that have it"
            self.add("training.precision", "bf16", note, assumed=True)
        elif self.flag("fp16") or self.flag("float16"):
            self.add("training.precision", "fp16", self.first("fp16", "float16"))

    def add_shard(self, strategy: str, source: str) -> None:
        """Note the ZeRO stage of a sharding strategy of FSDP."""
        plain = re.sub(r"[^a-z0-9]", "", strategy.lower())
        stage = {
            "fullshard": 3, "1": 3, "shardgradop": 2, "2": 2, "noshard": 0, "3": 0, "hybridshard": 3, "4": 3,
            "hybridshardzero2": 2, "5": 2,
        }.get(plain)  # fmt: skip
        self.add("training.layout.zero_stage", stage, f"{source} {strategy}")
        if plain.startswith("hybrid"):
            self.warn_of_groups(f"{source} {strategy}")

    def warn_of_groups(self, source: str) -> None:
        """Note that only groups of accelerators share weights (hybrid sharding)."""
        self.warn(f"{source}: sharding within groups is not modelled; full sharding is taken")

    def add_fsdp2(self, reshard: bool | None, source: str) -> None:
        """Note the stage of the second version of FSDP: parameters stay gathered after forward, or not."""
        if reshard is None:
            self.add(
                "training.layout.zero_stage",
                3,
                f"{source}, resharding after forward by default",
                assumed=True,
            )
        else:
            self.add("training.layout.zero_stage", 3 if reshard else 2, source)

    def add_adapter(self, kind: str, source: str, rank: int | None, rank_key: str) -> None:
        """Note adapters, and their kind where it is not LoRA."""
        self.add("training.method", "lora", source)
        if rank is not None:
            self.add("training.lora_rank", rank, rank_key)
        if kind not in ("lora", "qlora", ""):
            self.add("training.adapter", kind, source)

    def add_projector(self, source: str) -> None:
        """Note that only a projector learns beside a frozen language model, as adapters of its size."""
        self.add_adapter("lora", source, _PROJECTOR_RANK, source)
        self.warn(
            f"{source}: what learns beside the frozen language model is counted as adapters of rank "
            f"{_PROJECTOR_RANK}, which are about as large as a projector"
        )

    def freeze_encoder(self, source: str, *, assumed: bool = False) -> None:
        """Note that an encoder of images or sound before the language model does not learn."""
        self.add(FROZEN_ENCODER, True, source, assumed=assumed)

    def freeze_beside_adapters(self, flag: str) -> None:
        """Note of a flag that is on by default whether adapters leave an encoder as it is or change it too."""
        if self.flag(flag) is False:
            self.adapt_encoder(f"{flag} false")
        else:
            self.freeze_by_default(flag)

    def adapt_encoder(self, source: str) -> None:
        """Note that adapters are in an encoder too: gradients pass through it, its weights stay."""
        self.add(FROZEN_ENCODER, "through", f"{source}: adapters in the encoder")

    def freeze_by_default(self, flag: str) -> None:
        """Note that an encoder does not learn by a flag, or by the flag's default."""
        stated = self.has(flag)
        self.freeze_encoder(flag if stated else f"{flag} is on by default", assumed=not stated)

    def warn_of_encoder(self, source: str) -> None:
        """Note that the image encoder learns too, beside a frozen language model."""
        self.warn(
            f"{source}: the image encoder learns too: its gradients and the states of its optimizer are not counted"
        )

    def add_halves(self, source: str, target: str) -> None:
        """Note one length for the two halves of an encoder-decoder, each of which is read by half of the layers."""
        lengths = [self.whole(source), self.whole(target)]
        if None not in lengths:
            text = f"mean of {source} and {target}: half of the layers encode"
            self.add("training.sequence_length", -(-sum(filter(None, lengths)) // 2), text)

    def add_engine(self, key: str) -> None:
        """Note DeepSpeed's file, or its keys where they stand in this one: as a section, or as JSON in quotes.

        Raises:
            InputError: the JSON is none; names the key.
        """
        stated = self.get(key)
        if isinstance(stated, str) and stated.lstrip().startswith("{"):
            stated = parse_json(stated, f"{self.path}: {key}")
        if isinstance(stated, Mapping):
            self.inside["deepspeed"] = stated
        elif isinstance(stated, str) and stated:
            self.files["deepspeed"] = stated

    def add_offload(self, source: str, *what: str) -> None:
        """Note what is kept in host memory: `optimizer`, `weights`, `activations`."""
        for name in what:
            self.add(f"training.memory.offload_{name}", True, source)

    def add_launcher(self) -> None:
        """Note the accelerators that a launcher on the same command line starts, else those of Slurm, and its own file.

        Launchers are torchrun, deepspeed and accelerate.
        """
        own = self.text(CONFIGURATION)
        if own.endswith((".yaml", ".yml", ".json")) and not self.text("config").endswith(own):
            self.files["accelerate"] = own
        hosts = self.text("include")
        if _HOSTS.fullmatch(hosts):
            count = hosts.count("@") + 1
            self.add(ACCELERATORS, hosts.count(",") + count, f"include {hosts}")
            self.add(NODES, count, "include")
            return
        total = self.get("num_processes")
        if _is_count(total):
            self.add(ACCELERATORS, int(total), "num_processes")
            return
        for each, machines in (("nproc_per_node", "nnodes"), ("num_gpus", "num_nodes")):
            number, nodes = self.get(each), self.get(machines)
            if nodes is None and machines == "nnodes":
                nodes = self.get(SLURM_NODES)
            if _is_count(number) and (nodes is None or _is_count(nodes)):
                count = int(nodes or 1)
                self.add(ACCELERATORS, int(number) * count, f"{each} x {machines}" if nodes else each)
                self.add(NODES, count, machines)
                return
        visible = self.get(VISIBLE)
        if _is_count(visible):
            self.add(ACCELERATORS, int(visible), "CUDA_VISIBLE_DEVICES", assumed=True)
            return
        given, nodes = self.get(SLURM_GPUS), self.get(SLURM_NODES)
        if _is_count(given) and _is_count(nodes):
            self.add(ACCELERATORS, int(given) * int(nodes), "#SBATCH")
            self.add(NODES, int(nodes), "#SBATCH")

    def add_attention(self, *names: str) -> None:
        """Note attention that takes its scores through memory (Transformers' `eager`), and kernels newer than usual."""
        for name in names:
            kernel = self.text(name)
            if kernel.lower() == "eager":
                self.add("training.attention", "materialised", f"{name} eager")
            elif _NEW_ATTENTION.search(kernel):
                self.add("training.attention", "native", f"{name} {kernel}")

    def add_eager(self, *names: str) -> None:
        """Note that the engine of rollouts launches every kernel from the host."""
        key = self.first(*names)
        if key and self.flag(key):
            self.add("rollouts.cuda_graphs", False, key)

    def name_unknown(self, known: Iterable[str], inside: Iterable[str] = ()) -> None:
        """Note keys with a value that were neither looked at nor match a pattern of `known`.

        Args:
            known: patterns of keys without effect, with their section before a dot where they are in one.
            inside: sections whose own keys are noted too, beside those at the top.
        """
        pattern = re.compile("|".join(known))
        looked = {key.split(".")[0] for key in self.seen}
        if self.document.syntax == "arguments":  # what variables tell launchers, whether a reader asks or not
            looked.update((CHOICES, *LAUNCHED, *_STARTS))
        self.unknown = [
            key
            for key, value in self.document.data.items()
            if key not in looked and value not in _UNSET and not pattern.fullmatch(key)
        ]
        sections = {name: self.document.data.get(name) for name in inside}
        below = {
            f"{name}.{key}": value
            for name, section in sections.items()
            if isinstance(section, Mapping)
            for key, value in section.items()
        }
        read = {".".join(key.split(".")[:2]) for key in self.seen}
        self.unknown += [
            key
            for key, value in below.items()
            if key not in read and value not in _UNSET and not pattern.fullmatch(key)
        ]


def _is_count(value: object) -> bool:
    word = str(value)
    return word.isascii() and word.isdigit() and len(word) < 8 and int(word) > 0
