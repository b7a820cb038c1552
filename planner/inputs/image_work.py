"""What another image size does to the work of a preset.

Convolutions, linear layers and attention within windows grow with the area. In a transformer whose `n` image tokens and
`t` text tokens all attend to each other, linear layers grow with `n + t` and attention scores with its square:

    F' = (F - A) (n' + t) / (n + t) + A ((n' + t) / (n + t))^2,     A = 4 x layers x hidden x (n + t)^2

(products of queries with keys and of scores with values, 2 x multiply-accumulates; the usual count, as in the appendix
of arXiv:2205.05198). Activations grow with `n + t`, as no scores are kept.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from planner.bundled import bundled_rows
from planner.inputs.presets import find_preset

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@cache
def load_image_tokens() -> dict[str, tuple[float, float]]:
    """Image and text tokens of presets at their own image size."""
    return {
        row["preset"]: (float(row["image_tokens"]), float(row["text_tokens"]))
        for row in bundled_rows("image_tokens.csv")
    }


def image_growth(preset: str, values: Mapping[str, Any], image_size: float) -> tuple[float, float]:
    """Factors of the FLOPs and of the activations of a sample at another image size.

    Args:
        preset: canonical name; any other text means growth with the area.
        values: the network now, with `image_size` and, of a transformer, `layers`, `hidden` and
            `forward_flops_per_sample`.
        image_size: wanted, pixels along one side.
    """
    now = float(values["image_size"])
    area = (image_size / now) ** 2
    known = load_image_tokens().get(preset)
    own = None if known is None else find_preset(preset)
    needed = ("layers", "hidden", "forward_flops_per_sample")
    if known is None or own is None or any(not values.get(key) for key in needed):
        return area, area
    image, text = known[0] * (now / float(own.values["image_size"])) ** 2, known[1]
    tokens = (image * area + text) / (image + text)
    scores = 4.0 * float(values["layers"]) * float(values["hidden"]) * (image + text) ** 2
    share = scores / float(values["forward_flops_per_sample"])
    if share >= 1.0:  # stated FLOPs leave scores out
        return tokens, tokens
    return (1.0 - share) * tokens + share * tokens**2, tokens
