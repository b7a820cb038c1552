"""From the keys of a `config.json` to a model: which reader a configuration has is a row of data/model_types.csv."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from planner.bundled import bundled_rows
from planner.errors import InputError
from planner.inputs.model_config.bridges import bridge_params, joint_params
from planner.inputs.model_config.diffusion import read_diffusion
from planner.inputs.model_config.encoders import encoder_of, tower_params
from planner.inputs.model_config.language import read_text
from planner.inputs.model_config.mamba_ssm import is_mamba_ssm, of_mamba_ssm
from planner.inputs.model_config.model import ConfigModel, Keys, ModelType
from planner.inputs.model_config.perception import (
    read_speech,
    read_towers,
    read_vision,
    read_whisper,
)
from planner.inputs.model_config.seq2seq import read_bart, read_t5

MAX_DEPTH = 32
_TOWERS = ("high_res_vision_config", "vision_config", "audio_config")
_TEXT_SECTIONS = ("text_config", "llm_config", "language_config", "language_model_config")


def parse_json(text: str, name: str) -> dict[str, Any]:
    """Parse a JSON mapping of bounded depth without repeated keys.

    Raises:
        InputError: it is none; names line and column.
    """
    try:
        data = json.loads(text, object_pairs_hook=_pairs)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}:{error.colno}: is not valid JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        reason = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{name}: is not valid JSON: {reason}") from None
    if not isinstance(data, dict):
        raise InputError(f"{name}: must be a mapping of keys to values")
    _check_depth(data, name)
    return data


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"key '{key[:60]}' is given twice")
        out[key] = value
    return out


def _check_depth(data: object, name: str) -> None:
    level: list[object] = [data]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for node in level
            for item in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise InputError(f"{name}: is nested more than {MAX_DEPTH} levels deep")


def is_model_config(data: Mapping[str, Any]) -> bool:
    """Whether the keys look like a model's configuration."""
    diffusers = isinstance(data.get("_class_name"), str)
    return (
        "model_type" in data or "architectures" in data or diffusers or _is_timm(data) or is_mamba_ssm(data)
    )


def model_of_config(data: Mapping[str, Any], place: str) -> ConfigModel:
    """Size the model of a configuration.

    Args:
        data: its keys.
        place: what messages call it.

    Raises:
        InputError: a size is missing, or the architecture cannot be modelled; says why and what to do.
    """
    if isinstance(data.get("_class_name"), str):
        return read_diffusion(Keys(data, place))
    if _is_timm(data):
        return _timm(data)
    if is_mamba_ssm(data):
        data = of_mamba_ssm(data, place)
    text = next((data[name] for name in _TEXT_SECTIONS if isinstance(data.get(name), dict)), None)
    kind = _kind(data, place)
    if isinstance(data.get("thinker_config"), dict):
        return model_of_config(data["thinker_config"], f"{place}: thinker_config")
    if text is not None and kind.reader not in ("towers", "refused"):
        return _multimodal(data, text, place)
    keys = Keys(data, place, kind.defaults)
    if kind.reader == "refused":
        raise InputError(f"{place}: model_type '{kind.name}' cannot be modelled: {kind.note}")
    model = READERS[kind.reader](keys, kind)
    vision = data.get("vision_config")
    return (
        _with_tower(model, vision, place) if isinstance(vision, dict) and kind.reader == "decoder" else model
    )


def _is_timm(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get("architecture"), str) and ("num_features" in data or "pretrained_cfg" in data)


def _timm(data: Mapping[str, Any]) -> ConfigModel:
    """The file of timm names the network and states no sizes: they are the preset's of that name."""
    return ConfigModel(data["architecture"], {"preset": data["architecture"]}, {"preset": "architecture"})


def _kind(data: Mapping[str, Any], place: str) -> ModelType:
    name = data.get("model_type")
    if "block_configs" in data:
        raise InputError(
            f"{place}: block_configs: layers that differ one by one are not counted: give family transformer with "
            "sizes and params, and calibrate with a measured run"
        )
    if not isinstance(name, str) or not name:
        classes = data.get("architectures")
        first = classes[0] if isinstance(classes, list) and classes else None
        if not isinstance(first, str):
            raise InputError(f"{place}: has no 'model_type': is it the config.json of a model?")
        return _unknown(first)
    kind = load_model_types().get(name)
    return kind if kind is not None else _unknown(name)


def _unknown(name: str) -> ModelType:
    text = f"model_type '{name[:60]}' is not known: read as a decoder of plain blocks; check params against its page"
    return ModelType(name, "decoder", note=text, is_known=False)


def _multimodal(data: Mapping[str, Any], text: Mapping[str, Any], place: str) -> ConfigModel:
    """A language model with encoders of images or sound before it: theirs are parameters, their work is not counted."""
    shared = ("tie_word_embeddings", "vocab_size", "model_type", "architectures")
    inherited = {name: data[name] for name in shared if name in data}
    tied = data.get("tie_word_embeddings")
    if tied is not None and _is_of_transformers_5(
        data
    ):  # where both say it, the model ties as its own file says
        text = {**text, "tie_word_embeddings": tied}
    own = {name: value for name, value in text.items() if value is not None}
    model = model_of_config({**inherited, **own}, f"{place}: text_config")
    for name in _TOWERS:
        tower = data.get(name)
        if isinstance(tower, dict):
            model = _with_tower(model, tower, f"{place}: {name}")
    if str(data.get("model_type")) not in load_model_types():
        note = f"model_type '{str(data.get('model_type'))[:60]}' is not known: what joins its parts is not counted"
        model = replace(model, doubts=(*model.doubts, f"{note}; check params against its page"))
    bridges = {name: bridge_params(part, f"{place}: {name}") for name, part in data.items()}
    vision = Keys(data.get("vision_config") or {}, f"{place}: vision_config")
    joined = joint_params(str(data.get("model_type")), vision, Keys(text, f"{place}: text_config"))
    for name, params in {**bridges, "what joins encoder and language model": joined or None}.items():
        if params is not None:
            note = f"{name}: {params / 1e6:,.0f} M parameters are counted, not their work"
            model = _with_params(model, params, note)
    others = [
        name for name, part in data.items()
        if name.endswith("_config") and bridges[name] is None and _is_uncounted(name, part)
    ]  # fmt: skip
    if others:
        note = f"{', '.join(others)}: not counted; check params against the model's page"
        model = replace(model, notes=(*model.notes, note))
    return replace(model, model_type=str(data.get("model_type", model.model_type)))


def _is_of_transformers_5(data: Mapping[str, Any]) -> bool:
    release = str(data.get("transformers_version", "")).partition(".")[0]
    return release.isascii() and release.isdigit() and len(release) < 4 and int(release) >= 5


def _is_uncounted(name: str, part: object) -> bool:
    """Whether a section of a file describes a network that nothing here counts (an adapter, a resampler)."""
    counted = (*_TEXT_SECTIONS, *_TOWERS)
    sizes = ("hidden_size", "d_model", "hidden_dim", "num_hidden_layers", "num_layers")
    return name not in counted and isinstance(part, dict) and any(part.get(size) for size in sizes)


def _with_tower(model: ConfigModel, tower: Mapping[str, Any], place: str) -> ConfigModel:
    keys = Keys(tower, place)
    has_sizes = any(name in keys for name in ("num_hidden_layers", "depth", "encoder_layers"))
    if not has_sizes:
        note = "an encoder before the language model is not counted: its sizes are not in the file"
        return replace(model, notes=(*model.notes, note))
    params = tower_params(keys)
    note = (
        f"the encoder of {params / 1e6:,.0f} M parameters before the language model counts by its parameters; the work "
        "of its own positions does only where it is a network under model.parts: calibrate with a measured run"
    )
    return replace(_with_params(model, params, note), encoder=encoder_of(keys))


def _with_params(model: ConfigModel, params: int, note: str) -> ConfigModel:
    """More parameters that every token uses, and what is to be known of them."""
    sizes = {
        name: model.values[name] + params for name in ("params", "active_params") if name in model.values
    }
    return replace(model, values={**model.values, **sizes}, notes=(*model.notes, note))


def _encoder(keys: Keys, kind: ModelType) -> ConfigModel:
    return read_text(keys, kind, "encoder")


READERS: dict[str, Callable[[Keys, ModelType], ConfigModel]] = {
    "decoder": read_text,
    "encoder": _encoder,
    "t5": read_t5,
    "bart": read_bart,
    "vision": read_vision,
    "towers": read_towers,
    "whisper": read_whisper,
    "speech": read_speech,
}


@cache
def load_model_types() -> dict[str, ModelType]:
    """Read data/model_types.csv, by name."""
    return {row["model_type"]: _model_type(row) for row in bundled_rows("model_types.csv")}


def _model_type(row: dict[str, str]) -> ModelType:
    defaults = dict(pair.split("=") for pair in row["defaults"].split(";") if pair)
    return ModelType(
        row["model_type"],
        row["reader"],
        {"yes": True, "no": False}.get(row["gated"]),
        row["positions"] == "learned",
        row["tied"] != "no",
        {key: int(value) for key, value in defaults.items()},
        row["note"],
    )
