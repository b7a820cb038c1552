"""Words of a bill that name a unit, a model or an accelerator."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from catalogs.tables.accelerators import load_accelerators, load_aliases
from planner.finops.read.machines import gpu_machines
from planner.records import record

_DATA = Path(__file__).resolve().parents[1] / "data"
_TIMES = {"": 1.0, "k": 1e3, "thousand": 1e3, "m": 1e6, "mm": 1e6, "million": 1e6, "b": 1e9, "billion": 1e9}
_UNIT = re.compile(
    r"(?P<count>\d[\d,]*(?:\.\d+)?)?\s*(?P<times>thousand|million|billion|mm|[kmb])?\s*(?P<rest>[a-z].*)?",
    re.I,
)
# what may follow a family's name and still be part of the model's
_AFTER = (
    r"(?:[ .\-_/]?(?:v?\d+(?:\.\d+)*[a-z]{0,2}\b|sonnet|haiku|opus|turbo|mini|nano|micro|pro|flash|lite|"
    r"large|medium|small|premier|instruct|chat|coder|vision|plus|preview|embed|"
    r"text(?![ -](?:in|out)p)|code|scout|maverick|oss|r\d?\b))*"
)


@record(frozen=True)
class CountUnit:
    """A unit that counts work: `kind` (`tokens`, `requests`, ...) and how many one of it is."""

    kind: str
    size: float


@lru_cache(maxsize=1)
def _words() -> Mapping[str, tuple[str, bool]]:
    with (_DATA / "ai_units.csv").open(encoding="utf-8", newline="") as file:
        return {row["word"]: (row["kind"], row["only_ai"] == "yes") for row in csv.DictReader(file)}


@lru_cache(maxsize=1024)
def count_unit(text: str, *, is_ai: bool) -> CountUnit | None:
    """A unit of work, such as `1K tokens`, `Tokens`, `1000 Requests`, `1M input tokens`; None where it is none.

    Args:
        text: the bill's unit.
        is_ai: whether the charge is of an AI service; elsewhere only tokens count.
    """
    match = _UNIT.fullmatch(text.strip())
    if not match or not match["rest"]:
        return None
    count, times, rest = match["count"], (match["times"] or "").lower(), match["rest"].lower()
    if (
        len(times) <= 2
        and times
        and not count
        and not rest.startswith((" ", "-"))
        and f"{times}{rest}" == text.strip().lower()
    ):
        rest, times = f"{times}{rest}", ""  # `messages` is not a million essages
    if re.search(r"hour|second|minute|day|month|byte|\bgb\b", rest):
        return None
    for word, (kind, only_ai) in _words().items():
        if re.search(rf"\b{word}s?\b", rest) and (is_ai or not only_ai):
            return CountUnit(kind, float((count or "1").replace(",", "")) * _TIMES[times])
    return None


@lru_cache(maxsize=1)
def _model() -> re.Pattern[str]:
    with (_DATA / "ai_models.csv").open(encoding="utf-8", newline="") as file:
        families = sorted((row["family"] for row in csv.DictReader(file)), key=len, reverse=True)
    spelled = "|".join(re.escape(name).replace(r"\-", "[ -]?") for name in families)
    return re.compile(rf"(?<![a-z])(?:{spelled}){_AFTER}", re.I)


def model_name(*texts: str) -> str:
    """The model that a bill's words name, as they spell it, in small letters; empty where they name none."""
    for text in texts:
        if found := _model().search(text.replace("_", "-")):
            return re.sub(r"[ /]+", "-", found.group().strip(" -./")).lower()
    return ""


_JOINED = re.compile(r"(?<=[a-z])(?=[A-Z])|_")  # `InputTokenCount` is three words


def direction(*texts: str) -> str:
    """`input`, `output`, `cached input`, `cache write` or nothing, as the bill's words say.

    Source of the four kinds of tokens, each with its price: docs.aws.amazon.com/bedrock/latest/userguide
    cost-mgmt-understanding-cur-data.html, 2026-11-30.
    """
    words = _JOINED.sub(" ", " ".join(texts)).lower()
    if "cache" in words:
        return "cache write" if re.search("writ|creation", words) else "cached input"
    reads, writes = (
        re.search(r"\b(input|prompt|inp)\b", words),
        re.search(r"\b(output|completion|outp|generated)\b", words),
    )
    return "output" if writes and not reads else "input" if reads and not writes else ""


@lru_cache(maxsize=1)
def _providers() -> Mapping[str, str]:
    """How a provider's name in a bill is spelled in the catalogue."""
    with (_DATA / "provider_words.csv").open(encoding="utf-8", newline="") as file:
        return {row["word"]: row["catalogue"] for row in csv.DictReader(file)}


_WORD = re.compile(r"(?:\d+x(?=[a-z]))?([a-z0-9]+)")  # `8xH100` is an H100
_HIDDEN_MODEL = (
    "-unknown"  # the vendor hides the model: `h` of `h-96gb-unknown` is no word for it, but for an hour
)


# before the machine type of a training job or an endpoint: aws.amazon.com/sagemaker/ai/pricing, 2026-11-30
_MANAGED = "ml."


@lru_cache(maxsize=1)
def _chips() -> Mapping[str, int]:
    """Chips, each one word of a text, and their order: of several the one with the longest name counts."""
    names = map(str, load_accelerators()["accelerator"])
    chips = {name.split("-", 1)[0] for name in names if not name.endswith(_HIDDEN_MODEL)}
    return {name: at for at, name in enumerate(sorted(chips, key=lambda name: (-len(name), name)))}


@lru_cache(maxsize=64)
def _types(key: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Machine types of a provider of the catalogue as one pattern, and the accelerator of each of its groups."""
    aliases = [alias for alias in load_aliases(key) if alias.instance_type_pattern]
    spelled = "|".join(f"({translate(alias.instance_type_pattern)})" for alias in aliases) or r"(?!)"
    return re.compile(spelled), tuple(alias.accelerator for alias in aliases)


@lru_cache(maxsize=4096)
def provider_id(name: str) -> str:
    """The catalogue's id of a provider as a bill names it; empty where it has none."""
    return next((key for word, key in _providers().items() if word in name.lower()), "")


def accelerator(provider: str, instance_type: str, *texts: str) -> str:
    """The accelerator of a machine type by the catalogue, else the chip that words name; empty: unknown."""
    key, machine = provider_id(provider), instance_type.removeprefix(_MANAGED)
    if key and machine:
        types, names = _types(key)
        if found := types.match(machine):
            return names[(found.lastindex or 1) - 1]
    if machine and (known := gpu_machines().get(machine.lower())):
        return known[1]
    chips = _chips()
    named = chips.keys() & _WORD.findall(" ".join((instance_type, *texts)).lower())
    return min(named, key=chips.__getitem__) if named else ""
