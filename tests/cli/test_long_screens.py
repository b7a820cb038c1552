"""Screens whose answers take long to find, on a part of the catalog: frontiers, a robust portfolio."""

from __future__ import annotations

import re

import pytest

from planner.render import render_answer
from tests.cli.test_screens import DAY, EXAMPLES, MOST_LINES, shown_by

# samples in words of their own, spot and on-demand, rollouts, a ladder of models, machines that are owned, and the
# longest against time beside these
EACH_KIND = (
    "batch-inference-70b", "bert-large", "grpo-8b", "images-100gb", "owned-top-up", "stable-diffusion-finetune",
)  # fmt: skip
pytestmark = pytest.mark.catalog("small")


@pytest.mark.parametrize("against", ["time", "carbon"])
@pytest.mark.parametrize("name", EACH_KIND)
def test_a_frontier_fits_a_screen(name: str, against: str) -> None:
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
