"""Forward passes of an item of batch inference: an image is made in denoising steps, a transcript token by token.

With classifier-free guidance each denoising step has a second pass without the prompt (Ho and Salimans 2022, arXiv
2207.12598); where a workload leaves both open, the usual pipeline's defaults in data/item_passes.csv count. Transcripts
come at a measured share of the rate of one pass over all positions.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from planner.bundled import bundled_rows
from planner.inputs.presets import find_preset
from planner.inputs.resolved import Assumed
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.post_training_schema import Inference
    from planner.inputs.training_schema import Model

_ANY = "*"


@record(frozen=True)
class Passes:
    """Denoising steps of an item, each with a second pass or not, or the share of one pass's rate; and who says so."""

    source: str
    steps: int | None = None
    guidance: bool = False
    rate_ratio: float = 1.0

    @property
    def number(self) -> float:
        """Forward passes, 1 of models that answer in one."""
        return (self.steps or 1) * (2.0 if self.guidance else 1.0)


@cache
def load_passes() -> dict[str, Passes]:
    """Read item_passes.csv, by preset."""
    return {
        row["preset"]: Passes(
            row["source"], int(row["steps"]) if row["steps"] else None, row["guidance"] == "true",
            float(row["rate_ratio"] or 1.0),
        )
        for row in bundled_rows("item_passes.csv")
    }  # fmt: skip


def passes_of(model: Model, family: str, section: Inference | None = None) -> Passes:
    """Passes of an item.

    Args:
        model: of the workload.
        family: of its architecture.
        section: what the workload states of denoising.
    """
    preset = find_preset(model.preset) if model.preset is not None else None
    released = load_passes().get(preset.name) if preset is not None else None
    usual = released or (load_passes()[_ANY] if family == "diffusion" else Passes(""))
    if section is None or usual.steps is None:
        return usual
    guided = usual.guidance if section.guidance is None else section.guidance
    return Passes(usual.source, section.denoising_steps or usual.steps, guided)


def assumed_passes(section: Inference, passes: Passes, architecture: str | None = None) -> list[Assumed]:
    """Return what a plan rests on of them, stated or not."""
    if architecture == "encoder_decoder":
        note = "what the decoder writes, token by token, is not counted: calibrate with a measured run"
        return [
            Assumed("inference.passes", "1", "pass of encoder and decoder over each input", "default", note)
        ]
    if passes.steps is None:
        share = (
            Assumed(
                "inference.rate_ratio", f"{passes.rate_ratio:g}", "of one pass", "derived", passes.source
            ),
        )
        return list(share) if passes.rate_ratio != 1.0 else []
    stated = section.denoising_steps is not None, section.guidance is not None
    values = (("denoising_steps", str(passes.steps), "steps"), ("guidance", str(passes.guidance).lower(), ""))
    return [
        Assumed(
            f"inference.{key}",
            value,
            unit,
            "workload" if is_given else "default",
            "" if is_given else passes.source,
        )
        for (key, value, unit), is_given in zip(values, stated, strict=True)
    ]
