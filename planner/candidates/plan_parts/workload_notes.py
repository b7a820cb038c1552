"""What a reader must know of a plan because of what its workload says: repeated runs, early stops, tables, decoding."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planner.inputs.presets import encoder_positions, find_preset
from planner.market.pricing import total_usd
from planner.performance.inference.beyond import prompt_doubts
from planner.performance.post_training.quantized import pinned_note
from planner.performance.work import is_sampled
from planner.render.numbers import percent
from planner.render.precision import dollars_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.asked.model import Asked
    from planner.inputs.schema import Workload
    from planner.performance.spec import ModelSpec, TrainingSpec
    from planner.plan.model import PlanLine


# Tokens of a step: four times the 67M of Kimi K2 (arXiv 2507.20534), the largest published that we know.
_MOST_TOKENS = 2**28
# engines whose releases of 2025 had slow kernels for experts in MXFP4, and how many times too slow published rows were
# (docs/performance/blind.md, Inference)
_SLOW_EXPERTS = {"sglang": ("SGLang", "up to 14"), "tensorrt_llm": ("TensorRT-LLM", "up to 5.5")}
_SLOW_UNTIL = 2025
_OF_A_NODE = 8  # accelerators of the machines that most GPUs are sold in
_KNOWN = 0.5  # half-width, relative, of what runs cost: two or three digits are printed, as of one of them


def workload_notes(asked: Asked, lines: Sequence[PlanLine], *, calibrated: bool) -> list[str]:
    """The notes that apply, in order; `calibrated`: the user measured runs on the machines of all lines."""
    notes = (
        _zone_note(asked.workload),
        _recurrence_note(asked.workload, lines),
        _stop_note(asked.workload),
        _batch_note(asked),
        _divided_note(asked),
        _forward_note(asked),
        _length_note(asked.workload),
        _tables_note(asked.job.model),
        _looked_up_note(asked.job.model),
        _decoding_note(asked),
        _kernels_note(asked.job.training),
        *([] if calibrated else _prompt_notes(asked.job.training)),
        pinned_note(asked.job.training),
    )
    return [note for note in notes if note]


def _zone_note(workload: Workload) -> str:
    """That the plan's times are UTC, where the workload states one of another zone; "" elsewhere."""
    for given in (workload.constraints.deadline, workload.start):
        if isinstance(given, datetime) and given.utcoffset():
            stated = given.isoformat(" ", "minutes")
            return f"all times are UTC: {stated} is {given.astimezone(UTC):%Y-%m-%d %H:%M}"
    return ""


def _recurrence_note(workload: Workload, lines: Sequence[PlanLine]) -> str:
    """What all runs cost that come again; "" where there is one."""
    again = workload.recurrence
    if again is None:
        return ""
    from planner.units import format_duration  # only where this is said

    whole = total_usd([cost for line in lines for cost in line.costs]) * again.times
    return (
        f"one of {again.times} runs, one every {format_duration(again.every)}: "
        f"{dollars_known(whole, float(whole) * _KNOWN)} in total at the prices of this plan, each bought separately"
    )


def _stop_note(workload: Workload) -> str:
    """What the hours and cost of a run that may stop early are of; "" of other runs."""
    stop = None if workload.training is None else workload.training.early_stop
    if stop is None or workload.kind == "fleet":
        return ""
    return (
        f"hours and cost are of {percent(stop.mean_share, 0)} of the training, where it stops on average; run to its "
        f"end it takes {float(f'{1.0 / stop.mean_share:.2g}'):,g} times as many steps"
    )


def _length_note(workload: Workload) -> str:
    """That sequences are longer than an encoder has positions for or was trained on; "" of other models and lengths."""
    model, training = workload.model, workload.training
    preset = None if model is None or training is None or model.preset is None else find_preset(model.preset)
    if preset is None or training is None or training.sequence_length is None:
        return ""
    longest, of_text = preset.sequence_length, bool(preset.values.get("vocab"))
    kind = encoder_positions().get(preset.name, "learned")
    if preset.values.get("architecture") != "encoder" or not of_text or not longest or kind == "relative":
        return ""  # relative positions end with no length
    if training.sequence_length <= longest:
        return ""
    text = f"training.sequence_length {training.sequence_length:,} is longer than the {longest:,}"
    if kind == "rotary":  # nothing breaks, but what the model does there was not learned
        return (
            f"{text} tokens that {preset.name} was trained on: longer contexts need scaled rotary positions"
        )
    return f"{text} positions of {preset.name}: it needs a model that was extended"


def _batch_note(asked: Asked) -> str:
    """That a step is all of the training or larger than any that was published; "" of other batches.

    Both are mostly a batch that was meant in tokens.
    """
    job, training = asked.job, asked.workload.training
    if job.is_inference or training is None:
        return ""
    whole = job.total_steps <= 1.0 and training.steps is None
    if not whole and not (job.unit == "tokens" and job.units_per_step > _MOST_TOKENS):
        return ""
    from planner.render.units import compact  # only where this is said

    text = f"a step of {training.global_batch:,} samples is {compact(job.units_per_step, '')} {job.unit}"
    text += ", all of the training" if whole else ""
    length = round(job.units_per_step / training.global_batch)
    if job.unit == "tokens" and training.global_batch > length > 1:
        fewer = math.ceil(training.global_batch / length)
        text += f": global_batch counts samples; if it is meant in tokens, write {fewer:,}"
    return text


def _divided_note(asked: Asked) -> str:
    """That the machines on offer most cannot share the batch; "" where they can or where the batch is smaller.

    Networks without known layers have data parallelism alone.
    """
    job, batch = asked.job, asked.job.training.global_batch
    if job.is_inference or not is_sampled(job.model) or batch < _OF_A_NODE or batch % _OF_A_NODE == 0:
        return ""
    near = round(batch / _OF_A_NODE) * _OF_A_NODE
    return (
        f"global_batch {batch:,} is not a multiple of {_OF_A_NODE}, so machines with {_OF_A_NODE} accelerators, which "
        f"cannot share it evenly, are excluded; {near:,} allows them"
    )


def _forward_note(asked: Asked) -> str:
    """What to state where nothing is trained; "" unless nothing is exported and the ratio is left to the planner.

    A file that describes a forward pass by a training's sizes looks like one, but for its result. A trial whose model
    is thrown away exports none either, so the note states a condition.
    """
    ratio = asked.assumptions.beside_by_default
    checkpoint = asked.workload.checkpoint
    if asked.job.is_inference or not ratio or checkpoint is None or checkpoint.export:
        return ""
    return (
        f"no model is exported (checkpoint.export): if nothing is trained, the {ratio:g} x the steps that trainings "
        "take on top do not apply; state assumptions: {beside_steps_ratio: 0, whole_run_log_sd: 0}"
    )


def _tables_note(model: ModelSpec) -> str:
    """What the speed of a model with embedding tables rests on; "" without."""
    if model.tables is None:
        return ""
    from planner.performance.embeddings import TABLES_WITHIN
    from planner.render.units import compact  # only where this is said

    size = f"{compact(model.tables.rows, 'rows')} rows in all, {model.tables.all_bytes / 2.0**30:,.0f} GiB"
    return (
        f"embedding tables ({size} over all accelerators): look-ups and exchange are by formula, evenly divided; "
        f"measured runs lay within a factor of {TABLES_WITHIN:g}: planner calibrate"
    )


def _looked_up_note(model: ModelSpec) -> str:
    """That a network with fewer FLOPs than weights is not a network of layers; "" of all others."""
    flops = model.forward_flops_per_sample
    if model.tables is not None or model.family == "transformer" or not flops or flops >= model.params:
        return ""
    from planner.render.units import compact  # only where this is said

    return (
        f"{compact(model.params, '')} parameters and {compact(flops, '')} FLOPs a sample: a layer multiplies each "
        "weight at least once, so most of these are looked up; describe them as model.embedding_tables, or memory, "
        "speed and traffic are wrong"
    )


def _kernels_note(training: TrainingSpec) -> str:
    """That engines had slow kernels for experts in MXFP4; "" of other engines, precisions and years."""
    work = training.tuning.generates
    if work is None or work.engine.precision != "mxfp4" or work.engine.name not in _SLOW_EXPERTS:
        return ""
    if (work.engine.year or 0) > _SLOW_UNTIL:
        return ""
    name, times = _SLOW_EXPERTS[work.engine.name]
    return (
        f"{name} before {_SLOW_UNTIL + 1} answered {times} times more slowly than predicted with MXFP4 experts on "
        "Hopper and Ampere: measure, or plan for vllm"
    )


def _prompt_notes(training: TrainingSpec) -> list[str]:
    """That prompts are longer, for their answers, than in measured runs of the engine; none otherwise."""
    return [f"low confidence: {doubt}" for doubt in prompt_doubts(training.tuning.generates)]


def _decoding_note(asked: Asked) -> str:
    """That decoding is not in the speed, of what no rate was measured; "" otherwise."""
    encoded = asked.workload.data.encoded
    if encoded is None or asked.job.training.decode_samples_per_s_per_core is not None:
        return ""
    return (
        f"decoding {encoded} on CPU cores is not in the speed, as no rate was measured: time one core and state "
        "data.decode_samples_per_s_per_core"
    )
