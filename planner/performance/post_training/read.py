"""From what a workload says of post-training (`planner.inputs.post_training.PostTraining`) to the model's own values.

The argument is read by attribute, so that this package needs nothing of the input files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.performance.post_training.spec import Contrastive, Engine, Lengths, Requests, Rollouts, Tuning
from planner.releases import figures_of_release


def tuning_of(post: Any) -> Tuning:
    """Turn a complete `PostTraining` into a `Tuning`."""
    return Tuning(
        objective=post.objective,
        sequences=post.sequences,
        adapter=post.adapter,
        targets=tuple(post.targets),
        base=post.base,
        lengths=_lengths(post.lengths),
        packed=post.packed,
        grouped=post.grouped,
        reference=post.reference,
        mismatched=post.mismatched,
        critic=post.critic,
        teacher_params=post.teacher_params,
        teacher_active_params=post.teacher_active_params,
        rollouts=None if post.rollouts is None else _rollouts(post),
        requests=None if post.inference is None else _requests(post),
        contrastive=None
        if post.contrastive is None
        else Contrastive(post.contrastive.width, post.contrastive.logits),
    )


def tuning_from(values: Mapping[str, Any]) -> Tuning:
    """Rebuild a `Tuning` from the plain values of its fields."""
    fields = dict(values)
    fields["targets"] = tuple(fields.get("targets", Tuning.targets))
    if "lengths" in fields:
        fields["lengths"] = Lengths(**fields["lengths"])
    if fields.get("contrastive") is not None:
        fields["contrastive"] = Contrastive(**fields["contrastive"])
    for name, kind in (("rollouts", Rollouts), ("requests", Requests)):
        if name in fields:
            parts = {
                key: Lengths(**fields[name][key]) for key in ("prompts", "answers") if key in fields[name]
            }
            engine = {"engine": Engine(**fields[name]["engine"])} if "engine" in fields[name] else {}
            fields[name] = kind(**{"prompts": None, "answers": None, **fields[name], **parts, **engine})
    return Tuning(**fields)


def _lengths(given: Any) -> Lengths | None:
    return None if given is None else Lengths(given.mean, given.p95, given.longest)


def _rollouts(post: Any) -> Rollouts:
    section = post.rollouts
    prompts, answers = _lengths(post.prompts), _lengths(post.answers)
    assert prompts is not None and answers is not None
    return Rollouts(
        prompts=prompts,
        answers=answers,
        samples_per_prompt=section.samples_per_prompt,
        update_batch=section.update_batch,
        epochs=section.epochs,
        old_logprobs=section.old_logprobs == "computed",
        engine=Engine(
            *_figures(section), section.precision, "bf16", section.tensor_parallel, None, section.cuda_graphs
        ),
        colocated=section.placement == "colocated",
        generation_share=section.generation_share,
        steps_off_policy=section.steps_off_policy,
        in_flight=section.in_flight_updates is not False,
    )


def _requests(post: Any) -> Requests:
    section = post.inference
    return Requests(
        _lengths(post.prompts),
        _lengths(post.answers),
        engine_of_section(section),
        section.shared_prefix,
        post.passes,
        post.rate_ratio,
        section.requests,
    )


def engine_of_section(section: Any) -> Engine:
    """The engine that a section of batch inference or of a serving file names."""
    return Engine(
        *_figures(section), section.precision, section.kv_precision,
        section.tensor_parallel, section.max_concurrency, section.cuda_graphs,
    )  # fmt: skip


def _figures(section: Any) -> tuple[str, int | None]:
    """Name and year by which the engine's release is measured, None for the newest."""
    name = section.engine.lower()
    if section.engine_version is not None:
        return figures_of_release(name, section.engine_version)
    return name, section.engine_year
