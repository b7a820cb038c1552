"""The JSON Schema of the workload, for editors; committed as `planner/data/schemas/workload.v1.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCHEMA_PATH = Path(__file__).parent.parent / "data" / "schemas" / "workload.v1.json"


def build_json_schema() -> dict[str, Any]:
    """Build the schema from the models."""
    from planner.workload.schema import Workload

    schema = Workload.model_json_schema(mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "workload.v1.json",
        **schema,
    }


def render_json_schema() -> str:
    """Return the schema as the text of the committed file."""
    return json.dumps(build_json_schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the committed file anew: `python -m planner.workload.json_schema`."""
    SCHEMA_PATH.write_text(render_json_schema(), encoding="utf-8")


if __name__ == "__main__":
    main()
