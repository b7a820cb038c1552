"""The JSON Schema of the workload, for editors; committed as `planner/data/schemas/workload.v1.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCHEMA_PATH = Path(__file__).parent.parent / "data" / "schemas" / "workload.v1.json"


def build_json_schema() -> dict[str, Any]:
    """Build the schema from the models."""
    from planner.workload.schema import Workload

    schema = _without_noise(Workload.model_json_schema(mode="validation"))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "workload.v1.json",
        **schema,
    }


def _without_noise(node: Any, *, names: bool = False) -> Any:
    """Drop titles made of key names, and defaults that mean "absent"; `names`: the keys are field names."""
    if isinstance(node, list):
        return [_without_noise(item) for item in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {key: _without_noise(item) for key, item in node.items()}
    return {
        key: _without_noise(item, names=key in ("properties", "$defs"))
        for key, item in node.items()
        if not (key == "title" or (key == "default" and (item is None or isinstance(item, dict))))
    }


def render_json_schema() -> str:
    """Return the schema as the text of the committed file."""
    return json.dumps(build_json_schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the committed file anew: `python -m planner.workload.json_schema`."""
    SCHEMA_PATH.write_text(render_json_schema(), encoding="utf-8")


if __name__ == "__main__":
    main()
