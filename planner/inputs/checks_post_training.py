"""Rules on fine-tuning, preference training, reinforcement learning and batch inference."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from planner.bundled import bundled_rows
from planner.inputs.faults import Fault, near
from planner.inputs.item_passes import passes_of
from planner.inputs.models import merge_model
from planner.inputs.post_training import ADAPTED, adapter_key, adapter_names, load_objectives
from planner.inputs.presets import find_preset, preset_names
from planner.releases import released_engines

if TYPE_CHECKING:
    from planner.inputs.post_training_schema import EngineChoice, Inference, Lengths, Rollouts
    from planner.inputs.schema import Workload
    from planner.inputs.training_schema import Training

ANY_FAMILY = ("pretrain", "sft", "contrastive")
_EXAMPLES = {
    "teacher": "'teacher: {preset: qwen3-32b}'",
    "rollouts": "'rollouts: {prompt_tokens: {mean: 512}, response_tokens: {mean: 800, max: 4096}}'",
    "contrastive": "'contrastive: {width: 1024}', the width of the embeddings",
}


@cache
def engine_names() -> tuple[str, ...]:
    """Inference engines that data/engines.csv knows."""
    return tuple(dict.fromkeys(row["engine"] for row in bundled_rows("engines.csv")))


def method_faults(w: Workload) -> Iterator[Fault]:
    """What only adapters, only quantised weights or only all weights can have."""
    training = w.training
    if training is None:
        return
    for name in ("lora_rank", "adapter"):
        if training.method == "full" and name in training.model_fields_set:
            text = "has no effect with method full: write 'method: lora' or remove it"
            yield Fault(("training", name), text, at_key=True)
    if training.quantization is not None and training.method != "qlora":
        text = f"has no effect with method {training.method}: write 'method: qlora' or remove it"
        yield Fault(("training", "quantization"), text, at_key=True)
    adapter = training.adapter
    if adapter is None:
        return
    if (
        adapter.rank is not None
        and "lora_rank" in training.model_fields_set
        and adapter.rank != training.lora_rank
    ):
        text = f"{adapter.rank} contradicts lora_rank {training.lora_rank}: give one of them"
        yield Fault(("training", "adapter", "rank"), text)
    if adapter_key(adapter.kind) not in adapter_names():
        text = f"{adapter.kind!r} is not known; `planner schema adapters` lists them, `other` means any other"
        yield Fault(("training", "adapter", "kind"), text, near(adapter.kind, adapter_names()))


def objective_faults(w: Workload) -> Iterator[Fault]:
    """What an objective needs, and what it has no use for."""
    training = w.training
    if training is None:
        return
    objective, name = load_objectives()[training.objective], training.objective
    if training.reference is not None and not objective.reference:
        yield Fault(
            ("training", "reference"), f"objective {name} has no reference model: remove it", at_key=True
        )
    if training.reference == "adapters_off" and training.method not in ADAPTED:
        text = "needs adapters to switch off: write 'method: lora', or 'reference: resident'"
        yield Fault(("training", "reference"), text)
    if training.reference == "precomputed" and objective.rollouts:
        text = f"responses of {name} are new in each step: write resident, or adapters_off with adapters"
        yield Fault(("training", "reference"), text)
    sections = (
        ("teacher", objective.teacher), ("rollouts", objective.rollouts), ("contrastive", name == "contrastive"),
    )  # fmt: skip
    for key, is_needed in sections:
        is_given = getattr(training, key) is not None
        if is_needed and not is_given:
            yield Fault(
                ("training", "objective"), f"{name} needs a section 'training.{key}', e.g. {_EXAMPLES[key]}"
            )
        if is_given and not is_needed:
            yield Fault(("training", key), f"objective {name} has no {key}: remove it", at_key=True)
    if training.packing and (objective.sequences > 1 or objective.rollouts):
        text = f"pairs and responses of objective {name} are not packed: remove it"
        yield Fault(("training", "packing"), text, at_key=True)
    family = _family(w)
    if name not in ANY_FAMILY and family not in (None, "transformer"):
        text = f"is modelled for transformers, not for family '{family}': write pretrain, sft or contrastive"
        yield Fault(("training", "objective"), text)
    yield from _teacher_faults(training)


def _family(w: Workload) -> str | None:
    if w.model is None or (w.model.preset is not None and find_preset(w.model.preset) is None):
        return None
    family = merge_model(w.model)[0].get("family")
    return None if family is None else str(family)


def _teacher_faults(training: Training) -> Iterator[Fault]:
    teacher = training.teacher
    if teacher is None:
        return
    if teacher.preset is not None and find_preset(teacher.preset) is None:
        hint = near(teacher.preset, preset_names())
        yield Fault(("training", "teacher", "preset"), f"preset {teacher.preset!r} is not known", hint)
    elif teacher.preset is None and teacher.params is None:
        yield Fault(("training", "teacher"), "needs a preset or params", at_key=True)


def length_faults(w: Workload) -> Iterator[Fault]:
    """Lengths in order, and no longer than the sequence."""
    training = w.training
    if training is not None and training.lengths is not None:
        yield from _in_order(training.lengths, ("training", "lengths"))
        longest, most = training.lengths.max, training.sequence_length
        if most is not None and max(longest or 0, training.lengths.mean) > most:
            text = f"is longer than sequence_length {most:,}: longer sequences are cut there"
            yield Fault(("training", "lengths", "max" if longest else "mean"), text)
    if training is not None and training.rollouts is not None:
        yield from _rollout_faults(training, training.rollouts)


def _in_order(lengths: Lengths, path: tuple[str, ...]) -> Iterator[Fault]:
    if lengths.p95 is not None and lengths.p95 < lengths.mean:
        yield Fault((*path, "p95"), f"{lengths.p95:g} is less than the mean of {lengths.mean:g}")
    if lengths.max is not None and lengths.max < max(lengths.mean, lengths.p95 or 0.0):
        yield Fault((*path, "max"), f"{lengths.max:,} is less than the mean or the p95")


def _rollout_faults(training: Training, rollouts: Rollouts) -> Iterator[Fault]:
    path = ("training", "rollouts")
    yield from _in_order(rollouts.prompt_tokens, (*path, "prompt_tokens"))
    yield from _in_order(rollouts.response_tokens, (*path, "response_tokens"))
    batch = training.global_batch
    if batch % rollouts.samples_per_prompt:
        text = f"{rollouts.samples_per_prompt} must divide global_batch, the {batch:,} responses of a step"
        yield Fault((*path, "samples_per_prompt"), text)
    if rollouts.update_batch is not None and (rollouts.update_batch > batch or batch % rollouts.update_batch):
        text = f"{rollouts.update_batch:,} must divide global_batch, the {batch:,} responses of a step"
        yield Fault((*path, "update_batch"), text)
    if rollouts.placement == "colocated":
        if rollouts.steps_off_policy:
            text = (
                "generation cannot run ahead on the accelerators that train: write 'placement: disaggregated'"
            )
            yield Fault((*path, "steps_off_policy"), text)
        if rollouts.generation_share is not None:
            yield Fault((*path, "generation_share"), "needs 'placement: disaggregated'", at_key=True)
    if rollouts.in_flight_updates is not None and not rollouts.steps_off_policy:
        text = "on policy, responses are written with one version of the weights: write 'steps_off_policy: 1' or more"
        yield Fault((*path, "in_flight_updates"), text, at_key=True)
    yield from engine_faults(rollouts, path)


def engine_faults(section: Rollouts | EngineChoice, path: tuple[str, ...]) -> Iterator[Fault]:
    """An engine that no figures are known of, or a mode that it does not have."""
    if section.engine.lower() not in engine_names():
        text = (
            f"{section.engine!r} is not known; `planner schema engines` lists them, `other` means any other"
        )
        yield Fault((*path, "engine"), text, near(section.engine, engine_names()))
    elif section.engine_version is not None and section.engine.lower() not in released_engines():
        text = f"releases of {section.engine!r} are not known: give engine_year instead"
        yield Fault((*path, "engine_version"), text)
    if not section.cuda_graphs and not section.engine.lower().startswith(tuple(released_engines())):
        text = f"eager mode of {section.engine!r} is not known, only of vLLM, SGLang and TensorRT-LLM: leave it out"
        yield Fault((*path, "cuda_graphs"), text)
    if section.engine_version is not None and section.engine_year is not None:
        yield Fault((*path, "engine_year"), "engine_version says it already: remove one", at_key=True)


def inference_faults(w: Workload) -> Iterator[Fault]:
    """A workload of kind inference, and only that, says what is answered."""
    if w.kind != "inference":
        if w.inference is not None:
            yield Fault(("inference",), f"needs 'kind: inference' (kind is {w.kind})", at_key=True)
        return
    for name in ("training", "task"):
        if getattr(w, name) is not None:
            yield Fault((name,), f"nothing is trained with kind inference: remove {name!r}", at_key=True)
    section = w.inference
    if section is None:
        yield Fault(
            ("kind",), "inference needs a section 'inference', e.g. 'inference: {requests: 1e6, ...}'"
        )
        return
    yield from engine_faults(section, ("inference",))
    if (section.requests is None) == (section.items is None):
        yield Fault(("inference",), "needs exactly one of requests, items", at_key=True)
    for key in ("input_tokens", "output_tokens"):
        lengths = getattr(section, key)
        if lengths is not None:
            yield from _in_order(lengths, ("inference", key))
    yield from _needs_of_requests(w, section)


def _needs_of_requests(w: Workload, section: Inference) -> Iterator[Fault]:
    family = _family(w)
    if family is None or w.model is None:
        return
    architecture = merge_model(w.model)[0].get("architecture") if family == "transformer" else None
    generates, writes_uncounted = architecture == "decoder", architecture == "encoder_decoder"
    if generates and section.items is not None:
        text = (
            "a model that generates answers requests: give requests, input_tokens and output_tokens"
            " ({mean: 1} where it only embeds or scores)"
        )
        yield Fault(("inference", "items"), text, at_key=True)
    if not generates and section.requests is not None:
        text = "this model does not generate: write items in place of requests and their tokens"
        if writes_uncounted:
            text = (
                "what an encoder-decoder writes is not modelled: give items, single passes, which take less"
            )
        yield Fault(("inference", "requests"), text, at_key=True)
    for key in ("input_tokens", "output_tokens"):
        is_given = getattr(section, key) is not None
        needed = generates or (key == "input_tokens" and family == "transformer")
        if needed and not is_given:
            yield Fault(("inference",), f"needs {key}{'' if generates else _of_an_item(w)}", at_key=True)
        if is_given and not needed:
            text = "this model has no such tokens: remove it"
            if writes_uncounted:
                text = "what an encoder-decoder writes is not modelled: remove it"
            yield Fault(("inference", key), text, at_key=True)
    for key in ("denoising_steps", "guidance"):
        if getattr(section, key) is not None and passes_of(w.model, family).steps is None:
            yield Fault(
                ("inference", key), "this model makes nothing in denoising steps: remove it", at_key=True
            )


def _of_an_item(w: Workload) -> str:
    """How the tokens of an item are written: those that the preset was made for, where it makes images or clips."""
    preset = None if w.model is None or w.model.preset is None else find_preset(w.model.preset)
    if preset is None or preset.sequence_length is None or preset.values.get("vocab"):
        return ", the tokens of an item: {mean: 300}"
    return f": {{mean: {preset.sequence_length}}} for {preset.name} as usual"


RULES = (
    (("training",), method_faults),
    (("training", "model"), objective_faults),
    (("training",), length_faults),
    (("kind", "inference", "model", "training", "task"), inference_faults),
)
