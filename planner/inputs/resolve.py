"""From what the user wrote to complete values with their origin: model sizes, amount of work, moments."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from planner.errors import InputError
from planner.inputs.amount import as_stored, bytes_per_sample, data_bytes, total_samples
from planner.inputs.checks import end_moment, start_moment
from planner.inputs.embeddings import with_tables
from planner.inputs.faults import Fault, FaultError, near
from planner.inputs.item_passes import assumed_passes, passes_of
from planner.inputs.loading import decode_rate
from planner.inputs.models import count_params, merge_model, missing_fields, networks
from planner.inputs.noted import as_released, noted_choices, open_choices, software_day, stack_of
from planner.inputs.phases import evaluated_share, mean_share, resolve_phases, stop_log_sd, with_initial
from planner.inputs.post_training import (
    REQUESTS_PER_STEP,
    longest_stated,
    rank_of,
    resolve_inference,
    resolve_post_training,
)
from planner.inputs.presets import find_preset, preset_names
from planner.inputs.resolved import (
    Assumed,
    Origin,
    ResolvedModel,
    ResolvedPart,
    ResolvedTimes,
    ResolvedTraining,
)

if TYPE_CHECKING:
    from planner.inputs.faults import Path
    from planner.inputs.schema import Workload
    from planner.inputs.training_schema import Model, Network, Training

_CHOICES = ("precision", "optimizer", "stack")
# Of a network of unknown layers of which the output layer or adapters learn (as LoRA of rank 16): assumed.
SMALL_SHARE = 0.01
SMALL_RANK = 16
# Tokens of a sequence that nobody stated, at most: what Llama 3 is pre-trained on before its stages of longer contexts
# (arXiv 2407.21783, section 3.4), and the most in 32 public fine-tuning configurations of axolotl and LLaMA-Factory
# (median 2,048; read 2026-11).
_MOST_ASSUMED = 8192


def resolve_model(model: Model, training: Training | None = None) -> ResolvedModel:
    """Complete a model from its preset and its explicit fields, or from its parts.

    Args:
        model: the section.
        training: says whether adapters of the first network learn, where its layers are not known (diffusion, vision).

    Raises:
        InputError: unknown preset, or a needed size is neither given nor known; names them.
    """
    first, *others = networks(model)
    rank = None if training is None else rank_of(training)
    main = with_tables(_resolve_network(*first, rank), model.embedding_tables)
    if not others:
        return main
    beside = [
        ResolvedPart(_resolve_network(place, part), _tokens(part), float(getattr(part, "per_sample", 1.0)))
        for place, part in others
    ]
    return replace(
        main,
        parts=tuple(beside),
        assumptions=(*main.assumptions, *(noted for part in beside for noted in part.model.assumptions)),
    )


def _tokens(part: Network) -> int | None:
    """Tokens of one run of a part, 1 where it has none."""
    if merge_model(part)[0].get("family") != "transformer":
        return 1
    tokens: int | None = getattr(part, "tokens", None)
    return tokens


def _resolve_network(place: Path, model: Network, rank: int | None = None) -> ResolvedModel:
    preset = find_preset(model.preset) if model.preset is not None else None
    if model.preset is not None and preset is None:
        hint = near(model.preset, preset_names())
        raise FaultError(Fault((*place, "preset"), f"{model.preset!r} is not known", hint))
    values, _ = merge_model(model)
    if "family" not in values:
        raise FaultError(Fault(place, "needs 'preset', or 'family' with explicit sizes"))
    missing = missing_fields(values, model.trainable == "none")
    if missing:
        text = f"{', '.join(missing)} must be given ({model.preset or values['family']})"
        raise FaultError(Fault(place, text))
    assumptions = _model_assumptions(place, model, values)
    if values["family"] == "transformer" and values.get("vocab") is not None:
        total, active = count_params(values)
        values.setdefault("params", total)
        if values.get("experts") is not None:
            values.setdefault("active_params", active)
    stated_name = values.pop("name", None)
    config = getattr(model, "config", None)
    trains, learned = _learning(model, values, rank)
    if learned:
        at = ".".join(map(str, (*place, "learned")))
        why = f"trainable {model.trainable}" if model.trainable != "all" else f"adapters of rank {rank}"
        assumptions += (Assumed(at, f"{learned:.0f}", "parameters", "default", why),)
    return ResolvedModel(
        name=stated_name or (preset.name if preset else f"{values['family']} of {config or 'own sizes'}"),
        context_length=preset.sequence_length if preset is not None else None,
        source=preset.source if preset is not None else config or "workload",
        as_of=preset.as_of if preset is not None else "",
        note=preset.note if preset is not None else "",
        assumptions=assumptions,
        trains=trains,
        learned_params=learned,
        last_layers=model.last_layers,
        **values,
    )


def _learning(
    model: Network, values: dict[str, Any], rank: int | None
) -> tuple[Literal["all", "through", "none"], float]:
    """What learns, and how many parameters of a network that does not learn as a whole."""
    if rank is not None and values["family"] != "transformer":
        return "through", SMALL_SHARE * values["params"] * rank / SMALL_RANK
    if model.trainable in ("all", "none"):
        return model.trainable, 0.0
    if model.trainable == "head":
        table = values.get("vocab") and values["vocab"] * values["hidden"]
        return "none", float(table or SMALL_SHARE * values["params"])
    return "through", SMALL_SHARE * values["params"]


def _model_assumptions(place: Path, model: Network, values: dict[str, object]) -> tuple[Assumed, ...]:
    at = ".".join(map(str, place))
    preset = find_preset(model.preset) if model.preset is not None else None
    out = []
    if preset is not None:
        note = f"{preset.source}, as of {preset.as_of}" + (f"; {preset.note}" if preset.note else "")
        out.append(Assumed(f"{at}.preset", preset.name, "", "workload", note))
        if preset.sample:  # pieces of people's sound have other lengths: the screen says which was taken
            out.append(Assumed(f"{at}.sample", preset.sample, "", "default", f"of {preset.name}"))
    apart = ("preset", "family", "parts", "embedding_tables")
    for key, value in model:
        if key not in apart and value is not None and key in model.model_fields_set:
            out.append(Assumed(f"{at}.{key}", str(value), "", "workload"))
    if values["family"] == "diffusion" and values.get("image_size") and model.image_size is None:
        # people tune at other resolutions than the preset's: the screen says which was taken
        out.append(
            Assumed(f"{at}.image_size", str(values["image_size"]), "pixels", "default", "of the preset")
        )
    if "params" not in values:
        total, _ = count_params(values)
        out.append(
            Assumed(f"{at}.params", str(total), "parameters", "derived", "counted from the dimensions")
        )
    return tuple(out)


def resolve_training(workload: Workload, model: ResolvedModel | None = None) -> ResolvedTraining:
    """Work out samples, tokens and steps of one run, and what was assumed on the way.

    Args:
        workload: with `model` and `training` (a `task` is expanded first, see `expand_task`).
        model: the resolved model, to save resolving it again.

    Raises:
        InputError: `task` not expanded, or sizes needed are missing.
    """
    training, data = workload.training, workload.data
    if workload.model is not None and workload.inference is not None:
        return _resolve_requests(workload, model if model is not None else resolve_model(workload.model))
    if workload.model is None or training is None:
        raise InputError("the workload names a task: expand it to a model and a training first")
    model = model if model is not None else resolve_model(workload.model, training)
    text = model.family == "transformer"
    runs = workload.fleet.runs if workload.fleet is not None else 1
    noted: list[Assumed] = []
    length = _sequence_length(training, model, noted) if text else 1
    post = resolve_post_training(training, length, towers=bool(model.parts), text=text)
    content = post.tokens_per_sample(length) if text else 1.0
    each, stack = post.samples_per_sequence(length), stack_of(training, text=text)
    samples = total_samples(training, data, content, each, noted)
    phases, samples, steps, copied = resolve_phases(training, model, length, samples, noted)
    share = mean_share(workload, noted)
    copied = copied if workload.fleet is None else math.ceil(copied * share)
    samples, steps = math.ceil(samples * share), math.ceil(steps * share)
    held, stored = as_stored(training, each, content)
    each_bytes = bytes_per_sample(data, model, stored, noted, held)
    noted += noted_choices(training, (*_CHOICES, *(("attention",) if text else ())), post, stack)
    tokens = share * training.tokens if training.tokens else samples * content
    return ResolvedTraining(
        unit="tokens" if text else "samples",
        total_samples=samples,
        total_steps=steps,
        total_tokens=round(tokens) if text else None,
        sequence_length=length,
        global_batch=training.global_batch,
        bytes_per_sample=each_bytes,
        data_bytes=with_initial(workload, data_bytes(data, copied, runs, each_bytes, noted, held, stored)),
        precision=training.precision,
        optimizer=training.optimizer,
        lora_rank=rank_of(training),
        stack=stack,
        attention=training.attention,
        software_date=software_day(training, workload.start),
        open_choices=open_choices(training, model),
        channels_last=training.channels_last,
        layout=None if training.layout == "auto" else training.layout,
        memory=training.memory,
        decode_samples_per_s_per_core=decode_rate(data, noted),
        runs=runs,
        assumptions=tuple(noted),
        post=post,
        tokens_per_sample=content,
        phases=phases,
        evaluated=evaluated_share(training),
        stop_log_sd=stop_log_sd(training),
    )


def _resolve_requests(workload: Workload, model: ResolvedModel) -> ResolvedTraining:
    """Batch inference as work that runs in steps of some requests each, which only count progress."""
    section = workload.inference
    assert section is not None
    assert workload.model is not None
    passes = passes_of(workload.model, model.family, section)
    noted = assumed_passes(section, passes, model.architecture)
    section = as_released(section, workload.model, noted)
    post = resolve_inference(section, passes.number, passes.rate_ratio)
    samples = section.requests or section.items or 0
    content = post.lengths.mean if post.lengths is not None else 1.0
    prompt_tokens = content if post.prompts is None else post.prompts.mean  # what is answered is not read
    per_sample = bytes_per_sample(workload.data, model, prompt_tokens, noted)
    text = model.family == "transformer"
    batch = min(samples, REQUESTS_PER_STEP)
    return ResolvedTraining(
        unit="tokens" if text else "samples",
        total_samples=samples,
        total_steps=math.ceil(samples / batch),
        total_tokens=round(samples * content) if text else None,
        sequence_length=round(post.lengths.longest) if post.lengths is not None else 1,
        global_batch=batch,
        bytes_per_sample=per_sample,
        data_bytes=data_bytes(workload.data, samples, 1, per_sample, noted),
        precision="fp16" if section.precision == "fp16" else "bf16",
        optimizer="sgd",
        lora_rank=None,
        stack="tuned",
        attention="auto",
        software_date=None,
        open_choices=(),
        channels_last=None,
        layout=None,
        memory=None,
        decode_samples_per_s_per_core=decode_rate(workload.data, noted),
        runs=1,
        assumptions=tuple(noted),
        post=post,
        tokens_per_sample=content,
    )


def _sequence_length(training: Training, model: ResolvedModel, noted: list[Assumed]) -> int:
    if training.sequence_length is not None:
        noted.append(Assumed("training.sequence_length", str(training.sequence_length), "tokens", "workload"))
        return training.sequence_length
    longest = longest_stated(training)
    if longest is not None:
        tokens = longest if model.context_length is None else min(longest, model.context_length)
        note = (
            "longest prompt and response" if training.rollouts is not None else "longest of training.lengths"
        )
        noted.append(Assumed("training.sequence_length", str(tokens), "tokens", "derived", note))
        return tokens
    if model.context_length is None:
        text = "must be given: the model is not a preset with a known context"
        raise FaultError(Fault(("training", "sequence_length"), text))
    length, note = model.context_length, f"published context of {model.name}"
    if model.vocab is not None and length > _MOST_ASSUMED:
        length, note = _MOST_ASSUMED, f"{note} is {length:,}; longer ones than this are a stage of their own"
    noted.append(Assumed("training.sequence_length", str(length), "tokens", "default", note))
    return length


def resolve_times(workload: Workload, now: datetime) -> ResolvedTimes:
    """Fix start and deadline in UTC; a date as deadline counts to its end.

    Args:
        workload: any workload.
        now: the present moment (aware); the start when none is given.

    Raises:
        InputError: the deadline is not after the start.
    """
    stated_start = workload.start
    start = start_moment(stated_start) if stated_start is not None else now.astimezone(UTC)
    note = "" if stated_start is not None else "now"
    if workload.earliest_start is not None and start_moment(workload.earliest_start) > start:
        start, note = start_moment(workload.earliest_start), "earliest_start"
    origin: Origin = "default" if note == "now" else "workload"
    noted = (Assumed("start", start.astimezone(UTC).isoformat(timespec="minutes"), "", origin, note),)
    limit = workload.constraints.deadline
    if limit is None:
        return ResolvedTimes(start, None, noted)
    deadline = _deadline_moment(limit, start)
    if deadline <= start:
        text = f"{limit} is in the past: the start is {start.isoformat(timespec='minutes')}"
        raise FaultError(Fault(("constraints", "deadline"), text))
    return ResolvedTimes(start, deadline, noted)


def _deadline_moment(limit: timedelta | date | datetime, start: datetime) -> datetime:
    return start + limit if isinstance(limit, timedelta) else end_moment(limit)
