"""What one file says: facts with their place, what was assumed, what cannot be counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from planner.inputs.model_config import ConfigModel
from planner.records import record

# an encoder of images or sound before the language model does not learn (planner.trainer_files.encoders)
FROZEN_ENCODER = "frozen.encoder"


@record(frozen=True)
class Document:
    """A file, parsed.

    Attributes:
        path: the file.
        syntax: `json`, `yaml`, `toml`, `arguments` (a command line, or a script around one) or `python`.
        data: its keys; of arguments, their names without dashes; of Python `values`, `calls`,
            `defaults` and `assigned` (planner.trainer_files.python_text).
        remarks: faults that did not prevent reading.
        programs: names of the programs that a script starts, without `.py`.
        bases: names of the files that it builds on, whose keys are below its own in `data`.
    """

    path: Path
    syntax: str
    data: Mapping[str, Any]
    remarks: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()


@record(frozen=True)
class Fact:
    """A value and where it was read, or why it is assumed.

    `key` is a path in the workload (`training.sequence_length`), or one of `planner.trainer_files.batch`: figures that
    become the global batch.
    """

    key: str
    value: Any
    where: str
    assumed: bool = False


@record(frozen=True)
class Blank:
    """A value that is still to be given: its place in the workload, an example, and why."""

    key: str
    example: str
    why: str


@record
class Reading:
    """What one file says.

    Attributes:
        path: the file.
        tool: whose format it has, as a title.
        facts: by key.
        hub_name: the model's name in a public collection, or a folder's; empty where none is named.
        hub_key: the key that names it.
        model: the model's sizes, where the file states them.
        warnings: what matters and is not counted.
        unknown: keys that are not known to this reader.
        files: further files that this one names, by the key that names them.
        inside: keys of another tool that stand in this file, by that tool.
    """

    path: Path
    tool: str
    facts: dict[str, Fact] = field(default_factory=dict)
    hub_name: str = ""
    hub_key: str = ""
    model: ConfigModel | None = None
    warnings: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    inside: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, key: str, value: Any, source: str, *, assumed: bool = False) -> None:
        """Note a fact; None is not a value. `source` is the file's key, or the reason of an assumption."""
        if value is not None:
            self.facts[key] = Fact(key, value, f"{self.path.name}: {source}", assumed)

    def warn(self, text: str) -> None:
        """Note what matters and is not counted."""
        self.warnings.append(f"{self.path.name}: {text}")


@record(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        title: the tool's name.
        module: holds `recognises(document) -> bool` and `read(document) -> Reading`.
        rank: which of two files counts where both state a value; lower first.
    """

    title: str
    module: str
    rank: int


Recognise = Callable[[Document], bool]
Read = Callable[[Document], Reading]
