"""From a preset and explicit fields to a complete model: merging, parameter counts, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from planner.inputs.image_work import image_growth
from planner.inputs.presets import Preset, find_preset

if TYPE_CHECKING:
    from planner.inputs.faults import Path
    from planner.inputs.training_schema import Model, Network

Values = Mapping[str, Any]

_DIMENSIONS = ("layers", "hidden", "heads", "vocab")
_SIZED_BY = frozenset(
    (
        *(
            "layers",
            "hidden",
            "heads",
            "kv_heads",
            "head_dim",
            "ffn",
            "gated_mlp",
            "vocab",
            "tied_embeddings",
        ),
        *("experts", "experts_per_token", "shared_experts", "moe_ffn", "dense_layers", "family"),
    )
)
# What a network says of more than its sizes.
_NOT_SIZES = frozenset(
    (
        *("preset", "config", "stored_precision", "parts", "embedding_tables"),
        *("trainable", "last_layers", "tokens", "per_sample"),
    )
)
_PER_SAMPLE = ("forward_flops_per_sample", "activations_per_sample")


def main_network(model: Network) -> Network:
    """The network that `training` describes: the model itself, or the first of its parts."""
    parts = getattr(model, "parts", None)
    return parts[0] if parts else model


def networks(model: Model) -> Iterator[tuple[Path, Network]]:
    """Each network of a model with its place in the workload."""
    if not model.parts:
        yield ("model",), model
    for index, part in enumerate(model.parts or ()):
        yield ("model", "parts", index), part


def merge_model(model: Network) -> tuple[dict[str, Any], Preset | None]:
    """Return the fields known of `model`, explicit ones over its preset's, dependent dimensions filled in.

    An explicit dimension of a preset drops the preset's parameter counts, so that they are computed anew; another image
    size changes its FLOPs and activations (see `image_growth`). Of a model given by parts it is the first.
    """
    model = main_network(model)
    explicit = {key: value for key, value in model if key not in _NOT_SIZES and value is not None}
    preset = find_preset(model.preset) if model.preset is not None else None
    values: dict[str, Any] = dict(preset.values) if preset is not None else {}
    if (explicit.get("family") or values.get("family")) == "transformer" and changes_size(explicit):
        values.pop("params", None)
        values.pop("active_params", None)
    if explicit.get("image_size") and values.get("image_size"):
        grown = image_growth(preset.name if preset else "", values, explicit["image_size"])
        pairs = zip(_PER_SAMPLE, grown, strict=True)
        values |= {key: round(values[key] * factor) for key, factor in pairs if key in values}
    values.update(explicit)
    fill_dimensions(values)
    return values, preset


def has_no(what: str, model: Network) -> str:
    """Words for `tokens` or `sequences` that a model does not take: of sound, what its sample is."""
    values, preset = merge_model(model)
    if preset is not None and preset.sample:
        return f"a sample of {preset.name} is {preset.sample}"
    return f"family '{values.get('family')}' has no {what}"


def changes_size(keys: Iterable[str]) -> bool:
    """Whether stating one of these keys beside a known model changes its number of parameters."""
    return not _SIZED_BY.isdisjoint(keys)


def fill_dimensions(values: dict[str, Any]) -> None:
    """Fill in place what follows from a transformer's other dimensions (kv_heads, head_dim, ffn, ...)."""
    if values.get("family") != "transformer":
        return
    heads, hidden = values.get("heads"), values.get("hidden")
    if heads is not None:
        values.setdefault("kv_heads", heads)
    if heads is not None and hidden is not None:
        values.setdefault("head_dim", hidden // heads)
    if hidden is not None:
        values.setdefault("ffn", 4 * hidden)
    if values.get("experts") is not None and values.get("ffn") is not None:
        values.setdefault("moe_ffn", values["ffn"])
    for key, default in (
        ("gated_mlp", False),
        ("tied_embeddings", False),
        ("shared_experts", 0),
        ("dense_layers", 0),
    ):
        values.setdefault(key, default)
    values.setdefault("architecture", "decoder")


def missing_fields(values: Values, frozen: bool = False) -> tuple[str, ...]:
    """Return the names of the fields that the estimate cannot do without and that are not known.

    Args:
        values: what is known.
        frozen: only a forward pass is needed, which keeps no activations.
    """
    if values.get("family") == "transformer":
        needed = [*_DIMENSIONS]
        if values.get("params") is not None:
            needed.remove("vocab")
        if values.get("experts") is not None:
            needed.append("experts_per_token")
    elif frozen:
        needed = ["params", "forward_flops_per_sample"]
    else:
        needed = ["params", *_PER_SAMPLE]
    return tuple(key for key in needed if values.get(key) is None)


def count_params(values: Values) -> tuple[int, int]:
    """Count all and active parameters of a transformer from its dimensions, without biases and positions.

    Per block: attention `h*d*(2*a + 2*k)` for `a` query heads and `k` key/value heads of width `d`;
    feed-forward `m*h*f` with `m` = 3 matrices when gated, else 2; two norms `2*h`. Decoder blocks of an
    encoder-decoder (half of the layers) add cross-attention and a norm. A mixture-of-experts block has
    `(experts + shared)*m*h*f_moe` and a router `h*experts`; of its experts only `experts_per_token + shared`
    are active. Embeddings are `V*h`, twice when untied, plus the final norm. (The usual count, e.g. the
    appendix of arXiv:2205.05198, with grouped queries and gating.)

    Args:
        values: complete dimensions (see `missing_fields`).

    Returns:
        Parameters in all, and parameters each token uses.
    """
    hidden, layers = values["hidden"], values["layers"]
    matrices = 3 if values["gated_mlp"] else 2
    attention = hidden * values["head_dim"] * (2 * values["heads"] + 2 * values["kv_heads"])
    common = layers * (attention + 2 * hidden)
    if values["architecture"] == "encoder_decoder":
        cross = hidden * values["head_dim"] * 4 * values["heads"] + hidden
        common += (layers // 2) * cross
    embeddings = values["vocab"] * hidden * (1 if values["tied_embeddings"] else 2)
    common += embeddings + hidden
    dense = matrices * hidden * values["ffn"]
    experts = values.get("experts")
    if experts is None:
        total = common + layers * dense
        return total, total
    expert_params = matrices * hidden * values["moe_ffn"]
    moe_layers = layers - values["dense_layers"]
    common += values["dense_layers"] * dense + moe_layers * hidden * experts
    total = common + moe_layers * (experts + values["shared_experts"]) * expert_params
    active = common + moe_layers * (values["experts_per_token"] + values["shared_experts"]) * expert_params
    return total, active
