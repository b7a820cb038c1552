"""Input files other than the workload: from YAML to their model, or to one error with every fault and its place."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from planner.errors import InputError
from planner.inputs.faults import Fault, Source
from planner.inputs.json_schema import KINDS
from planner.inputs.load import (
    MAX_BYTES,
    OF_A_WORKLOAD,
    decode,
    is_workload,
    read_limited,
    refuse_answer,
    refuse_empty,
    refuse_file_of,
)
from planner.inputs.plain import read_section
from planner.inputs.view import as_view
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")
_COMMON_KEYS = frozenset({"version", "kind", "name", "description", "start"})  # of files of any kind


@record(frozen=True)
class Document:
    """A file's bytes and its text for messages that need a place."""

    path: Path
    data: bytes
    source: Source


def load_plain(
    path: Path, data: bytes, root: str, rules: Callable[[Any], Iterable[Fault]]
) -> tuple[Any, Document] | None:
    """Read a YAML file that is plainly valid, without pydantic; None where the models must look at it.

    Args:
        path: the file.
        data: its bytes, UTF-8.
        root: its section, as `planner.inputs.plain` calls it.
        rules: as for `load_document`.

    Raises:
        InputError: it is no text.
    """
    from planner.inputs.yaml12 import YamlError, parse_yaml

    try:
        parsed = parse_yaml(decode(data, str(path)), str(path))
    except YamlError:
        return None
    if parsed.faults or not isinstance(parsed.data, dict):
        return None
    value = read_section(root, parsed.data)
    if value is None or any(rules(value)):
        return None
    return value, Document(path, data, parsed.source)


def load_document(
    path: Path, model: type[M], rules: Callable[[M], Iterable[Fault]], data: bytes | None = None
) -> tuple[M, Document]:
    """Read and validate a YAML file.

    Args:
        path: the file, UTF-8.
        model: its pydantic model.
        rules: faults that join several fields, looked for in what is valid by itself.
        data: its bytes, where they were read before (standard input is read once).

    Raises:
        InputError: lists all faults in the order of their lines.
    """
    from pydantic import ValidationError

    from planner.inputs.yaml12 import YamlError, parse_yaml

    if data is None:
        data = read_limited(path)
    name = str(path)
    text = decode(data, name)
    try:
        parsed = parse_yaml(text, name)
    except YamlError as error:
        raise Source(name, text).error(error.faults) from None
    document = Document(path, data, parsed.source)
    kind = next((kind for kind, of in KINDS.items() if of.endswith(f":{model.__name__}")), "")
    refuse_empty(parsed.data, name, kind)
    if not isinstance(parsed.data, dict):
        raise document.source.error([Fault((), "the file must be a mapping that starts with 'version: 1'")])
    own = model.model_fields.keys() - _COMMON_KEYS - OF_A_WORKLOAD
    if parsed.data.keys().isdisjoint(own) and is_workload(parsed.data):
        raise InputError(f"{name}: is a workload: `planner optimize {name}` plans it")
    refuse_answer(parsed.data, name)
    refuse_file_of(kind, model.model_fields, parsed.data, name)
    try:
        value = model.model_validate(parsed.data)
    except ValidationError as error:
        from planner.inputs.messages import pydantic_faults  # brings the whole workload schema

        model_faults = pydantic_faults(error.errors(include_url=False), model)
        faults = [*parsed.faults, *(fault for fault in model_faults if fault.path not in parsed.stand_ins)]
        raise document.source.error(faults) from None
    faults = [*parsed.faults, *rules(value)]
    if faults:
        raise document.source.error(faults)
    return value, document


def read_document(path: Path, kind: str, rules: Callable[[Any], Iterable[Fault]]) -> tuple[Any, Document]:
    """Read and validate a YAML file, by its model only where it is not plainly valid.

    Args:
        path: the file, UTF-8.
        kind: of file, as in `planner.inputs.json_schema.KINDS`.
        rules: as for `load_document`.

    Returns:
        The read-only view, to be typed as its model where it is used.

    Raises:
        InputError: lists all faults in the order of their lines.
    """
    module, _, root = KINDS[kind].partition(":")
    data = read_limited(path)
    plain = load_plain(path, data, root, rules)
    if plain is not None:
        return plain
    value, document = load_document(path, getattr(importlib.import_module(module), root), rules, data)
    return as_view(value), document


def kind_of(path: Path, *, max_bytes: int = MAX_BYTES) -> str:
    """What a file says it is in its key `kind`; empty where it does not say, or is no YAML mapping.

    Raises:
        InputError: the file cannot be read.
    """
    from planner.inputs.yaml12 import YamlError, parse_yaml

    name = str(path)
    try:
        parsed = parse_yaml(decode(read_limited(path, max_bytes), name), name)
    except YamlError:  # its reader says what is wrong and where
        return ""
    kind = parsed.data.get("kind") if isinstance(parsed.data, dict) else None
    return kind if isinstance(kind, str) else ""
