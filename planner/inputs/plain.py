"""A reader of valid input files without pydantic: it follows the committed JSON Schemas.

It exists for the first run of a file: importing pydantic and building its validators costs more than all planning.
It knows one answer beside the workload: None, for anything that is not plainly valid. The models then read the file,
and they alone say what is wrong, so that there is one truth and one set of messages. The schema is generated from the
models (`json_schema`), its keyword `x-quantity` names the function that reads a quantity; tests hold the file equal to
the models and compare both readers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.inputs.quantities import QUANTITIES
from planner.inputs.view import SectionView

if TYPE_CHECKING:
    from planner.inputs.schema import Workload

_SCHEMAS = Path(__file__).parent.parent / "data" / "schemas"
SCHEMA_PATH = _SCHEMAS / "workload.v1.json"
ROOT, STATE_ROOT = "Workload", "RunState"
PORTFOLIO_ROOT, PIPELINE_ROOT, SCHEDULE_ROOT, SERVING_ROOT = "Portfolio", "Pipeline", "Schedule", "Serving"
# Sections that the workload's schema lacks, by the schema that is read for them; others may repeat them.
_OTHERS = {
    STATE_ROOT: ("state.v1.json", "StateZone", "Spell"),
    SERVING_ROOT: ("serving.v1.json", "Bucket", "EngineChoice", "Latency", "Machine", "Network"),
    SCHEDULE_ROOT: ("schedule.v1.json", "ScheduleData", "ScheduleJob", "SchedulePool"),
    PIPELINE_ROOT: ("pipeline.v1.json", "PipelineTask", "Read", "RiskAversion", "SizedCandidate"),
    PORTFOLIO_ROOT: (
        "portfolio.v1.json", "JobData", "PortfolioJob", "RelaxationWeights", "Rolling", "SharedCommitment",
        "SharedQuota", "Team", "Window",
    ),
}  # fmt: skip
_SCHEMA_OF = {
    name: (_SCHEMAS / file, root) for root, (file, *names) in _OTHERS.items() for name in (root, *names)
}
Node = Mapping[str, Any]  # of the JSON Schema


class _RefusedError(Exception):
    """The value is not plainly valid."""


@cache
def _sections(path: Path, root: str) -> Mapping[str, Node]:
    schema = json.loads(path.read_text(encoding="utf-8"))
    return {**schema["$defs"], root: schema}


def _section_node(name: str) -> Node:
    """The schema of a section, from the file that has it."""
    path, root = _SCHEMA_OF.get(name, (SCHEMA_PATH, ROOT))
    return _sections(path, root)[name]


def read_plain(data: Mapping[str, Any]) -> Workload | None:
    """Return the workload of plain data, None where the models must look at it.

    Args:
        data: what YAML gives; keys are the workload's.
    """
    return cast("Workload | None", read_section(ROOT, data))


def read_section(name: str, data: Mapping[str, Any]) -> SectionView | None:
    """Return one section of plain data, None where the models must look at it."""
    try:
        return _section(data, name)
    except (_RefusedError, ValueError, OverflowError):
        return None


def section_of(name: str, /, **values: Any) -> Any:
    """A section of values that need no check, with the defaults of all others; typed as its model where it is used."""
    fields = _section_node(name)["properties"]
    complete = {key: values[key] if key in values else _default(field) for key, field in fields.items()}
    return SectionView(name, complete, frozenset(values))


def _section(value: Any, name: str) -> SectionView:
    """A section: a key without a value is absent, an unknown one is refused."""
    if type(value) is not dict:
        raise _RefusedError
    node = _section_node(name)
    fields, required = node["properties"], node.get("required", ())
    items = {key: item for key, item in value.items() if item is not None or key not in fields}
    if not items.keys() <= fields.keys() or not items.keys() >= set(required):
        raise _RefusedError
    values = {
        key: _read(items[key], field) if key in items else _default(field) for key, field in fields.items()
    }
    return SectionView(name, values, frozenset(items))


def _default(node: Node) -> Any:
    """The value of an absent key; the schema leaves out defaults that mean "nothing given"."""
    if "$ref" in node:
        return _section({}, _name(node))
    if node.get("type") == "object":
        return {}
    value = node.get("default")
    return tuple(value) if isinstance(value, list) else value


def _name(node: Node) -> str:
    return str(node["$ref"]).rpartition("/")[2]


def _read(value: Any, node: Node) -> Any:
    """The value as the models would hold it."""
    if "$ref" in node:
        return _section(value, _name(node))
    if "x-quantity" in node:
        return QUANTITIES[node["x-quantity"]](value)
    if "const" in node or "enum" in node:
        return _one_of(value, node.get("enum", [node.get("const")]))
    if "anyOf" in node or "oneOf" in node:
        return _either(value, node.get("anyOf", ()) or node["oneOf"])
    return _KINDS[node["type"]](value, node)


def _either(value: Any, nodes: list[Node]) -> Any:
    """What the first schema that takes the value makes of it."""
    for node in nodes:
        try:
            return _read(value, node)
        except _RefusedError:
            continue
    raise _RefusedError


def _one_of(value: Any, allowed: list[Any]) -> Any:
    for item in allowed:
        if type(item) is type(value) and item == value:
            return item
    raise _RefusedError


def _null(value: Any, _: Node) -> None:
    if value is not None:
        raise _RefusedError


def _array(value: Any, node: Node) -> tuple[Any, ...]:
    if type(value) is not list or not node.get("minItems", 0) <= len(value) <= node.get("maxItems", math.inf):
        raise _RefusedError
    return tuple(_read(item, node["items"]) for item in value)


def _object(value: Any, node: Node) -> dict[str, Any]:
    if type(value) is not dict:
        raise _RefusedError
    return {str(key): _read(item, node["additionalProperties"]) for key, item in value.items()}


def _string(value: Any, node: Node) -> str:
    if type(value) is not str or not node.get("minLength", 0) <= len(value) <= node.get(
        "maxLength", math.inf
    ):
        raise _RefusedError
    pattern = node.get("pattern")
    if pattern is not None and not re.fullmatch(pattern.removeprefix("^").removesuffix("$"), value):
        raise _RefusedError
    return value


def _boolean(value: Any, _: Node) -> bool:
    if type(value) is not bool:
        raise _RefusedError
    return value


def _integer(value: Any, node: Node) -> int:
    if type(value) is not int:
        raise _RefusedError
    _within(value, node)
    return value


def _number(value: Any, node: Node) -> float:
    """A finite number; a whole one becomes a float."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _RefusedError
    _within(value, node)
    return float(value)


def _within(value: float, node: Node) -> None:
    low, high = node.get("minimum", -math.inf), node.get("maximum", math.inf)
    above, below = node.get("exclusiveMinimum", -math.inf), node.get("exclusiveMaximum", math.inf)
    if not (low <= value <= high and above < value < below):
        raise _RefusedError


_KINDS: Mapping[str, Callable[[Any, Node], Any]] = {
    "null": _null,
    "array": _array,
    "object": _object,
    "string": _string,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
}
