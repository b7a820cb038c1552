"""`--set KEY=VALUE`: values put over those of a workload file, read as YAML and checked by the same rules."""

from __future__ import annotations

import copy
import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.errors import InputError, shortened
from planner.inputs.faults import Fault, Source, fault_text
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.inputs.faults import Path, Place
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload

_AMOUNTS = ("tokens", "samples", "epochs", "steps")
_EXAMPLE = "write it as constraints.deadline=10d"


@record(frozen=True)
class Setting:
    """One value put over the file's; `text` as it was typed, `value` None removes the key."""

    text: str
    path: tuple[str | int, ...]
    value: Any


class SettingError(InputError):
    """What is wrong with settings: (text as it was typed, message) of each fault, and other faults of the file."""

    def __init__(self, faults: Sequence[tuple[str, str]], rest: str = "") -> None:
        """Keep the faults; the message names each as its `--set`."""
        self.faults, self.rest = tuple(dict.fromkeys(faults)), rest
        texts = [f"--set {shortened(typed)}: {message}" for typed, message in self.faults]
        super().__init__("\n".join(texts + [rest] * bool(rest)))


@record(frozen=True)
class _SetSource(Source):
    """The text of a file with values put over it: a fault of such a value names its `--set`, not a place."""

    settings: tuple[Setting, ...] = ()
    file: Source | None = None

    def locate(self, path: Path, *, at_key: bool = False) -> Place | None:
        assert self.file is not None
        return self.file.locate(path, at_key=at_key)

    def error(self, faults: Iterable[Fault]) -> InputError:
        assert self.file is not None
        texts, remaining = [], []
        for fault in faults:
            typed = self._typed(fault.path)
            if typed is None:
                remaining.append(fault)
            else:
                texts.append((typed.text, fault_text(fault)))
        rest = str(self.file.error(remaining)) if remaining else ""
        return SettingError(texts, rest) if texts else InputError(rest)

    def _typed(self, path: Path) -> Setting | None:
        """The last setting that a fault at `path` is of."""
        mine = [
            setting
            for setting in self.settings
            if path[: len(setting.path)] == setting.path or (path and setting.path[: len(path)] == path)
        ]
        return mine[-1] if mine else None


_INDEX = re.compile(r"\[(\d+)\]")  # quota[0].limit is quota.0.limit


def parse_settings(texts: Sequence[str]) -> tuple[Setting, ...]:
    """Read `KEY=VALUE` texts: a dotted path and a YAML value.

    Raises:
        InputError: a text is not of this form, or its value is no YAML.
    """
    return tuple(_parse(text) for text in texts)


def _parse(text: str) -> Setting:
    from planner.inputs.yaml12 import YamlError, parse_yaml

    key, separator, value = text.partition("=")
    words = [word.strip() for word in _INDEX.sub(r".\1", key).split(".")]
    if not separator or not value.strip() or not all(words):
        raise SettingError([(text, f"is not KEY=VALUE; {_EXAMPLE}")])
    try:
        document = parse_yaml(f"value: {value.strip()}\n", "--set")
    except YamlError as error:
        raise SettingError([(text, f"the value is not YAML: {error}")]) from None
    if document.faults or not isinstance(document.data, dict) or set(document.data) != {"value"}:
        faults = "; ".join(fault.message for fault in document.faults) or "more than one value"
        raise SettingError([(text, faults)])
    path = tuple(int(word) if word.isdigit() else word for word in words)
    return Setting(text, path, document.data["value"])


def setting_texts(values: Mapping[str, object]) -> list[str]:
    """`KEY=VALUE` texts of values by dotted key.

    Raises:
        InputError: a value is none that a file could hold.
    """
    return [f"{key}={_text_of(key, value)}" for key, value in values.items()]


def _text_of(key: str, value: object) -> str:
    import json

    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{key}: {error}; give text, a number, or lists and mappings of them") from None


def work_setting(workload: Workload, times: float) -> str | None:
    """So many times the training of the workload, as `--set` takes it; None where no key says how much it is."""
    training = workload.training
    key = next((name for name in _AMOUNTS if getattr(training, name, None) is not None), None)
    if key is None:
        return None
    amount = float(getattr(training, key)) * times
    return f"training.{key}={amount:.6f}" if key == "epochs" else f"training.{key}={max(round(amount), 1)}"


def with_settings(loaded: LoadedWorkload, texts: Sequence[str]) -> LoadedWorkload:
    """The workload with values put over it, as if the file said so; its hash is another one.

    Args:
        loaded: the workload file.
        texts: `KEY=VALUE`, later ones over earlier ones.

    Raises:
        InputError: a text is wrong, or what it makes of the workload is not valid; near-miss names are suggested.
    """
    if not texts:
        return loaded
    from planner.inputs.load import check_offer_files, parse_data
    from planner.inputs.yaml12 import parse_yaml

    before = loaded.source.settings if isinstance(loaded.source, _SetSource) else ()
    settings = (*before, *parse_settings(texts))
    document = parse_yaml(loaded.source.text, str(loaded.path))
    data = copy.deepcopy(document.data)
    for setting in settings:
        _put(data, setting)
    digest = hashlib.sha256(loaded.sha256.encode() + "\0".join(texts).encode()).hexdigest()
    source = _SetSource(document.source.name, document.source.text, settings=settings, file=document.source)
    changed = parse_data(replace(document, data=data), source, loaded.path, digest)
    check_offer_files(changed)
    return changed


def _put(data: Any, setting: Setting) -> None:
    """Put one value into the data of a file, in place; sections that are absent come with it.

    Raises:
        InputError: the path leads through what is no section or list.
    """
    at = data
    for place, (word, after) in enumerate(zip(setting.path, (*setting.path[1:], None), strict=True)):
        is_section = isinstance(at, dict) and isinstance(word, str)
        listed = isinstance(at, list) and isinstance(word, int) and word < len(at)
        if not is_section and not listed:
            where = ".".join(map(str, setting.path[:place])) or "the file"
            fault = (
                f"a list of {len(at)}: name an item by its number from 0"
                if isinstance(at, list)
                else "no section"
            )
            raise SettingError([(setting.text, f"{where} is {fault}")])
        if after is None:
            at[word] = setting.value
            return
        if is_section and at.get(word) is None:
            at[word] = {}
        at = at[word]
