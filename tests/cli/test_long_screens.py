"""Screens whose answers take long to find, on a part of the catalog: frontiers of all examples, a robust portfolio."""

from __future__ import annotations

import re

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


def test_a_robust_portfolio_fits_a_screen_and_rounds_its_worst_outcomes() -> None:
    answer = shown_by("portfolio", str(EXAMPLES / "robust.yaml"), *DAY, "--gap", "10%")
    for width, most in MOST_LINES.items():
        text = str(render_answer(answer, "table", width=width))
        assert len(text.splitlines()) <= most, text
    # ten of 200 scenarios: their mean is known to about a tenth
    assert re.search(r"mean of the worst 5 %: \$[0-9,]*0[,;]", str(render_answer(answer, "table", width=200)))
