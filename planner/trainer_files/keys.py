"""Look-up in a foreign file: values under dotted keys, read leniently, with every key that was looked at remembered."""

from __future__ import annotations

import math
import operator
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.errors import InputError
from planner.trainer_files.model import Document

_YES = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
# Keys of tools with hundreds of arguments, but for those whose name says that they move work or memory.
# kinds of 4 bits, sizes of files, and what scales or begins adapters
_NAMED = (
    r"(?:use_)?bnb_.*|(?:save|max)_shard_size|lora_(?:alpha|dropout|bias|init.*|.*path|.*exclude)|use_rslora"
)
LIGHT = rf"{_NAMED}|(?!.*(parallel|offload|shard|quant|freeze|frozen|teacher|distill|mtp_|galore|lisa_|replica|lora)).*"
_MOST = 10**15
_NUMBER = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9]*)?([eE][-+]?[0-9]+)?")
# a reference without another one inside, and what of it is a resolver with what it is given
_REFERENCE = re.compile(r"\$\{([^${}]*)\}")
_RESOLVER = re.compile(r"\s*([\w.]+)\s*:(.*)", re.DOTALL)
_DEPTH = 8
# resolvers that NeMo, its launcher and NeMo RL register with OmegaConf
_RESOLVERS: Mapping[str, Callable[[float, float], float]] = {
    "multiply": operator.mul, "mul": operator.mul, "add": operator.add, "sum": operator.add, "max": max, "min": min,
    "divide": operator.truediv, "div": operator.truediv, "divide_floor": operator.floordiv,
    "divide_ceil": lambda left, right: math.ceil(left / right),
}  # fmt: skip


class Lookup:
    """Values of a document by dotted key."""

    def __init__(self, document: Document) -> None:
        """Take the parsed file."""
        self.document = document
        self.seen: set[str] = set()
        self.unresolved: dict[str, str] = {}
        self.negative: dict[str, float] = {}

    def get(self, key: str) -> Any:
        """The value, None where there is none; OmegaConf's references are put in.

        An empty key, as `first` gives it, has no value. A value whose reference cannot be followed has none either, and
        is kept in `unresolved`.
        """
        if not key:
            return None
        self.seen.add(key)
        value = _walk(self.document.data, key)
        if isinstance(value, list) and self.document.syntax == "arguments":
            value = value[0]  # what follows belongs to the next command
        if isinstance(value, str) and "${" in value:
            try:
                return _followed(self.document.data, key, value, _DEPTH)
            except LookupError:
                self.unresolved[key] = value
                return None
        return value

    def reference(self, key: str) -> str:
        """The key that an OmegaConf reference given as the value names, empty where the value is none."""
        value = _walk(self.document.data, key)
        return _referred(key, value) if isinstance(value, str) and value.startswith("${") else ""

    def has(self, key: str) -> bool:
        """Whether the key is given and is neither null nor empty (`???`: OmegaConf's mark of what must be given)."""
        return self.get(key) not in (None, "", "???", [], {})

    def first(self, *keys: str) -> str:
        """The first of the keys that is given, empty where none is."""
        return next((key for key in keys if self.has(key)), "")

    def flag(self, key: str) -> bool | None:
        """True or false however it is written; None where it is absent or another word (`auto`)."""
        value = self.get(key)
        if not isinstance(value, str | int | float):
            return None
        return value if isinstance(value, bool) else _YES.get(str(value).strip().lower())

    def text(self, key: str) -> str:
        """A text, empty where there is none."""
        value = self.get(key)
        return value.strip() if isinstance(value, str) else ""

    def whole(self, key: str) -> int | None:
        """A whole number above zero; None where the key is absent, `auto`, or 0 and below (not set).

        What is below -1, with which trainers write "not set", is kept in `negative`.

        Raises:
            InputError: it is anything else.
        """
        number = self.number(key)
        if number is None or number <= 0:
            if number is not None and number < -1:
                self.negative[key] = number
            return None
        if number != int(number):
            raise self.wrong(key, "must be a whole number")
        return int(number)

    def number(self, key: str) -> float | None:
        """A number; None where the key is absent or `auto`.

        Raises:
            InputError: it is anything else.
        """
        value = self.get(key)
        if value is None or (
            isinstance(value, str) and value.strip().lower() in ("", "auto", "none", "null", "???")
        ):
            return None
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST:
            raise self.wrong(key, "must be a number")
        return value

    def wrong(self, key: str, text: str) -> InputError:
        """The error for a value that cannot be."""
        shown = reprlib.repr(self.get(key))  # a script's values may hold one another many times
        return InputError(f"{self.document.path}: {key}: {text}, got {shown[:60]}")


def _followed(data: Mapping[str, Any], key: str, text: str, depth: int) -> Any:
    """A text with its references replaced by their values, the innermost first.

    Raises:
        LookupError: one of them names no key, cannot be worked out, or leads too far.
    """
    while depth and (match := _REFERENCE.search(text)) is not None:
        depth -= 1
        value = _resolved(data, key, match[1], depth)
        if match[0] == text:
            return value
        if not isinstance(value, str | int | float):
            raise LookupError(text)
        text = text[: match.start()] + str(value) + text[match.end() :]
    if "${" in text:
        raise LookupError(text)
    return text


def _resolved(data: Mapping[str, Any], key: str, inner: str, depth: int) -> Any:
    """What stands for `${inner}`: another key's value, the default of a variable, or a sum of numbers."""
    match = _RESOLVER.fullmatch(inner)
    if match is None:
        referred = _referred(key, f"${{{inner}}}")
        section, _, last = referred.rpartition(".")
        holder = _walk(data, section) if section else data
        if not isinstance(holder, Mapping) or last not in holder:
            raise LookupError(inner)
        value = holder[last]
        return _followed(data, referred, value, depth) if isinstance(value, str) and "${" in value else value
    name, given = match[1], match[2].strip()
    if (
        given.startswith("-") and name not in _RESOLVERS
    ):  # a variable of the shell with its default, for envsubst
        return given[1:].strip("'\"") or None
    words = [word.strip().strip("'\"") for word in given.split(",")]
    default = words[1] if len(words) == 2 and words[1] != "null" else None
    if name == "oc.select" and len(words) <= 2:
        try:
            return _resolved(data, key, words[0], depth)
        except LookupError:
            return default
    if name == "oc.env" and len(words) == 2:
        return default
    if name in _RESOLVERS and len(words) == 2:
        return _calculated(_RESOLVERS[name], words)
    raise LookupError(inner)


def _calculated(resolver: Callable[[float, float], float], words: Sequence[str]) -> float:
    """A sum of two numbers, whole where it is.

    Raises:
        LookupError: they are none, or it is too large or divides by zero.
    """
    try:
        left, right = (float(word) for word in words)
        value = resolver(left, right)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise LookupError(words) from None
    if not abs(value) <= _MOST:
        raise LookupError(words)
    return int(value) if value == int(value) else value


def _referred(key: str, reference: str) -> str:
    """The key that an OmegaConf reference names: `${model.x}`, or `${.x}` beside it and `${..x}` a section up."""
    match = re.fullmatch(r"\$\{\s*(\.*)([\w.]+)\s*\}", reference)
    if match is None:
        return ""  # a resolver, which is not run
    up = len(match[1])
    return ".".join([*key.split(".")[:-up], match[2]]) if up else match[2]


def _walk(data: Mapping[str, Any], key: str) -> Any:
    node: Any = data
    for part in key.split("."):
        if not isinstance(node, Mapping):
            return None
        node = node.get(part)
    return node
