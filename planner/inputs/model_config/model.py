"""A model as its configuration states it, and the look-up of keys that goes by several names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

from planner.errors import InputError
from planner.records import record

# More than any network has; a larger figure is a fault of the file.
_MOST = 10**9
# What older files call a layer's own heads.
_OF_GLOBAL_LAYERS = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}


@record(frozen=True)
class ConfigModel:
    """A model as its configuration states it.

    Attributes:
        model_type: the configuration's own name of the architecture.
        values: keys of a workload's `model` section.
        sources: the configuration's key behind each of `values`.
        context_length: longest sequence in tokens; None where there is none.
        notes: what was assumed or left out.
        doubts: the same of what may change the model's size.
        encoder: a network of images or sound that is in `params` too, as a part of a workload's model.
    """

    model_type: str
    values: Mapping[str, Any]
    sources: Mapping[str, str]
    context_length: int | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    encoder: Mapping[str, Any] | None = None


@record(frozen=True)
class ModelType:
    """One row of `data/model_types.csv`: how configurations with this `model_type` are read.

    Attributes:
        reader: name of the reader, or `refused`.
        gated: the feed-forward network has a gate; None: by the activation function.
        positions: the positions have a learned table.
        tied: what an absent `tie_word_embeddings` means.
        defaults: values of absent keys, by the key's usual name.
        note: what a user should know; the reason where the reader is `refused`.
        is_known: False: no row of the table, so the reader is a guess.
    """

    name: str
    reader: str
    gated: bool | None = None
    positions: bool = False
    tied: bool = True
    defaults: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    is_known: bool = True


class Keys:
    """Look-up of keys that have several names; remembers which one answered."""

    def __init__(
        self, data: Mapping[str, Any], place: str, defaults: Mapping[str, int] | None = None
    ) -> None:
        """Take a configuration.

        Args:
            data: its keys.
            place: what messages call it.
            defaults: values of absent keys.
        """
        self.data = data
        self.place = place
        self.defaults = defaults or {}
        self.used: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    def size(self, *names: str) -> int | None:
        """A whole number above zero under the first of `names` that is given, None where none is.

        Raises:
            InputError: it is something else.
        """
        count = self.count(*names)
        if count == 0:
            raise InputError(f"{self.place}: {self.used[names[0]]}: must be above 0, got 0")
        return count

    def need(self, *names: str) -> int:
        """As `size`, but it must be given.

        Raises:
            InputError: it is absent; names the key.
        """
        value = self.size(*names)
        if value is None:
            alternatives = " or ".join(f"{name!r}" for name in names[:3])
            raise InputError(
                f"{self.place}: has no {alternatives}, so the size of the model is not known; "
                "give a complete config.json, or the sizes under 'model' yourself"
            )
        return value

    def count(self, *names: str) -> int | None:
        """A whole number, zero included, under the first of `names` that is given."""
        for name in names:
            value = self.data.get(name)
            if value is None:
                continue
            self.used[names[0]] = name
            if isinstance(value, list) and value and all(type(item) is int for item in value):
                value = round(
                    Fraction(sum(value), len(value))
                )  # one for each layer: their mean stands for all
            whole = int(value) if isinstance(value, float) and value.is_integer() else value
            if type(whole) is not int or not 0 <= whole <= _MOST:
                raise InputError(f"{self.place}: {name}: must be a whole number, got {_shown(value)}")
            return whole
        default = next((self.defaults[name] for name in names if name in self.defaults), None)
        if default is not None:
            self.used[names[0]] = f"default of {names[0]}"
        return default

    def of_layer(self, layer: int) -> Keys:
        """The keys in force for one layer: its own in `per_layer_config` (Transformers 5) over the file's."""
        every = self.section("per_layer_config")
        layer_config = next(
            (every[name] for name in (str(layer), f"{layer:02d}", f"{layer:03d}") if name in every), None
        )
        if not isinstance(layer_config, dict):
            return self
        older = {old: layer_config[name] for name, old in _OF_GLOBAL_LAYERS.items() if name in layer_config}
        return Keys(
            {**self.data, **older, **layer_config}, f"{self.place}: per_layer_config: {layer}", self.defaults
        )

    def ratio(self, name: str) -> float | None:
        """A number above zero."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST:
            raise InputError(f"{self.place}: {name}: must be a number above 0, got {_shown(value)}")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(f"{self.place}: {name}: must be true or false, got {_shown(value)}")
        return value

    def text(self, name: str) -> str:
        """A text, empty where there is none."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    def items(self, name: str) -> tuple[Any, ...]:
        """A list, empty where there is none."""
        value = self.data.get(name)
        return tuple(value) if isinstance(value, list) else ()

    def section(self, *names: str) -> Mapping[str, Any]:
        """A mapping under the first of `names` that holds one, empty where none does."""
        return next((self.data[name] for name in names if isinstance(self.data.get(name), dict)), {})


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
