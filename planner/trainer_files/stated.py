"""`--set key=value`: values of the workload that the user states beside the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.errors import InputError
from planner.inputs.yaml12 import resolve_scalar
from planner.trainer_files.supported import supports


def parse_stated(texts: Sequence[str]) -> dict[str, Any]:
    """Values by dotted key.

    Raises:
        InputError: a text is no `key=value`, or a workload has no such key.
    """
    values: dict[str, Any] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        key = key.strip()
        if not separator or not value.strip() or not key:
            raise InputError(f"--set {text}: must be KEY=VALUE, such as training.tokens=1e9")
        if not supports(key):
            raise InputError(f"--set {text}: a workload has no key '{key}'; 'planner schema' lists them")
        try:
            values[key] = resolve_scalar(value.strip())
        except ValueError as error:
            raise InputError(f"--set {text}: {error}") from None
    return values
