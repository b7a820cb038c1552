"""Reading a saved plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.plan import SCHEMA_VERSION

MAX_BYTES = 16 * 2**20
_KEYS = {"schema_version", "status", "lines", "catalog", "created_at"}


def load_plan(path: Path) -> dict[str, Any]:
    """Read the JSON of a plan.

    Raises:
        InputError: no such file, not JSON, not a plan, or another schema version.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: larger than {MAX_BYTES // 2**20} MiB, not a plan")
        made = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(
            f"{path}: not JSON ({error}); save one with `planner optimize ... -o json --out FILE`"
        ) from error
    if not isinstance(made, dict) or not set(made) >= _KEYS:
        raise InputError(
            f"{path}: JSON, but not a plan; save one with `planner optimize ... -o json --out FILE`"
        )
    if made["schema_version"] != SCHEMA_VERSION:
        raise InputError(f"{path}: plan schema {made['schema_version']}, this planner reads {SCHEMA_VERSION}")
    return made
