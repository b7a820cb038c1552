"""Models that a script builds from a configuration of Transformers: `BertForMaskedLM(BertConfig(hidden_size=512))`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.errors import InputError
from planner.inputs.model_config.read import load_model_types, model_of_config
from planner.trainer_files.model import Reading
from planner.trainer_files.python_values import UNKNOWN, Call

_CONFIG = "Config"
# what begins the names of sizes, and `**more`
_SIZES = ("**", "n_", "num_", "hidden", "intermediate", "vocab", "d_", "ffn")


def add_configured(reading: Reading, given: object) -> None:
    """Size the model that a call builds from a configuration; where it cannot be, its name says why.

    Args:
        reading: of the script; changed in place.
        given: what a trainer is given as its model.
    """
    call = next((call for call in _configurations(given) if _kind_of(call)), None)
    if call is None:
        return
    reading.hub_key = call.name
    stated = {
        name: value
        for name, value in call.named.items()
        if value is not UNKNOWN and not isinstance(value, Call)
    }
    unread = [name for name in (*call.unread, *(call.named.keys() - stated)) if name.startswith(_SIZES)]
    if unread:
        reading.hub_name = f"a new model, of which the script works out {', '.join(unread)}"
        return
    try:
        reading.model = model_of_config(
            {**stated, "model_type": _kind_of(call)}, f"{reading.path.name}: {call.name}"
        )
    except InputError as error:
        reading.hub_name = f"a new model ({error})"


def _configurations(value: Any, depth: int = 4) -> Iterator[Call]:
    """Configurations among the arguments of the calls that a model went through."""
    if not isinstance(value, Call) or not depth:
        return
    if value.name.rpartition(".")[0].endswith(_CONFIG) or value.last.endswith(_CONFIG):
        yield value
        return
    for part in (*value.positional[:2], value.named.get("model"), value.named.get("config")):
        yield from _configurations(part, depth - 1)


def _kind_of(call: Call) -> str:
    """The `model_type` of a configuration, empty where it is none of a model that is read.

    `AutoConfig.from_pretrained("gpt2")` takes the name of a model, which may be that of its kind.
    """
    owner = call.name.rpartition(".")[0].rpartition(".")[2] if call.last == "from_pretrained" else call.last
    named = call.positional[0] if call.positional and call.last == "from_pretrained" else ""
    kind = named if owner == f"Auto{_CONFIG}" else owner.removesuffix(_CONFIG)
    plain = str(kind).lower().replace("_", "").replace("-", "")
    return next((name for name in load_model_types() if name.replace("_", "").replace("-", "") == plain), "")
