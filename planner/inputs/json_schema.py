"""The JSON Schemas of the input files, for editors; committed as `planner/data/schemas/KIND.v1.json`."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "data" / "schemas"
SCHEMA_PATH = FOLDER / "workload.v1.json"
# kind of file -> "module:model"
KINDS = {
    "workload": "planner.inputs.schema:Workload",
    "portfolio": "planner.inputs.portfolio_schema:Portfolio",
    "pipeline": "planner.inputs.pipeline_schema:Pipeline",
    "serving": "planner.inputs.serving_schema:Serving",
    "schedule": "planner.inputs.schedule_schema:Schedule",
    "commit": "planner.inputs.commit_schema:CommitQuestion",
    "tco": "planner.inputs.tco_schema:Tco",
    "state": "planner.inputs.state_schema:RunState",
    "sweep": "planner.inputs.sweep_schema:Sweep",
    "budget": "planner.inputs.budget_schema:BudgetFile",
    "showback": "planner.inputs.showback_schema:ShowbackFile",
}


def build_json_schema(kind: str = "workload") -> dict[str, Any]:
    """Build the schema of one kind of file from its models."""
    module, _, name = KINDS[kind].partition(":")
    model = getattr(importlib.import_module(module), name)
    schema = _without_noise(model.model_json_schema(mode="validation"))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{kind}.v1.json", **schema}


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


def render_json_schema(kind: str = "workload") -> str:
    """Return the schema as the text of the committed file."""
    return json.dumps(build_json_schema(kind), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the committed files anew: `python -m planner.inputs.json_schema`."""
    for kind in KINDS:
        (FOLDER / f"{kind}.v1.json").write_text(render_json_schema(kind), encoding="utf-8")


if __name__ == "__main__":
    main()
