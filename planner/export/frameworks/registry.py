"""The registry of training frameworks: a new one is a module with `render` and `parse`, and an entry here."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

from planner.errors import InputError
from planner.export.frameworks.model import Parallel, Part, parallel_of
from planner.export.view import Launch
from planner.records import record


@record(frozen=True)
class Framework:
    """One framework; `module` holds `render` and `parse` and is imported when it is used.

    `trains` are the methods and objectives of workloads that it is known to have, besides all weights on text (sources
    in docs/export.md); None where the program decides, as with a library.
    """

    module: str
    title: str
    trains: frozenset[str] | None = None


class Writer(Protocol):
    """The two functions of a framework's module; `parse(render(p), p.nodes, p.gpus) == p` for what it can state."""

    def render(self, parallel: Parallel) -> Part:
        """Return flags, variables and files.

        Raises:
            InputError: the framework cannot state this layout; names what can.
        """

    def parse(self, part: Part, nodes: int, gpus: int) -> Parallel:
        """Return the layout that they state on so many nodes and accelerators."""


FRAMEWORKS: Mapping[str, Framework] = {
    "none": Framework("planner.export.frameworks.none", "variables PLANNER_* for your program"),
    "torchtitan": Framework(
        "planner.export.frameworks.torchtitan",
        "overrides of torchtitan's configuration",
        frozenset({"lora", "grpo"}),
    ),
    "megatron": Framework(
        "planner.export.frameworks.megatron", "arguments of Megatron-LM", frozenset({"grpo", "distill"})
    ),
    "nemo": Framework(
        "planner.export.frameworks.nemo",
        "overrides of a recipe of NeMo's Megatron-Bridge",
        frozenset({"lora"}),
    ),
    "deepspeed": Framework("planner.export.frameworks.deepspeed", "DeepSpeed's JSON and its arguments"),
    "accelerate": Framework(
        "planner.export.frameworks.accelerate", "options of accelerate launch (FSDP2, DeepSpeed)"
    ),
    "axolotl": Framework(
        "planner.export.frameworks.axolotl",
        "values over axolotl's configuration",
        frozenset({"lora", "qlora", "dpo", "kto", "orpo", "reward", "grpo"}),
    ),
    "llama-factory": Framework(
        "planner.export.frameworks.llama_factory",
        "values over LLaMA-Factory's YAML",
        frozenset({"lora", "qlora", "dpo", "kto", "orpo", "reward", "ppo"}),
    ),
}
_PLAIN = frozenset({"sft"})  # the loss of pre-training on other text


def writer_of(name: str) -> Writer:
    """The module of a framework."""
    return cast("Writer", importlib.import_module(FRAMEWORKS[name].module))


def part_of(name: str, launch: Launch) -> Part:
    """What states the layout of a launch: variables `PLANNER_*` in any case, and the framework's own flags.

    Raises:
        InputError: the plan has no layout, or the framework cannot state it.
    """
    parallel = parallel_of(launch)
    if parallel is None:
        if name != "none":
            raise InputError(
                f"--framework {name}: a plan of independent workers states no parallel layout; leave the option out"
            )
        return Part()
    variables = writer_of("none").render(parallel)
    if name == "none":
        return variables
    framework_part = _of_phase(writer_of(name).render(parallel), launch.training.phase)
    return replace(
        framework_part,
        env={**variables.env, **framework_part.env},
        notes=(*framework_part.notes, *_method_note(name, launch.training.methods)),
    )


def _of_phase(part: Part, phase: int | None) -> Part:
    """The part with files named by the phase they are of, so that all phases find theirs in one folder."""
    if phase is None:
        return part
    args, files = part.args, []
    for file in part.files:
        stem, dot, ending = file.path.rpartition(".")
        name = f"{stem}-{phase}{dot}{ending}"
        args = tuple(
            word.removesuffix(file.path) + name if word.rpartition("=")[2] == file.path else word
            for word in args
        )
        files.append(replace(file, path=name))
    return replace(part, args=args, files=tuple(files))


def _method_note(name: str, methods: Sequence[str]) -> list[str]:
    """Who trains by the plan's methods: the framework, where it has them, else the program, with those that have."""
    wanted = [method for method in methods if method not in _PLAIN]
    trains = FRAMEWORKS[name].trains
    if trains is None or not wanted:
        return []
    missing = [method for method in wanted if method not in trains]
    if not missing:
        return [
            f"the flags state the layout alone: set {' and '.join(wanted)} in the configuration of {name}"
        ]
    able = [key for key, other in FRAMEWORKS.items() if other.trains and other.trains.issuperset(wanted)]
    others = f"; --framework {' or '.join(able)} has it, where the layout allows" if able else ""
    return [
        f"the plan's method is {' with '.join(wanted)}: {name} is not known to have {' or '.join(missing)}, so your "
        f"program must bring it{others}"
    ]
