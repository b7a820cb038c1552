"""The frontier of every example fits a screen, against time and against carbon, on a part of the catalog."""

from __future__ import annotations

import pytest

from planner.render import render_answer
from tests.cli.test_screens import DAY, EXAMPLES, MOST_LINES, shown_by

SINGLE = (
    "batch-inference-70b", "bert-large", "dpo-8b", "gpt3-175b", "grpo-8b", "images-100gb", "llama-3-8b",
    "llama-70b-lora", "low-carbon", "mixtral-eu", "onprem-comparison", "owned-top-up", "qlora-70b", "resnet50-imagenet",
    "stable-diffusion-finetune", "vlm-8b",
)  # fmt: skip
pytestmark = pytest.mark.catalog("small")


@pytest.mark.parametrize("against", ["time", "carbon"])
@pytest.mark.parametrize("name", SINGLE)
def test_a_frontier_of_every_example_fits_a_screen(name: str, against: str) -> None:
    asked = ("frontier", str(EXAMPLES / f"{name}.yaml"), *DAY, "--against", against)
    for width, most in MOST_LINES.items():
        text = str(render_answer(shown_by(*asked), "table", width=width))
        assert len(text.splitlines()) <= most, text
