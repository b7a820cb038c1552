"""Rules on a serving file whose speeds are predicted from the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.inputs.checks_post_training import engine_faults
from planner.inputs.faults import Fault, FaultError
from planner.inputs.models import merge_model
from planner.inputs.plain import section_of
from planner.inputs.resolve import resolve_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.inputs.resolved import ResolvedModel
    from planner.inputs.serving_schema import Serving
    from planner.inputs.training_schema import Model

_OF_PREDICTIONS = ("inference", "latency", "confidence")


def served_model(serving: Serving) -> ResolvedModel:
    """The complete model of a file that names one.

    Raises:
        FaultError: unknown preset, or a needed size is missing.
    """
    return resolve_model(_as_of_a_workload(serving))


def prediction_faults(serving: Serving, predicted: Sequence[int]) -> Iterator[Fault]:
    """What predictions need and the file lacks, and keys that only predictions have.

    Args:
        serving: the file.
        predicted: positions of the machines whose speeds are to be predicted.
    """
    yield from _without_effect(serving, set(predicted))
    if serving.model is None:
        return
    try:
        served_model(serving)
    except FaultError as error:
        yield from error.faults
    else:
        if merge_model(_as_of_a_workload(serving))[0].get("architecture") != "decoder":
            yield Fault(("model",), "speeds are predicted of models that generate text: give requests_per_s")
    yield from engine_faults(serving.inference, ("inference",))
    if predicted:
        yield from _needs(serving, predicted)


def _as_of_a_workload(serving: Serving) -> Model:
    """The network of a file that names one, as a workload's section `model` with the same keys."""
    assert serving.model is not None
    given = serving.model.model_fields_set
    model: Model = section_of("Model", **{name: value for name, value in serving.model if name in given})
    return model


def _needs(serving: Serving, predicted: Sequence[int]) -> Iterator[Fault]:
    for at, bucket in enumerate(serving.buckets):
        for key in ("input_tokens", "output_tokens"):
            if getattr(bucket, key) is None:
                yield Fault(
                    ("buckets", at), f"needs {key}: the speed of {_named(serving, predicted)} is predicted"
                )
    for at in predicted:
        machine = serving.machines[at]
        if machine.provider is None or machine.instance_type is None:
            text = "needs provider and instance_type, whose accelerators its speed is predicted of, or requests_per_s"
            yield Fault(("machines", at), f"machine {machine.name!r} {text}")


def _named(serving: Serving, predicted: Sequence[int]) -> str:
    return f"{serving.machines[predicted[0]].name!r}"


def _without_effect(serving: Serving, predicted: set[int]) -> Iterator[Fault]:
    if serving.model is None:
        for key in _OF_PREDICTIONS:
            if key in serving.model_fields_set:
                yield Fault(
                    (key,), "is of predicted speeds: name the model that answers, or remove it", at_key=True
                )
    for at, machine in enumerate(serving.machines):
        for key in ("measured", "tensor_parallel"):
            if at not in predicted and key in machine.model_fields_set:
                text = "is of predicted speeds: name the model that answers, and give this machine no requests_per_s"
                yield Fault(("machines", at, key), text, at_key=True)
