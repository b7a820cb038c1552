"""The parallel layout as each framework's own flags, read back: from the flags, and from the files of every target."""

from __future__ import annotations

import ast
import functools
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from planner.asked import options as asked
from planner.errors import InputError
from planner.export.frameworks.model import Parallel, Part, option_values, parallel_of
from planner.export.frameworks.registry import FRAMEWORKS, part_of, writer_of
from planner.export.frameworks.stages import layers_of_stages, uneven_stages
from planner.export.launch import launch_of
from planner.export.registry import Options, export
from planner.export.view import Launch
from planner.inputs.load import parse_workload
from planner.plan.model import Plan
from planner.plan.words import short_layout
from planner.workloads.answer import optimize
from tests.conftest import ROOT
from tests.planned_examples import DAY
from tests.planner.export.launches import LAUNCHES
from tests.planner.export.validators import shellcheck

GRPO = ROOT / "examples" / "grpo-8b.yaml"
DEGREES = st.sampled_from([1, 1, 1, 2, 4, 8])
GANGS = [name for name in LAUNCHES if name != "workers"]


@functools.cache
def planned_grpo(update_batch: int, epochs: int) -> Plan:
    """The plan of the example with another number of updates."""
    own = f"update_batch: {update_batch}\n    epochs: {epochs}"
    text = GRPO.read_text(encoding="utf-8").replace("update_batch: 512", own)
    text = text.replace(
        "  deadline: 4d", "  deadline: 4d\n  providers: [aws]  # the layout is all that is looked at"
    )
    assert own in text
    return optimize(parse_workload(text, GRPO), asked.Options(DAY, as_of=DAY.date())).plan


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
        updates=draw(st.sampled_from([1, 1, 4])), layers=draw(st.sampled_from([None, 32, 61, 126])),
        optimizer=draw(st.sampled_from(["adamw", "adamw_8bit", "paged_adamw_8bit"])),
        methods=draw(st.sampled_from([(), ("lora",), ("qlora", "dpo")])),
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


@pytest.mark.parametrize("framework", ["megatron", "nemo", "axolotl", "llama-factory"])
def test_checkpoints_at_an_address_are_not_saved_to_a_folder_of_its_name(framework: str) -> None:
    base = LAUNCHES["one"]
    address = replace(base, run=replace(base.run, checkpoints="s3://b/runs"))
    with pytest.raises(
        InputError, match=rf"{framework}: it saves to paths, and run.checkpoints is s3://b/runs; mount"
    ):
        script_of(address, "slurm", framework)
    assert (
        "s3://b/runs" not in script_of(address, "skypilot", framework).partition("run: ")[2]
    )  # mounted there
    storage = replace(base, run=replace(base.run, checkpoints="msc://profile/runs"))
    if framework in ("megatron", "nemo"):
        assert "save=msc://profile/runs" in script_of(storage, "torchrun", framework)
    else:
        with pytest.raises(InputError, match="it saves to paths"):
            script_of(storage, "torchrun", framework)


def test_accelerate_says_what_recomputation_is_left_to_the_program() -> None:
    """Its FSDP recomputes everything or nothing, DeepSpeed and plain replicas nothing."""
    base = parallel_of(LAUNCHES["one"])
    assert base is not None
    for zero, recompute, said in (
        (3, "selective", True),
        (3, "full", False),
        (1, "full", True),
        (0, "none", False),
    ):
        notes = writer_of("accelerate").render(replace(base, zero_stage=zero, recompute=recompute)).notes
        assert ("recomputation" in notes[0]) is said


def of_tokens(parallel: Parallel) -> Parallel:
    """The layout with sequences that context parallelism can cut: of others Megatron-LM refuses nearly all."""
    sequence = parallel.sequence_length
    return parallel if sequence and sequence > 1 else replace(parallel, sequence_length=8192)


def of_replicas(parallel: Parallel) -> Parallel:
    """The same without what trainers of Hugging Face have no option for."""
    flat = replace(parallel, pipeline=1, expert=1, interleave=1, sequence_parallel=False)
    return replace(flat, recompute="full", save_to="")


def stages_as_megatron_core_takes_them(name: str, parallel: Parallel, flags: Mapping[str, str]) -> bool:
    """Every stage has as many layers, or the list of stages has all of them between embedding and loss."""
    turns, ranks = parallel.interleave, parallel.pipeline
    assert parallel.layers is not None
    listed = flags.get(
        "pipeline-model-parallel-layout" if name == "megatron" else "model.pipeline_model_parallel_layout"
    )
    if turns > 1 and parallel.grad_accumulation % ranks:
        return False
    if listed is None:
        return parallel.layers % (ranks * turns) == 0
    if name == "megatron" and "num-virtual-stages-per-pipeline-rank" in flags:
        return False  # one or the other
    counts = layers_of_stages(listed.strip("'"))
    of_rank = [sum(counts[rank::ranks]) for rank in range(ranks)]
    return (
        len(counts) == ranks * turns and sum(counts) == parallel.layers and min(counts) > 0
        and max(of_rank) - min(of_rank) <= 1 and listed.count("E") == listed.count("L") == 1
    )  # fmt: skip


def what_it_asserts(name: str, parallel: Parallel, part: Part) -> list[bool]:
    """What a framework asserts before its first step, or silently does otherwise; sources in docs/export.md."""
    flags = option_values((*part.args, *part.launch))
    files = {file.path: json.loads(file.text) for file in part.files}
    if name in ("megatron", "nemo") and parallel.layers is not None:
        core = stages_as_megatron_core_takes_them(name, parallel, flags)
        if not core:
            return [False]
    if name == "megatron" and "use-megatron-fsdp" in flags:
        queues = int(part.env["CUDA_DEVICE_MAX_CONNECTIONS"])
        fusion = "no-gradient-accumulation-fusion" in flags
        return [
            flags["ckpt-format"] == "fsdp_dtensor",
            fusion,
            "use-distributed-optimizer" in flags,
            queues > 1,
        ]
    if name == "megatron" and parallel.tensor * parallel.context > 1:
        return [part.env["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"]
    if name == "nemo":
        sharded = [flags[f"{key}.use_distributed_optimizer"] for key in ("ddp", "optimizer")]
        fsdp = "ddp.use_megatron_fsdp" in flags
        return [
            flags["model.seq_length"] == flags["dataset.seq_length"], len(set(sharded)) == 1,
            not fsdp or flags["checkpoint.ckpt_format"] == "fsdp_dtensor",
        ]  # fmt: skip
    if name == "accelerate" and "use_fsdp" in flags:
        return [flags["fsdp_auto_wrap_policy"].endswith("_BASED_WRAP")]
    if name == "axolotl" and "fsdp_config" in flags:
        states = flags.get("optimizer", parallel.optimizer)
        return [
            ast.literal_eval(flags["fsdp_config"])["auto_wrap_policy"] == "TRANSFORMER_BASED_WRAP",
            states != "adamw_8bit" and (states != "paged_adamw_8bit" or parallel.tensor == 1),
            parallel.methods != ("qlora", "dpo"),
            parallel.context == 1 or flags["attn_implementation"] == "flash_attention_2",
        ]
    if name in ("axolotl", "llama-factory"):
        stated = files["deepspeed.json"]
        gathers = stated["zero_optimization"].get("stage3_gather_16bit_weights_on_model_save", False)
        resumes = name == "axolotl" or flags["overwrite_output_dir"] == "false"
        return [stated["gradient_clipping"] == "auto", gathers is (parallel.zero_stage == 3), resumes]
    return []


@pytest.mark.parametrize("name", ["megatron", "nemo", "accelerate", "axolotl", "llama-factory"])
def test_what_a_framework_asserts_holds(name: str) -> None:
    asserted = 0
    drawn = layouts().map(of_tokens if name in ("megatron", "nemo") else of_replicas)

    @given(drawn)
    def check(parallel: Parallel) -> None:
        nonlocal asserted
        try:
            part = writer_of(name).render(parallel)
        except InputError:
            return
        holds = what_it_asserts(name, parallel, part)
        asserted += len(holds)
        assert all(holds)

    check()
    assert asserted, "no layout that it can express was drawn"


def test_scripts_of_every_framework_are_clean() -> None:
    gangs = {name: "together" if name in ("megatron", "nemo") else "one" for name in FRAMEWORKS}
    scripts = [
        script_of(LAUNCHES[gang], target, name)
        for name, gang in gangs.items()
        for target in ("torchrun", "slurm")
    ]
    assert shellcheck(*scripts) == ""


def test_checkpoints_of_a_step_with_several_updates_are_counted_in_updates() -> None:
    base = LAUNCHES["one"]
    step = parallel_of(base)
    several = parallel_of(replace(base, training=replace(base.training, updates=8)))
    assert step is not None and step.save_every is not None and several is not None
    assert several == replace(step, updates=8, save_every=several.save_every)
    assert several.save_every == pytest.approx(8 * step.save_every, abs=4)
    assert parallel_in(replace(base, training=replace(base.training, updates=8))) == several


def test_checkpoints_are_counted_in_steps_with_what_passes_beside_them() -> None:
    """A run whose steps take half of its hours passes half as many steps from one checkpoint to the next."""
    base = LAUNCHES["one"]
    saves = [
        parallel_of(replace(base, checkpoints=replace(base.checkpoints, work_ratio=ratio)))
        for ratio in (1.0, 2.0)
    ]
    assert [one.save_every for one in saves if one is not None] == [222, 111]


def parallel_in(launch: Launch) -> Parallel | None:
    """The layout that a script of no framework states."""
    part, nodes, gpus = part_in(script_of(launch, "slurm", "none"), part_of("none", launch))
    return writer_of("none").parse(part, nodes, gpus)


@pytest.mark.parametrize(("batch", "epochs"), [(2048, 1), (512, 1), (512, 3)])
def test_a_plan_of_rollouts_accumulates_to_one_update(batch: int, epochs: int) -> None:
    """PPO and GRPO divide a step's batch, and may pass over it several times: all from one saved plan."""
    plan = planned_grpo(batch, epochs)
    layout, launch = plan.lines[0].layout, launch_of(Plan.from_dict(plan.to_dict()))
    assert layout is not None and launch.training.global_batch == 2048
    assert (layout.update_batch, layout.updates, layout.passes) == (batch, 2048 // batch, epochs)
    found = parallel_in(launch)
    assert found is not None and (found.global_batch, found.updates) == (batch, 2048 // batch * epochs)
    step, saved = launch.limits.step_time_s, launch.checkpoints.interval_s
    assert step and saved and found.save_every is not None
    hours = found.save_every * step * launch.checkpoints.work_ratio / found.updates
    assert hours == pytest.approx(saved, rel=0.02) and launch.checkpoints.work_ratio == pytest.approx(1.38)
    said = f", micro-batch {layout.micro_batch} x {layout.grad_accumulation}"
    said += f", {found.updates} updates a step" if found.updates > 1 else ""
    assert short_layout(layout).endswith(said)


def test_an_older_plan_of_rollouts_is_refused_with_the_remedy() -> None:
    """It counted the micro-batches of the whole step: an update of four would have been one of four times the size."""
    values = planned_grpo(512, 1).to_dict()
    for line in values["lines"]:
        line["layout"] = {
            key: value for key, value in line["layout"].items() if key not in ("updates", "passes")
        }
    older = Plan.from_dict(values)
    with pytest.raises(
        InputError, match=r"old.json: an older version saved the plan, .* save the plan again"
    ):
        launch_of(older, "old.json")
    assert launch_of(replace(older, performance=None)).training.updates == 1  # nothing says that it generates


def test_a_fleet_has_no_layout_to_state() -> None:
    with pytest.raises(InputError, match="leave the option out"):
        export(LAUNCHES["workers"], "slurm", Options("megatron"))


def test_kubeflow_starts_torchrun_alone() -> None:
    with pytest.raises(InputError, match="use kind=jobset"):
        export(LAUNCHES["one"], "kubernetes", Options("accelerate", {"kind": "trainjob"}))


def method_notes(name: str, *methods: str) -> str:
    gang = LAUNCHES["one"]
    launch = replace(
        gang,
        layout=replace(gang.layout, zero_stage=3) if gang.layout else None,
        training=replace(gang.training, methods=methods),
    )
    return "; ".join(
        note for note in part_of(name, launch).notes if "layout alone" in note or "method is" in note
    )


@pytest.mark.parametrize("name", ["megatron", "nemo", "torchtitan"])
@pytest.mark.parametrize("methods", [("qlora", "sft"), ("dpo",), ("lora", "dpo")])
def test_a_method_that_the_framework_lacks_is_named_with_those_that_have_it(
    name: str, methods: tuple[str, ...]
) -> None:
    said = method_notes(name, *methods)
    assert f"{name} is not known to have " in said
    assert "your program must" in said
    assert "--framework axolotl or llama-factory" in said


def test_lora_is_said_to_be_set_where_the_framework_has_it() -> None:
    assert (
        method_notes("nemo", "lora")
        == "the flags state the layout alone: set lora in the configuration of nemo"
    )
    assert "is not known to have lora" in method_notes("megatron", "lora")
    assert "--framework torchtitan or nemo" in method_notes("megatron", "lora")
    assert "set qlora and dpo in the configuration of axolotl" in method_notes("axolotl", "qlora", "dpo")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_plain_training_has_no_note_of_its_method(name: str) -> None:
    assert method_notes(name) == method_notes(name, "sft") == ""


@pytest.mark.parametrize("name", ["none", "deepspeed", "accelerate"])
def test_libraries_leave_the_method_to_the_program(name: str) -> None:
    assert method_notes(name, "qlora", "dpo") == ""


def test_a_plan_of_grpo_says_its_method_in_the_launch() -> None:
    launch = launch_of(planned_grpo(512, 1))
    assert launch.training.methods[-1] == "grpo"
    assert "set grpo in the configuration of megatron" in "".join(part_of("megatron", launch).notes)


LLAMA_405B = Parallel(
    128, 8, 8, 16, 1, 1, 8, 1, 1, 32, 8192, "bf16", "full", interleave=7, sequence_parallel=True, layers=126
)


def test_126_layers_on_16_stages_of_seven_turns_are_listed_stage_by_stage() -> None:
    """Megatron-Core refuses 126 layers in 112 virtual stages unless each stage is named."""
    listed = "Et|(tt|)*14(t|)*96tL"
    assert uneven_stages(LLAMA_405B) == listed
    counts = layers_of_stages(listed)
    assert (len(counts), sum(counts)) == (112, 126)
    assert [sum(counts[rank::16]) for rank in range(16)] == [7, *[8] * 14, 7]  # embedding and loss take less
    megatron = writer_of("megatron").render(LLAMA_405B).args
    assert f"--pipeline-model-parallel-layout={listed}" in megatron
    assert not any("virtual" in word for word in megatron)
    nemo = writer_of("nemo").render(LLAMA_405B).args
    assert f"model.pipeline_model_parallel_layout='{listed}'" in nemo
    assert "model.virtual_pipeline_model_parallel_size=7" in nemo
    even = replace(LLAMA_405B, layers=112)
    assert "--num-virtual-stages-per-pipeline-rank=7" in writer_of("megatron").render(even).args
    assert uneven_stages(even) == uneven_stages(replace(LLAMA_405B, layers=None)) == ""


def test_a_list_of_stages_survives_the_shell() -> None:
    base = LAUNCHES["together"]
    assert base.layout is not None
    layout = replace(base.layout, interleave=3)
    launch = replace(base, layout=layout, training=replace(base.training, layers=32))
    scripts = {framework: script_of(launch, "torchrun", framework) for framework in ("megatron", "nemo")}
    for framework, script in scripts.items():
        part, nodes, gpus = part_in(script, part_of(framework, launch))
        assert any("|" in word for word in part.args)
        assert writer_of(framework).parse(part, nodes, gpus) == parallel_of(launch)
    assert shellcheck(*scripts.values()) == ""


@pytest.mark.parametrize("name", ["megatron", "nemo"])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"grad_accumulation": 40},
            "interleaved stages take turns with 16 micro-batches each, and an update has 40",
        ),
        (
            {"expert": 8, "sequence_parallel": False},
            "experts with tensor parallelism need sequence parallelism",
        ),
        (
            {"context": 2, "data": 4, "sequence_length": 4098},
            "it cuts sequences into 4 equal parts, and they have 4098",
        ),
        ({"layers": 100}, "112 stages are more than the model's 100 layers"),
    ],
)
def test_what_megatron_core_stops_at_is_refused(name: str, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=rf"--framework {name}: {reason}"):
        writer_of(name).render(replace(LLAMA_405B, **changes))


SPLIT = Parallel(1, 8, 2, 1, 2, 1, 2, 3, 2, 4, 8192, "bf16", "full")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"expert": 2}, "its expert parallelism shards other weights over 1 accelerators, not over 2"),
        ({"optimizer": "paged_adamw_8bit"}, "its tensor parallelism has no paged 8-bit AdamW"),
        ({"methods": ("qlora", "dpo")}, "its FSDP2 has no dpo on weights in few bits"),
    ],
)
def test_what_axolotl_refuses_is_not_exported(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=f"--framework axolotl: {reason}"):
        writer_of("axolotl").render(replace(SPLIT, **changes))


def test_what_axolotl_asks_of_split_sequences_and_states_in_eight_bits() -> None:
    part = writer_of("axolotl").render(replace(SPLIT, optimizer="adamw_8bit"))
    assert {"--optimizer=adamw_torch_8bit", "--attn_implementation=flash_attention_2"} <= set(part.args)
    assert "packed sequences only in micro-batches of 1" in part.notes[0]
    assert writer_of("axolotl").render(replace(SPLIT, micro_batch=1)).notes == ()


def test_a_launch_knows_the_layers_of_its_preset() -> None:
    launch = launch_of(planned_grpo(512, 1))
    assert launch.training.layers == 32
    parallel = parallel_of(launch)
    assert parallel is not None and parallel.layers == 32
