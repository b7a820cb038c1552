"""In how many bits a configuration says that its weights are stored, in the words of `inference.precision`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SECTIONS = ("quantization_config", "compression_config")
# Methods of Transformers that say it by their name; others state the bits.
_METHODS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "finegrained_fp8": "fp8", "mxfp4": "mxfp4"}
_ALGORITHMS = {"FP8": "fp8", "NVFP4": "fp4", "W4A16_AWQ": "int4", "INT8_SQ": "int8"}
_BITS = {("int", 4): "int4", ("int", 8): "int8", ("float", 4): "fp4", ("float", 8): "fp8"}


def stored_precision(config: Mapping[str, Any]) -> str | None:
    """Precision of the stored weights by `quantization_config`; None where it is not stated or not one that is known.

    Args:
        config: keys of a `config.json`; sections of a language model count as the whole.
    """
    for part in (config, *(value for value in config.values() if isinstance(value, dict))):
        for name in _SECTIONS:
            if isinstance(part.get(name), dict):
                return _precision(part[name])
    return None


def _precision(section: Mapping[str, Any]) -> str | None:
    method = str(section.get("quant_method", "")).lower()
    if method in _METHODS:
        return _METHODS[method]
    if section.get("load_in_4bit") is True:
        return "int4"
    if section.get("load_in_8bit") is True:
        return "int8"
    if isinstance(section.get("quant_algo"), str):
        return _ALGORITHMS.get(section["quant_algo"].upper())
    if isinstance(section.get("config_groups"), dict):
        groups = [
            group.get("weights") for group in section["config_groups"].values() if isinstance(group, dict)
        ]
        precisions = {_of_bits(weights) for weights in groups if isinstance(weights, dict)}
        return precisions.pop() if len(precisions) == 1 else None
    return _of_bits({"num_bits": section.get("bits", section.get("w_bit"))})


def _of_bits(weights: Mapping[str, Any]) -> str | None:
    bits = weights.get("num_bits")
    return _BITS.get((str(weights.get("type", "int")), bits)) if isinstance(bits, int) else None
