"""The parallel layout as each framework's own flags, read back: from the flags, and from the files of every target."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.export.frameworks.model import Parallel, Part, parallel_of
from planner.export.frameworks.registry import FRAMEWORKS, part_of, writer_of
from planner.export.registry import Options, export
from planner.export.view import Launch
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import shellcheck

DEGREES = st.sampled_from([1, 1, 1, 2, 4, 8])
GANGS = [name for name in LAUNCHES if name != "workers"]


@st.composite
def layouts(draw: st.DrawFn) -> Parallel:
    tensor, pipeline, context, data = (draw(DEGREES) for _ in range(4))
    world = tensor * pipeline * context * data
    gpus = min(8, world)
    return Parallel(
        nodes=world // gpus, gpus=gpus, tensor=tensor, pipeline=pipeline, context=context,
        expert=draw(st.sampled_from([1, 1, data])), data=data, zero_stage=draw(st.integers(0, 3)),
        micro_batch=draw(st.integers(1, 64)), grad_accumulation=draw(st.integers(1, 512)),
        sequence_length=draw(st.sampled_from([None, 1, 512, 8192])),
        precision=draw(st.sampled_from(["bf16", "bf16", "fp16", "fp8", "fp32", "tf32"])),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        interleave=draw(st.integers(1, 4)) if pipeline > 1 else 1, sequence_parallel=tensor > 1 and draw(st.booleans()),
        save_every=draw(st.none() | st.integers(1, 10**6)), save_to=draw(st.sampled_from(["", "/mnt/c", "s3://b/a b"])),
        updates=draw(st.sampled_from([1, 1, 4])),
    )  # fmt: skip


def with_variables(name: str, parallel: Parallel) -> Part:
    own, variables = writer_of(name).render(parallel), writer_of("none").render(parallel)
    return replace(own, env={**variables.env, **own.env})


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_layout_is_read_back_from_the_flags(name: str) -> None:
    stated = []

    @given(layouts())
    def check(parallel: Parallel) -> None:
        try:
            part = with_variables(name, parallel)
        except InputError as error:
            assert str(error).startswith(f"--framework {name}: ") and "; " in str(error)  # says what can
            return
        stated.append(parallel)
        found = writer_of(name).parse(part, parallel.nodes, parallel.gpus)
        assert found == parallel
        # data parallelism is computed anew from the world: on twice the nodes it is twice as wide, or faults
        assert found.tensor * found.pipeline * found.context * found.data == found.world

    for gang in GANGS:  # each framework can state one of these: all that are drawn may be too much for one
        check = example(parallel_of(LAUNCHES[gang]))(check)
    check()
    assert stated, "every layout was refused"


@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if name != "none"])
def test_degrees_and_batch_are_in_the_flags_not_only_in_the_variables(name: str) -> None:
    parallel = Parallel(2, 8, 1, 1, 1, 1, 16, 3, 4, 8, 2048, "bf16", "none")
    part = with_variables(name, parallel)
    blind = replace(
        part, env={key: "7" for key in part.env if key not in ("PLANNER_PRECISION", "PLANNER_RECOMPUTE")}
    )
    found = writer_of(name).parse(blind, 2, 8)
    assert (found.data, found.zero_stage, found.grad_accumulation) == (16, 3, 8)
    if name != "accelerate":  # its programs set the micro-batch themselves
        assert found.micro_batch == 4


def part_in(script: str, part: Part) -> tuple[Part, int, int]:
    """What a script states: variables, arguments and options of the launcher; nodes and accelerators it starts on."""
    env = dict(re.findall(r"^\s*export (PLANNER_\w+)=(.*)$", script, re.MULTILINE))
    env = {key: "".join(shlex.split(value)) for key, value in env.items()}
    more = re.findall(r"^command\+=\((.*)\)$", script, re.MULTILINE)
    args = tuple(shlex.split(more[0])) if more else ()
    start = re.search(r"(torchrun|accelerate launch) \\\n((?:.*\\\n)*)", script)
    assert start is not None
    words = shlex.split(start[2].replace("\\\n", " "))
    options = dict(
        word.removeprefix("--").replace("_", "-").partition("=")[::2] for word in words if word[:2] == "--"
    )
    nodes = int(options.get("nnodes", options.get("num-machines", 1)))
    gpus = (
        int(options["nproc-per-node"])
        if "nproc-per-node" in options
        else int(options["num-processes"]) // nodes
    )
    return Part(args, env, part.files, launch=tuple(words)), nodes, gpus


def script_of(launch: Launch, target: str, framework: str) -> str:
    files = export(launch, target, Options(framework))
    if target != "kubernetes":
        return files[0].text
    return str(next(yaml.safe_load_all(files[0].text))["data"]["run.sh"])


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("target", ["torchrun", "slurm", "kubernetes"])
def test_the_layout_in_every_file_is_that_of_the_plan(target: str, framework: str) -> None:
    checked = 0
    for name in GANGS:
        launch = LAUNCHES[name]
        try:
            part = part_of(framework, launch)
        except InputError:
            continue
        found, nodes, gpus = part_in(script_of(launch, target, framework), part)
        assert (nodes, gpus) == (launch.nodes, launch.gpus)
        assert writer_of(framework).parse(found, nodes, gpus) == parallel_of(launch)
        checked += 1
    assert checked


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_scripts_of_every_framework_are_clean(framework: str) -> None:
    name = "together" if framework in ("megatron", "nemo") else "one"
    scripts = [script_of(LAUNCHES[name], target, framework) for target in ("torchrun", "slurm")]
    assert [shellcheck(script) for script in scripts] == ["", ""]


def test_micro_batches_are_accumulated_over_one_update_of_a_step_of_rollouts() -> None:
    base = LAUNCHES["one"]
    step = parallel_of(base)
    several = parallel_of(replace(base, training=replace(base.training, update_batch=128)))
    assert step is not None and several is not None
    assert (step.global_batch, step.updates) == (512, 1)
    assert (several.global_batch, several.updates) == (128, 4)
    assert several.grad_accumulation * 4 == step.grad_accumulation
    assert step.save_every is not None and several.save_every == pytest.approx(4 * step.save_every, abs=2)
    larger = parallel_of(
        replace(base, training=replace(base.training, update_batch=1024))
    )  # a plan was edited
    assert larger == step
    written = export(
        replace(base, training=replace(base.training, update_batch=128)), "slurm", Options("none")
    )[0].text
    assert "PLANNER_UPDATES_PER_STEP=4" in written and "PLANNER_GLOBAL_BATCH=128" in written


def test_a_fleet_has_no_layout_to_state() -> None:
    with pytest.raises(InputError, match="leave the option out"):
        export(LAUNCHES["workers"], "slurm", Options("megatron"))


def test_kubeflow_starts_torchrun_alone() -> None:
    with pytest.raises(InputError, match="use kind=jobset"):
        export(LAUNCHES["one"], "kubernetes", Options("accelerate", {"kind": "trainjob"}))
