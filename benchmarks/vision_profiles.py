"""Count the operators of published vision models: `python -m benchmarks.vision_profiles [--names FILE]`.

Builds each model of timm (0.6.13, the release of the measured tables) and of `benchmarks.vision_networks` without
weights on the meta device of PyTorch, runs one forward pass and adds up FLOPs and elements by kind of operator; needs
`torch` and `timm`, which the project itself does not. Writes `planner/data/vision_operators.csv` and from it the
typical shares of `planner/data/vision_classes.csv`.
"""

from __future__ import annotations

import argparse
import importlib
import math
import statistics
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.rows import read_csv
from benchmarks.vision_networks import NETWORKS
from planner.bundled import DATA
from planner.files import write_atomically
from planner.performance.operators import COUNT_FIELDS, FIELDS, FLOP_FIELDS, HEAD

BATCH = 2
# A forward pass and two gradients, of inputs and of weights; frozen layers at the beginning have no gradients.
PASSES = 3.0
TILE = 64
# Channels per group that cuDNN's direct kernels take, and the multiple of groups they come in.
DIRECT_WIDTHS = (4, 8, 16, 32)
DIRECT_GROUPS = 32
# Rate of other grouped convolutions grows about so with the channels per group; counted as at `SPLIT_WIDTH`.
SPLIT_WIDTH, SPLIT_POWER = 64.0, 0.6
BOUNDS = {
    "cnn": (100.0, 160.0, 400.0, 700.0, 1000.0, 1800.0, math.inf),
    "vit": (400.0, 700.0, 1200.0, math.inf),
}
_VIEWS = frozenset({
    "view", "_unsafe_view", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "slice",
    "select", "split", "split_with_sizes", "unbind", "detach", "alias", "as_strided", "unfold",
    "_reshape_alias", "chunk", "reshape", "empty", "empty_like", "lift_fresh", "diagonal", "narrow",
})  # fmt: skip
_COPIES = frozenset({
    "clone", "cat", "roll", "index", "constant_pad_nd", "_to_copy", "copy_", "stack", "reflection_pad2d",
    "im2col", "col2im", "repeat", "upsample_bicubic2d", "upsample_nearest2d", "upsample_bilinear2d",
})  # fmt: skip
_MATRICES = frozenset({"convolution", "addmm", "mm", "bmm", "baddbmm"})
_REDUCTIONS = frozenset({
    "mean", "sum", "var_mean", "std", "var", "norm", "linalg_vector_norm", "adaptive_max_pool2d",
    "_adaptive_avg_pool2d", "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d",
})  # fmt: skip
# What eager automatic precision runs in 16 bit, in 32 bit, and in the widest type of its inputs, by PyTorch's names
# (the lists of its CUDA autocast that these models meet); all else takes the types that it is given.
NARROW = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "matmul",
    "__matmul__",
    "bmm",
    "mm",
    "addmm",
    "baddbmm",
    "einsum",
)
WIDE = (
    "layer_norm", "group_norm", "softmax", "normalize", "norm", "sum", "exp", "log", "pow", "rsqrt", "reciprocal",
)  # fmt: skip
# An operator that no model of the table uses marks the package `inplace_abn` (see `stand_in`).
IN_PLACE_NORM = "hardshrink"
Shape = tuple[int, ...]
Counts = dict[str, float]


def convolution(
    counts: Counts, data: Shape, weight: Shape, out: Shape, groups: int, steps: Sequence[int]
) -> None:
    """Add one convolution; shapes are (batch, channels, ...) and (outputs, inputs per group, ...).

    `steps` are its strides and dilations, all 1 where every pixel is an output and taps are neighbours.
    """
    inputs, outputs, taps = data[1], out[1], math.prod(weight[2:])
    flops = 2.0 * math.prod(out) / BATCH * math.prod(weight[1:])
    elements = (math.prod(data) + math.prod(out)) / BATCH
    counts["forward_flops"] += flops
    counts["activations"] += math.prod(out) / BATCH
    if groups > 1 and weight[1] == 1 and groups >= inputs:
        counts["depthwise_flops"] += flops
        counts["depthwise_elements"] += elements
    elif groups > 1:
        narrow = min(weight[1], outputs // groups)
        direct = weight[1] * groups == outputs and narrow in DIRECT_WIDTHS and groups % DIRECT_GROUPS == 0
        counts["convolution_elements"] += elements
        counts["grouped_flops"] += flops if direct else 0.0
        counts["split_flops"] += 0.0 if direct else flops * (SPLIT_WIDTH / narrow) ** SPLIT_POWER
    else:
        counts["convolution_flops"] += flops
        counts["convolution_elements"] += elements
        if weight[2:] == (3, 3) and set(steps) == {1}:
            counts["small_filter_flops"] += flops
        if inputs > 4:
            tiled = _up(outputs, TILE) / outputs * _up(inputs * taps, TILE) / (inputs * taps)
            counts["padding_flops"] += flops * (tiled - 1.0)
    if inputs > 4 and (inputs % 8 or outputs % 8):
        counts["unaligned_elements"] += elements


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def operator(
    counts: Counts, name: str, ins: list[Shape], outs: list[Shape], groups: int, steps: Sequence[int]
) -> None:
    """Add one operator call with the shapes of its inputs and outputs; `groups` and `steps` of convolutions."""
    made = sum(math.prod(shape) for shape in outs)
    if made <= 2 * BATCH:
        return
    read, made_each = sum(math.prod(shape) for shape in ins) / BATCH, made / BATCH
    counts["kernels"] += 1.0
    if name == "convolution":
        convolution(counts, ins[0], ins[1], outs[0], groups, steps)
    elif name in ("addmm", "mm"):
        rows, width = ins[-2]
        flops = 2.0 * rows * width * ins[-1][1] / BATCH
        counts["forward_flops"] += flops
        counts["activations"] += made_each
        counts["linear_flops"] += flops
        counts["linear_elements"] += rows * width / BATCH + made_each
    elif name in ("bmm", "baddbmm"):
        flops = 2.0 * math.prod(ins[-2]) * ins[-1][2] / BATCH
        counts["forward_flops"] += flops
        counts["activations"] += made_each
        counts["attention_flops"] += flops
        counts["attention_elements"] += (math.prod(ins[-2]) + math.prod(ins[-1])) / BATCH + made_each
    elif name in ("native_batch_norm", "native_layer_norm", "native_group_norm"):
        counts[f"{name.split('_')[1]}_norm_elements"] += math.prod(outs[0]) / BATCH
    elif name == IN_PLACE_NORM:
        counts["in_place_norm_elements"] += made_each
    elif name in ("_softmax", "_log_softmax", "_safe_softmax"):
        counts["attention_elements"] += made_each
    elif name in _COPIES:
        counts["copied_elements"] += made_each
    elif name in _REDUCTIONS:
        counts["reduced_elements"] += read
    else:
        counts["pointwise_elements"] += made_each


def count(model: Any, size: Shape) -> Counts:
    """Counts of one forward pass of a PyTorch model in training mode, per sample of shape `size`.

    Layers that are not trained count once where others count three times; they keep no activations for later.
    """
    torch = importlib.import_module("torch")
    dispatch = importlib.import_module("torch.utils._python_dispatch")
    counts, frozen = (dict.fromkeys(HEAD[2:], 0.0) for _ in range(2))

    def tensors(value: Any) -> list[Shape]:
        items = value if isinstance(value, tuple | list) else [value]
        return [tuple(item.shape) for item in items if isinstance(item, torch.Tensor)]

    class Recorder(dispatch.TorchDispatchMode):  # type: ignore[misc,name-defined]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            name = function._schema.name.split("::")[1]
            outs = tensors(result)
            if name not in _VIEWS and outs:
                ins = [shape for value in args for shape in tensors(value)]
                groups, steps = (args[8], [*args[3], *args[5]]) if name == "convolution" else (1, [])
                found = counts if torch.is_grad_enabled() else frozen
                operator(found, name, ins, outs, groups, steps)
            return result

    model = model.train().to("meta")
    with Recorder():
        model(torch.empty((BATCH, *size), device="meta"))
    for field in FIELDS:
        counts[field] += frozen[field] / PASSES
    counts["forward_flops"] += frozen["forward_flops"]
    counts["promoted_elements"] = promoted(model, size)
    weights = list(model.parameters())
    counts["tensors"] = float(sum(weight.requires_grad for weight in weights))
    return {**counts, "params": float(sum(weight.numel() for weight in weights))}


def promoted(model: Any, size: Shape) -> float:
    """Elements per sample that point-wise operators and copies write in 32 bit under eager automatic precision.

    Parameters stay in 32 bit there, so scaling a layer, adding a position, or adding to what a layer norm has written
    gives 32 bit, which residual streams pass on.
    """
    torch = importlib.import_module("torch")
    dispatch = importlib.import_module("torch.utils._python_dispatch")
    written = 0.0

    class Recorder(dispatch.TorchDispatchMode):  # type: ignore[misc,name-defined]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal written
            result = function(*args, **(kwargs or {}))
            name = function._schema.name.split("::")[1]
            first = result[0] if isinstance(result, tuple | list) and result else result
            counts: Counts = dict.fromkeys(HEAD[2:], 0.0)
            if isinstance(first, torch.Tensor) and name not in _VIEWS and name != "_to_copy":
                if first.dtype == torch.float32 and name not in _MATRICES:
                    operator(counts, name, [], [tuple(first.shape)], 1, [])
                written += counts["pointwise_elements"] + counts["copied_elements"]
            return result

    with automatic_precision(), Recorder():
        model.train().to("meta")(torch.empty((BATCH, *size), device="meta"))
    return written


def automatic_precision() -> Any:
    """A mode of PyTorch that casts as its CUDA autocast does, which tensors without a device do not have."""
    torch = importlib.import_module("torch")
    overrides = importlib.import_module("torch.overrides")
    places = (torch, torch.nn.functional, torch.Tensor)

    def found(names: Sequence[str]) -> set[Any]:
        return {getattr(place, name) for place in places for name in names if hasattr(place, name)}

    narrow, wide = found(NARROW), found(WIDE)

    def cast(value: Any, kind: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(cast(item, kind) for item in value) if type(value) in (tuple, list) else value
        floats = (torch.float32, torch.bfloat16)
        return value.to(kind) if isinstance(value, torch.Tensor) and value.dtype in floats else value

    class Automatic(overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = dict(kwargs or {})
            if function in narrow or function in wide:
                kind = torch.bfloat16 if function in narrow else torch.float32
                args = tuple(cast(value, kind) for value in args)
                named = {key: cast(value, kind) for key, value in named.items()}
            return function(*args, **named)

    return Automatic()


def no_initialisation() -> None:
    """Weights are never read: skip filling them."""
    init = importlib.import_module("torch.nn.init")
    for name in dir(init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(init, name, lambda tensor, *_, **__: tensor)


def stand_in() -> None:
    """Put a module in the place of the package `inplace_abn`, whose kernels need an accelerator to build."""
    torch = importlib.import_module("torch")

    def inplace_abn(x: Any, *_: Any, **__: Any) -> Any:
        return torch.nn.functional.hardshrink(x)

    class InPlaceABN(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, features: int, *_: Any, **__: Any) -> None:
            super().__init__()
            self.weight, self.bias = (torch.nn.Parameter(torch.ones(features)) for _ in range(2))

        def forward(self, x: Any) -> Any:
            return inplace_abn(x)

    package = types.ModuleType("inplace_abn")
    functions = types.ModuleType("inplace_abn.functions")
    for module in (package, functions):
        vars(module).update(InPlaceABN=InPlaceABN, inplace_abn=inplace_abn, inplace_abn_sync=inplace_abn)
    sys.modules.update({"inplace_abn": package, "inplace_abn.functions": functions})


def rows_of(wanted: Sequence[str]) -> list[dict[str, str]]:
    """One row of the table per name: of timm (optionally `name,image size`) or of `vision_networks.NETWORKS`.

    Models that do not build are told on stderr.
    """
    stand_in()
    torch, timm = importlib.import_module("torch"), importlib.import_module("timm")
    no_initialisation()
    rows = []
    for entry in wanted:
        name, _, size = entry.partition(",")
        try:
            if name in NETWORKS:
                builder, pixels = NETWORKS[name]
                with torch.device("meta"):
                    model, shape = builder()
            else:
                model = timm.create_model(name, pretrained=False)
                pixels = int(float(size or model.default_cfg["input_size"][1]))
                shape = (3, pixels, pixels)
            rows.append(spell(name, pixels, count(model, shape)))
        except Exception as error:  # noqa: BLE001 - a table of many models goes on without the few that do not build
            print(f"{entry}: {type(error).__name__}: {error}", file=sys.stderr)
    return rows


def spell(name: str, size: int, counts: Counts) -> dict[str, str]:
    """A row of the table: five significant digits."""
    return {"model": name, "image_size": str(size), **{key: f"{counts[key]:.5g}" for key in HEAD[2:]}}


def classes(rows: Sequence[dict[str, str]], families: dict[str, str]) -> list[dict[str, str]]:
    """Median shares by family and FLOPs per activation: FLOP fields per FLOP, elements per activation, counts."""
    out = []
    for family, bounds in BOUNDS.items():
        lower = 0.0
        for upper in bounds:
            inside = [
                row for row in rows
                if families[row["model"]] == family
                and lower < float(row["forward_flops"]) / float(row["activations"]) <= upper
            ]  # fmt: skip
            lower = upper
            if not inside:
                continue
            made = {"family": family, "max_flops_per_activation": str(upper), "models": str(len(inside))}
            for field in FIELDS:
                base = "forward_flops" if field in FLOP_FIELDS else "activations"
                per = [float(r[field]) / (1.0 if field in COUNT_FIELDS else float(r[base])) for r in inside]
                made[field] = f"{statistics.median(per):.4g}"
            out.append(made)
    return out


def family_of(row: dict[str, str]) -> str:
    """`vit` where linear layers and attention do most of the work, else `cnn`."""
    token = float(row["linear_flops"]) + float(row["attention_flops"])
    return "vit" if token > 0.5 * float(row["forward_flops"]) else "cnn"


def save(path: Path, names: Sequence[str], rows: Sequence[dict[str, str]]) -> None:
    """Write rows as CSV."""
    lines = [",".join(names), *(",".join(row[name] for name in names) for row in rows)]
    write_atomically(path, "\n".join(lines) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Add models to the table and write the classes anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=Path, help="file with one model per line, optionally `,image size`")
    chosen = parser.parse_args(arguments)
    path = DATA / "vision_operators.csv"
    table = {row["model"]: row for row in (read_csv(path) if path.exists() else [])}
    if chosen.names:
        wanted = [
            line.strip() for line in chosen.names.read_text(encoding="utf-8").splitlines() if line.strip()
        ]
        table |= {row["model"]: row for row in rows_of(wanted)}
    rows = [table[name] for name in sorted(table)]
    save(path, HEAD, rows)
    made = classes(rows, {row["model"]: family_of(row) for row in rows})
    save(DATA / "vision_classes.csv", ("family", "max_flops_per_activation", "models", *FIELDS), made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
