"""A value of 3,000 characters, with spaces and quotation marks or in one word, and how much of it a message quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import yaml

from benchmarks.malformed import Steps, broken, step_places
from planner.errors import LONGEST_VALUE

_WORDS = [f"q{number:04}" for number in range(600)]
_MARK = re.compile(r"q\d{4}['\"\\]* ?")
VALUES = {
    "spaced": " ".join(word + "'" * (at % 7 == 0) for at, word in enumerate(_WORDS))[:3_000],
    "one word": "".join(_WORDS),
}


def quoted_whole(messages: str) -> str:
    """The line that quotes more of the value than a message may, or "" where there is none."""
    return next(
        (line for line in messages.splitlines() if sum(map(len, _MARK.findall(line))) > LONGEST_VALUE + 10),
        "",
    )


_PLACES, _LINES, _CELLS = 60, (0, 1, 2, 5), 30


def with_long_values(text: str, suffix: str) -> Iterator[str]:
    """The file with a long value in place of each of its values, and with a long name of each of its keys."""
    if suffix in (".yaml", ".json", ".ipynb"):
        document = yaml.safe_load(text) if suffix == ".yaml" else json.loads(text)
        write = yaml.safe_dump if suffix == ".yaml" else json.dumps
        for steps in step_places(document)[:_PLACES] if isinstance(document, dict) else ():
            for value in VALUES.values():
                yield write(broken(document, steps, value))
            if isinstance(steps[-1], str):
                yield write(_renamed(document, steps))
        return
    lines = text.splitlines()
    for at in _LINES[: len(lines)]:
        cells = re.split(r"([,=:\t|(]| )", lines[min(at, len(lines) - 1)])
        for cell in range(0, min(len(cells), 2 * _CELLS), 2):
            for value in VALUES.values():
                line = "".join((*cells[:cell], value, *cells[cell + 1 :]))
                yield "\n".join((*lines[:at], line, *lines[at + 1 :], ""))


def _renamed(document: Any, steps: Steps) -> Any:
    renamed = deepcopy(document)
    part = renamed
    for step in steps[:-1]:
        part = part[step]
    part[VALUES["spaced"]] = part.pop(steps[-1])
    return renamed
