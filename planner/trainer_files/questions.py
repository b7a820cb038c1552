"""The three questions of `planner init` at a terminal: what is trained, on how much, by when and for how much."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.inputs.quantities import parse_deadline
from planner.inputs.settings import parse_settings
from planner.inputs.yaml12 import resolve_scalar
from planner.trainer_files.gather import Wishes
from planner.trainer_files.supported import meant, supports

Ask = Callable[[str, str], str]
"""Puts a question with the answer that is taken for an empty line, and returns the answer."""

_AMOUNT = re.compile(
    r"(?P<number>[0-9][0-9_.,]*\s*[kKMGTB]?)\s*(?P<unit>tokens?|samples?|images?|epochs?|steps?)?"
)
_UNITS = {"token": "tokens", "sample": "samples", "image": "samples", "epoch": "epochs", "step": "steps"}
_MONEY = re.compile(
    r"\$\s*([0-9][0-9_,.]*\s*[kM]?)|([0-9][0-9_,.]*\s*[kM]?)\s*(?:\$|usd|dollars?)", re.IGNORECASE
)
_HINTS = 3  # keys that a message suggests
_TIMES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


def ask_for_wishes(ask: Ask) -> Wishes:
    """Ask, and return what was stated.

    Raises:
        InputError: an answer cannot be read; says how to write it.
    """
    model = ask(
        "What do you train? A preset, a Hugging Face name or the path of a config.json", "llama-3.1-8b"
    )
    amount = ask("On how much? Such as 2G tokens, 100k samples, 3 epochs", "1G tokens")
    limits = ask(
        "By when, and for how much? Such as 7d, $2000 (or 2026-12-24; leave out what does not matter)", "7d"
    )
    stated = parse_stated([*_stated_amount(amount), *_stated_limits(limits)])
    path = Path(os.path.expanduser(model))  # noqa: PTH111 - `~nobody` is no error but a name
    if model.endswith(".json") or path.is_file():
        return Wishes(model_config=path, values=stated)
    return Wishes(model=model, values=stated)


def _stated_amount(text: str) -> list[str]:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"{text!r}: write an amount and its unit, such as 2G tokens, 100k samples or 3 epochs"
        )
    unit = (match["unit"] or "tokens").removesuffix("s")
    return [f"training.{_UNITS[unit]}={_number(match['number'])}"]


def _stated_limits(text: str) -> list[str]:
    money = _MONEY.search(text)
    stated = []
    if money is not None:
        stated.append(f"constraints.budget_usd={_number(money[1] or money[2])}")
        text = text[: money.start()] + text[money.end() :]
    deadline = text.strip(" ,;.")
    if not deadline:
        return stated
    try:
        parse_deadline(deadline)
    except ValueError as error:
        raise InputError(f"{deadline!r}: {error}") from None
    return [*stated, f"constraints.deadline={deadline}"]


def _number(text: str) -> str:
    """`2G`, `1.5 k` and `10,000` as a workload writes them."""
    digits = re.sub(r"[,_\s]", "", text).strip(".").lower()
    value = float(digits.rstrip("kmbgt")) * _TIMES.get(digits[-1], 1.0)
    return f"{value:.12g}"


def parse_stated(texts: Sequence[str]) -> dict[str, Any]:
    """Values by dotted key.

    Raises:
        InputError: a text is no `key=value`, or a workload has no such key.
    """
    values: dict[str, Any] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        key, value = key.strip(), value.strip()
        if not separator or not value or not key:
            raise InputError(f"--set {text}: must be KEY=VALUE, such as training.tokens=1e9")
        try:
            read = parse_settings((text,))[0].value if value[0] in "[{" else resolve_scalar(value)
        except ValueError as error:
            raise InputError(f"--set {text}: {error}") from None
        for path, leaf in _leaves(key, read):
            if not supports(path):
                hints = " or ".join(repr(one) for one in meant(path)[:_HINTS])
                what = f"did you mean {hints}?" if hints else "'planner schema' lists them"
                raise InputError(f"--set {text}: a workload has no key '{path}'; {what}")
            values[path] = leaf
    return values


def _leaves(key: str, value: Any) -> list[tuple[str, Any]]:
    """The values of a mapping by dotted key, or the value itself."""
    if not isinstance(value, dict) or not value:
        return [(key, value)]
    return [leaf for name, inner in value.items() for leaf in _leaves(f"{key}.{name}", inner)]
