"""The file of a dataset that a run of kohya's sd-scripts or of musubi-tuner names (`dataset_config`).

What it says of batches and sizes counts before the arguments: of a set, else of `[general]` (kohya-ss/sd-scripts
library/config_util.py, kohya-ss/musubi-tuner docs/dataset_config.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.trainer_files.formats.common import MICRO_BATCH, Reader
from planner.trainer_files.model import Document

_SETS, _GENERAL, _NAMED = "datasets", "general", "dataset_config"
_BATCH, _SIZE, _FRAMES, _REPEATS = "batch_size", "resolution", "target_frames", "num_repeats"


def of_dataset(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a dataset's keys say, under the names of the arguments; of several sets the largest."""
    sets = _sets(data)
    batches, sizes, frames = (
        [one[name] for one in sets if _is_stated(one.get(name))] for name in (_BATCH, _SIZE, _FRAMES)
    )
    found: dict[str, Any] = {}
    if batches:
        found["train_batch_size"] = max(batches, key=_pixels)
    if sizes:
        largest = max(sizes, key=_pixels)
        found["resolution"] = (
            ",".join(str(side) for side in largest) if isinstance(largest, list) else largest
        )
    if frames:
        found["num_frames"] = max(max(each) if isinstance(each, list) else each for each in frames)
    return found


def add_dataset(reader: Reader, document: Document) -> None:
    """Note where the batch is from, and what of the dataset is not counted."""
    sets, named = _sets(document.data), reader.text(_NAMED)
    if not sets:
        batch = reader.facts.get(MICRO_BATCH)
        if named and batch is not None:
            text = f"{batch.where.partition(': ')[2]}, unless {named[:80]} says another"
            reader.add(MICRO_BATCH, batch.value, text, assumed=True)
        return
    if any(_is_stated(one.get(_BATCH)) for one in sets):
        reader.add(MICRO_BATCH, reader.whole("train_batch_size"), f"{_NAMED}: {_BATCH}")
    for name in (_BATCH, _SIZE, _FRAMES):
        if len({str(one[name]) for one in sets if _is_stated(one.get(name))}) > 1:
            reader.warn(f"{_SETS}: {name} differs between the sets: the largest is taken for all")
    repeats = [part[_REPEATS] for one in sets for part in _parts(one) if _is_stated(part.get(_REPEATS))]
    if repeats and "training.epochs" in reader.facts:
        shown = ", ".join(str(count)[:20] for count in repeats[:4])
        reader.warn(f"{_REPEATS} {shown}: an epoch has each sample so often: count them in data.samples")


def _sets(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    general, listed = data.get(_GENERAL), data.get(_SETS)
    common = general if isinstance(general, Mapping) else {}
    each = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    return [{**common, **one} for one in each]


def _parts(one: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A set with its subsets, in either of which repeats may stand."""
    subsets = one.get("subsets")
    return (
        [one, *(part for part in subsets if isinstance(part, Mapping))]
        if isinstance(subsets, list)
        else [one]
    )


def _is_stated(value: object) -> bool:
    numbers = value if isinstance(value, list) else [value]
    return bool(numbers) and all(type(number) is int and 0 < number < 10**6 for number in numbers)


def _pixels(size: int | list[int]) -> int:
    """Of a square's side, or of two sides."""
    sides = size if isinstance(size, list) else [size, size]
    return sides[0] * sides[-1]
