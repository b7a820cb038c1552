"""What a vision model asks of a device by kind of operator, instead of one count of FLOPs.

A depthwise convolution does little arithmetic per byte, a grouped one often misses the matmul units, a normalisation
none at all: two models of equal FLOPs differ several times in speed. The counts come from the model's published code
(`data/vision_operators.csv`, made by `benchmarks/vision_profiles.py`) where its name, size and FLOPs match; for any
other model they are inferred from FLOPs per activation by the typical shares of models alike
(`data/vision_classes.csv`).
"""

from __future__ import annotations

import csv
import math
import re
from functools import cache

from planner.bundled import DATA, bundled_rows
from planner.records import record

# Counts that grow with the image (FLOPs, then elements), then those that do not.
FLOP_FIELDS = (
    "convolution_flops", "linear_flops", "attention_flops", "padding_flops", "grouped_flops", "split_flops",
    "depthwise_flops", "small_filter_flops",
)  # fmt: skip
ELEMENT_FIELDS = (
    "convolution_elements", "linear_elements", "attention_elements", "depthwise_elements", "unaligned_elements",
    "batch_norm_elements", "layer_norm_elements", "group_norm_elements", "in_place_norm_elements", "pointwise_elements",
    "copied_elements", "reduced_elements", "promoted_elements",
)  # fmt: skip
COUNT_FIELDS = ("kernels", "tensors")
FIELDS = (*FLOP_FIELDS, *ELEMENT_FIELDS, *COUNT_FIELDS)
COLUMN = {name: position for position, name in enumerate(FIELDS)}
# Stated and published FLOPs may differ by what is counted (attention products, biases, recurrent cells).
FLOPS_AGREE = 1.35
_SAME_FLOPS = 0.005  # of FLOPs that the area explains
_MORE_TOKENS = 1.05  # than the area has: class tokens, windows that do not divide
LEAST_LETTERS = 5
HEAD = ("model", "image_size", "params", "forward_flops", "activations", *FIELDS)


@record(frozen=True)
class Operators:
    """Forward pass of one sample, values in the order of `FIELDS`; `published` when read from the model's own code.

    FLOPs are 2 x multiply-accumulates: dense convolutions (1 x 1 too), linear layers, attention products, what dense
    matrices add when rounded up to tiles of 64, grouped convolutions with a direct kernel (groups of 4 to 32 channels,
    in multiples of 32 groups), other grouped convolutions (as at groups of 64 channels), depthwise convolutions, and
    once more those of the dense ones that have 3 x 3 taps at stride 1 (`small_filter_flops`).
    Elements are inputs + outputs of matrix operators, outputs of the others; `unaligned` ones belong to matrices whose
    channels are no multiple of 8. `kernels` counts operator calls, `tensors` trainable tensors.
    """

    values: tuple[float, ...]
    published: bool


@record(frozen=True)
class Published:
    """A row of the table: counts at `image_size` pixels, `flops` and `activations` in all."""

    image_size: float
    flops: float
    activations: float
    params: float
    values: tuple[float, ...]

    def at(self, image_size: float | None) -> Published:
        """The counts at another image size: all but the number of calls grow with the area."""
        area = self._area(image_size)
        return self._grown(area, area, image_size)

    def of_flops(self, image_size: float | None, flops: float) -> Published:
        """The counts of a transformer at another image size, with as many tokens as make these FLOPs.

        Attention scores grow with the square of the tokens, and where text is among them, tokens grow by less than the
        area. Where the area gives the FLOPs (convolutions, attention in windows), or no such number does, it counts.
        """
        tokens = self._tokens(image_size, flops)
        return self.at(image_size) if tokens is None else self._grown(tokens, tokens**2, image_size)

    def distance(self, image_size: float | None, flops: float, *, is_cnn: bool) -> float:
        """How far the counts are from these FLOPs: logarithm of their ratio, or of that of tokens to the area."""
        by_area = abs(math.log(flops / self.at(image_size).flops))
        tokens = None if is_cnn else self._tokens(image_size, flops)
        return by_area if tokens is None else min(by_area, abs(math.log(tokens / self._area(image_size))))

    def _tokens(self, image_size: float | None, flops: float) -> float | None:
        """How many times as many tokens make these FLOPs; None where the area does, or none that it allows."""
        area, scores = self._area(image_size), self.values[COLUMN["attention_flops"]]
        if area == 1.0 or not scores or abs(flops / (self.flops * area) - 1.0) < _SAME_FLOPS:
            return None
        rest = self.flops - scores
        tokens = (math.sqrt(rest**2 + 4.0 * scores * flops) - rest) / (2.0 * scores)
        is_plausible = min(area, 1.0) / _MORE_TOKENS <= tokens <= max(area, 1.0) * _MORE_TOKENS
        return tokens if is_plausible else None

    def _area(self, image_size: float | None) -> float:
        return (image_size / self.image_size) ** 2 if image_size and self.image_size else 1.0

    def _grown(self, factor: float, of_scores: float, image_size: float | None) -> Published:
        factors = [of_scores if name == "attention_flops" else factor for name in FIELDS]
        factors[-len(COUNT_FIELDS) :] = [1.0] * len(COUNT_FIELDS)
        scores = self.values[COLUMN["attention_flops"]]
        return Published(
            image_size or self.image_size, (self.flops - scores) * factor + scores * of_scores,
            self.activations * factor, self.params,
            tuple(value * times for value, times in zip(self.values, factors, strict=True)),
        )  # fmt: skip


def operators_of(
    name: str, family: str, image_size: float | None, flops: float, activations: float
) -> Operators:
    """Counts of a model: published where name and FLOPs agree, else inferred.

    Args:
        name: the model's name in any spelling; the beginning of one will do (`vit-base` for `vit_base_patch16_224`).
        family: `cnn`, `vit` or `diffusion`.
        image_size: pixels along one side, None when unknown.
        flops: forward FLOPs of one sample.
        activations: stored activation elements of one sample.
    """
    known = find_published(name)
    begun = [] if known or len(_plain(name)) < LEAST_LETTERS else _beginning(_plain(name))
    is_cnn = family == "cnn"
    nearest = min(
        [known] if known else begun,
        key=lambda row: round(row.distance(image_size, flops, is_cnn=is_cnn), 2),
        default=None,
    )
    if nearest is not None:
        best = nearest.at(image_size) if is_cnn else nearest.of_flops(image_size, flops)
        if 1.0 / FLOPS_AGREE < flops / best.flops < FLOPS_AGREE:
            return Operators(best.values, True)
    return infer_operators(family, flops, activations)


def infer_operators(family: str, flops: float, activations: float) -> Operators:
    """Counts of an unknown model: the typical shares of published models with as many FLOPs per activation."""
    density = flops / activations
    rows = [row for row in _classes() if row["family"] == ("vit" if family == "vit" else "cnn")]
    row = next((row for row in rows if density <= float(row["max_flops_per_activation"])), rows[-1])
    scale = dict.fromkeys(FLOP_FIELDS, flops) | dict.fromkeys(ELEMENT_FIELDS, activations)
    return Operators(tuple(float(row[name]) * scale.get(name, 1.0) for name in FIELDS), False)


def find_published(name: str) -> Published | None:
    """The table's row for a name: the same letters and digits, but for a version (`v1.5`) or weights (`.a1_in1k`)."""
    table = _lines()
    plain = _plain(name)
    version = re.compile(r"v(?=[0-9]+$)")
    same = (plain, version.sub("", plain), version.split(plain)[0], _plain(name.split(".")[0]))
    # timm calls a network with weights ported from TensorFlow `tf_...`; some have no other name there.
    spellings = (*same, *("tf" + word for word in same), *(word.removeprefix("tf") for word in same))
    return next((_published(table[word]) for word in spellings if word in table), None)


def _beginning(plain: str) -> list[Published]:
    """The table's rows whose name begins so, the shortest name (the plainest variant) first."""
    words = sorted((word for word in _lines() if word.startswith(plain)), key=len)
    return [_published(_lines()[word]) for word in words]


def _published(line: list[str]) -> Published:
    image_size, params, flops, activations, *values = map(float, line[1:])
    return Published(image_size, flops, activations, params, tuple(values))


def _plain(name: str) -> str:
    """Letters and digits, without an organisation in front."""
    owner, _, last = name.lower().rpartition("/")
    return re.sub(r"[^a-z0-9]", "", last if not last.isdigit() else owner + last)


@cache
def _lines() -> dict[str, list[str]]:
    """Rows of `vision_operators.csv` as cells by plain name; numbers are read only for the row that is wanted."""
    with (DATA / "vision_operators.csv").open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if next(rows)[: len(HEAD)] != list(HEAD):
            raise ValueError(
                "vision_operators.csv does not have the columns of planner.performance.operators"
            )
        table: dict[str, list[str]] = {}
        for row in rows:
            table.setdefault(_plain(row[0]), row)
        return table


@cache
def _classes() -> list[dict[str, str]]:
    return bundled_rows("vision_classes.csv")
