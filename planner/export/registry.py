"""The registry of targets: a new one is a module with `render`, an entry here and its golden."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol, cast

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.frameworks.registry import FRAMEWORKS
from planner.export.view import Launch
from planner.inputs.faults import near
from planner.records import record


@record(frozen=True)
class Target:
    """What a plan can be exported to.

    Attributes:
        module: holds `render`, a `Renderer`; it is imported when it is used.
        title: what it writes, for `--list`.
        validator: the program that checks what it writes, in the tests and for the user.
        options: values by key of `--option KEY=VALUE`, the default first; an empty tuple: any text, empty by default.
        whole: it starts nothing, and takes a fleet in two parts as one; others write a folder for each part.
        chains: its module has `chain`, a `Chainer`: the phases of a run can be started by one command.
    """

    module: str
    title: str
    validator: str
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    whole: bool = False
    chains: bool = False


@record(frozen=True)
class Options:
    """What the command line said: the framework that the flags are for, and the target's options, defaults included."""

    framework: str = "none"
    values: Mapping[str, str] = field(default_factory=dict)


class Renderer(Protocol):
    """Turns a launch into files."""

    def __call__(self, launch: Launch, options: Options) -> tuple[ExportFile, ...]:
        """Return the files, the one to start with first.

        Raises:
            InputError: the target cannot start this plan; names why and what can.
        """
        ...


class Chainer(Protocol):
    """Makes what starts the phases of a run, each after the one before."""

    def __call__(self, launch: Launch, phases: Sequence[Sequence[ExportFile]]) -> tuple[ExportFile, ...]:
        """Return all files, the one to start with first.

        Raises:
            InputError: the target cannot start these phases in turn.
        """
        ...


TARGETS: Mapping[str, Target] = {
    "torchrun": Target("planner.export.targets.torchrun", "shell script for each node", "shellcheck"),
    "slurm": Target(
        "planner.export.targets.slurm",
        "batch script that checkpoints, requeues and ends when the job is done",
        "sbatch --test-only, shellcheck",
        {
            "partition": (),
            "account": (),
            "qos": (),
            "constraint": (),
            "reservation": (),
            "time": (),
            "gpu-type": (),
            "container": ("none", "pyxis"),
        },
        chains=True,
    ),
    "skypilot": Target(
        "planner.export.targets.skypilot",
        "task YAML of a managed job, places in order",
        "sky's loader",
        {"zones": (), "aws-capacity-reservation": ()},
        chains=True,
    ),
    "karpenter": Target(
        "planner.export.targets.karpenter",
        "NodePools and EC2NodeClass",
        "CRD schemas and CEL rules",
        {"capacity-reservation": ()},
    ),
    "terraform": Target(
        "planner.export.targets.terraform",
        "nodes on AWS, Google Cloud or Azure, one place at a time",
        "python-hcl2, terraform fmt",
    ),
    "parallelcluster": Target(
        "planner.export.targets.parallelcluster",
        "Slurm cluster on AWS, a queue for each place",
        "pcluster's schema and validators",
        {"subnets": (), "capacity-reservation": ()},
    ),
    "autoscaler": Target(
        "planner.export.targets.autoscaler",
        "HorizontalPodAutoscaler of servers or loaders",
        "kubernetes-validate",
        {"role": ("server", "loader")},
        whole=True,
    ),
    "dockerfile": Target(
        "planner.export.targets.dockerfile", "image with code for the chips", "hadolint", whole=True
    ),
    "prometheus": Target(
        "planner.export.targets.prometheus", "rules, their tests, scraping", "promtool", whole=True
    ),
    "grafana": Target(
        "planner.export.targets.grafana", "dashboard of the rules' series", "@grafana/schema", whole=True
    ),
    "kubernetes": Target(
        "planner.export.targets.kubernetes",
        "JobSet or a job of Kubeflow, and queues of Kueue",
        "kubernetes-validate --strict, CRD schemas",
        {"kind": ("jobset", "pytorchjob", "trainjob"), "queue": ("kueue", "none"), "region": ()},
    ),
}


# What users call a target or a framework.
OTHER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("k8s", "eks", "gke", "aks", "kubectl", "jobset", "kueue", "kubeflow"), "kubernetes"),
    **dict.fromkeys(("tf", "opentofu"), "terraform"),
    "sbatch": "slurm",
    "sky": "skypilot",
    "docker": "dockerfile",
    "hpa": "autoscaler",
    **dict.fromkeys(("trl", "transformers", "huggingface", "hf", "peft", "diffusers"), "accelerate"),
    **dict.fromkeys(("megatron-lm", "megatron_lm"), "megatron"),
}


def export(launch: Launch, target: str, options: Options) -> tuple[ExportFile, ...]:
    """Write a launch for a target.

    Raises:
        InputError: no such target, framework or option, or the target cannot start this plan.
    """
    chosen = checked(target, options)
    entry = TARGETS[target]
    render = cast("Renderer", importlib.import_module(entry.module).render)
    if launch.parts and not entry.whole:
        return tuple(
            replace(file, path=f"part-{number}/{file.path}")
            for number, part in enumerate(launch.parts, start=1)
            for file in render(part, chosen)
        )
    return render(launch, chosen)


def export_phases(
    launch: Launch, phases: Sequence[Launch], target: str, options: Options
) -> tuple[ExportFile, ...]:
    """Write the phases of a run for a target that can start them one after the other.

    Args:
        launch: the run.
        phases: its phases in their order.
        target: as of `export`.
        options: as of `export`.

    Raises:
        InputError: the run has no phases, the target cannot chain them, or as of `export`.
    """
    each = [export(phase, target, options) for phase in phases]
    if not each:
        raise InputError("--phase all: the plan has no phases (training.phases)")
    if not TARGETS[target].chains:
        able = ", ".join(name for name, entry in TARGETS.items() if entry.chains)
        raise InputError(
            f"--phase all: {target} starts no phase after another, {able} do; write one with --phase N"
        )
    chain = cast("Chainer", importlib.import_module(TARGETS[target].module).chain)
    return chain(launch, each)


def checked(target: str, options: Options) -> Options:
    """The options with the target's defaults.

    Raises:
        InputError: no such target, framework or option.
    """
    if target not in TARGETS:
        meant = OTHER_NAMES.get(target.lower(), "") or near(target.lower(), TARGETS)
        hint = f" (did you mean {meant!r}?)" if meant in TARGETS else ""
        raise InputError(f"--to {target}: not a target; they are {', '.join(TARGETS)}{hint}")
    if options.framework not in FRAMEWORKS:
        meant = OTHER_NAMES.get(options.framework.lower(), "") or near(options.framework.lower(), FRAMEWORKS)
        hint = f" (did you mean {meant!r}?)" if meant in FRAMEWORKS else ""
        raise InputError(
            f"--framework {options.framework}: not known; they are {', '.join(FRAMEWORKS)}{hint}"
        )
    entry = TARGETS[target]
    values = {key: (choices[0] if choices else "") for key, choices in entry.options.items()}
    for key, value in options.values.items():
        _check_option(target, entry, key, value)
    return Options(options.framework, {**values, **options.values})


def _check_option(target: str, entry: Target, key: str, value: str) -> None:
    """Refuse what the target does not take.

    Raises:
        InputError: names what it takes.
    """
    if key not in entry.options:
        known = ", ".join(entry.options) or "none"
        raise InputError(f"--option {key}: {target} has no such option; it has {known}")
    choices = entry.options[key]
    if choices and value not in choices:
        raise InputError(f"--option {key}={value}: must be one of {', '.join(choices)}")
