"""`planner init`: start a workload, empty or from the files that you train with."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.commands.completing import presets
from planner.commands.options import STDOUT, examples
from planner.startup import as_shown

# The names of planner.trainer_files.registry.FORMATS, which is imported only when a file is read; a test compares them.
FORMAT_NAMES = (
    "axolotl", "llama_factory", "llama_factory_v1", "trl", "trainer_script", "xtuner",
    "nemo_recipe", "torchtitan", "megatron", "nemo", "verl", "areal",
    "prime_rl", "deepspeed_chat", "openrlhf", "by_table", "torchtune", "litgpt", "ms_swift", "unsloth",
    "open_instruct", "gpt_neox", "composer", "oumi", "maxtext", "levanter", "fairseq", "nanogpt", "nanotron",
    "diffusion", "vision", "ultralytics", "peft", "accelerate", "deepspeed", "huggingface",
)  # fmt: skip


@click.command(
    epilog=examples(
        "planner init --model llama-3.1-8b --set training.tokens=2e9 --out workload.yaml",
        "planner init --from run.yaml ds_zero3.json --accelerators 16",
    )
)
@click.argument("more", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option(
    "--from", "sources", multiple=True, type=click.Path(path_type=Path), metavar="PATH",
    help="A configuration file of your trainer; several together (a trainer's and DeepSpeed's).",
)  # fmt: skip
@click.option("--model-config", type=click.Path(path_type=Path), default=None, metavar="PATH",
              help="The model's config.json.")  # fmt: skip
@click.option(
    "--model",
    shell_complete=presets,
    default="",
    metavar="PRESET",
    help="The model: a preset or a Hugging Face name.",
)
@click.option("--format", "kind", type=click.Choice(FORMAT_NAMES), default=None,
              help="Format of the files (default: recognised by their content).")  # fmt: skip
@click.option("--accelerators", type=click.IntRange(min=1), default=None, metavar="N",
              help="Accelerators of the run, if the files state a batch per accelerator.")  # fmt: skip
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE",
              help="A value of the workload, such as training.tokens=1e9 or constraints.deadline=7d.")  # fmt: skip
@click.option("-o", "--out", "--output", type=click.Path(path_type=Path, dir_okay=False), default=None,
              help="Write to this file instead of stdout (-).")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace an existing file.")
def init(
    more: tuple[Path, ...], sources: tuple[Path, ...], model_config: Path | None, model: str, kind: str | None,
    accelerators: int | None, values: tuple[str, ...], out: Path | None, force: bool,
) -> None:  # fmt: skip
    """Write a commented workload to start from.

    At a terminal, without options, it asks three questions and writes workload.yaml. --model drafts a workload for a
    model. --from reads your trainer's files, also Python scripts and notebooks, which are not run: Hugging Face
    config.json, axolotl, LLaMA-Factory, TRL, Unsloth, XTuner, torchtitan, torchtune, LitGPT, Megatron-LM arguments,
    NeMo, verl, OpenRLHF, ms-swift, open-instruct, GPT-NeoX, LLM Foundry, OLMo, OpenCLIP, timm, YOLO, DeepSpeed,
    Accelerate, PEFT. It does not execute, import or download anything.
    """
    from planner.errors import InputError

    if more and not sources:
        raise InputError(f"files to read are named by --from: planner init --from {more[0]}")
    stated = bool(sources or model or model_config)
    asks = not stated and not values and sys.stdin.isatty() and sys.stdout.isatty()
    named = out or (Path("workload.yaml") if asks else None)
    out = None if named == STDOUT else named
    if out is not None and out.exists() and not force and (out.is_file() or out.is_symlink()):
        raise InputError(f"{out}: exists already; name another file, or replace it with --force")
    if values and not stated:
        raise InputError(
            "--set completes --model or the files of --from: name one, or edit the empty workload"
        )
    from planner.commands.output import show_text
    from planner.trainer_files.answer import empty_workload, workload_from
    from planner.trainer_files.gather import Wishes
    from planner.trainer_files.questions import ask_for_wishes, parse_stated
    from planner.trainer_files.write import point_at_schema

    if asks:
        initial = workload_from(
            [], ask_for_wishes(lambda text, usual: str(click.prompt(text, default=usual)))
        )
    elif stated:
        wishes = Wishes(kind or "", model_config, model, accelerators, parse_stated(values))
        initial = workload_from([*sources, *more], wishes)
    else:
        initial = empty_workload()
    show_text(point_at_schema(initial.text, Path() if out is None else out.parent), out)
    if asks and out is not None:
        click.echo(f"{out} is written; next: planner optimize {out}", file=sys.stderr)
    for text in initial.to_fill:
        click.echo(as_shown(f"to fill: {text}"), file=sys.stderr)
    for text in initial.warnings:
        click.echo(as_shown(f"warning: {text}"), file=sys.stderr)
