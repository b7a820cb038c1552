"""From serving.yaml (and the CSV of speeds it names) to a `Serving`, or to one error that lists every fault."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.files.tables import comma_hint, csv_rows
from planner.inputs.documents import Document, read_document
from planner.inputs.faults import Fault, named_twice, near, need_columns
from planner.inputs.load import decode, read_limited
from planner.inputs.serving_checks import prediction_faults
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.serving_schema import Serving

MAX_CSV_BYTES = 16 * 1024 * 1024
COLUMNS = ("machine", "bucket", "requests_per_s")


@record(frozen=True)
class LoadedServing:
    """A valid question.

    Attributes:
        serving: the file, a read-only view.
        speeds: requests per second given by (machine, bucket), those of the CSV included.
        document: for messages that need a place.
    """

    serving: Serving
    speeds: dict[tuple[str, str], float]
    document: Document

    @property
    def predicted(self) -> tuple[int, ...]:
        """Positions of the machines whose speeds are to be predicted: those without any that is given."""
        if self.serving.model is None:
            return ()
        measured = {name for name, _ in self.speeds}
        return tuple(at for at, machine in enumerate(self.serving.machines) if machine.name not in measured)


def load_serving(path: Path) -> LoadedServing:
    """Load and validate a serving file.

    Raises:
        InputError: lists all faults with their places.
    """
    read: tuple[Serving, Document] = read_document(path, "serving", _faults)
    serving, document = read
    speeds = {
        (m.name, bucket): float(speed) for m in serving.machines for bucket, speed in m.requests_per_s.items()
    }
    if serving.speeds_csv is not None:
        file = path.parent / serving.speeds_csv
        if not file.is_file():
            raise document.source.error([Fault(("speeds_csv",), f"no such file: {serving.speeds_csv}")])
        for number, (key, speed) in _speeds(file, serving):
            if key in speeds:
                raise InputError(f"{file}:{number}: the speed of {key[0]} on {key[1]} is given twice")
            speeds[key] = speed
    loaded = LoadedServing(serving, speeds, document)
    faults = list(prediction_faults(serving, loaded.predicted))
    if faults:
        raise document.source.error(faults)
    return loaded


def _faults(serving: Serving) -> Iterator[Fault]:
    buckets = [bucket.name for bucket in serving.buckets]
    yield from named_twice("buckets", buckets)
    yield from named_twice("machines", [machine.name for machine in serving.machines])
    for at, machine in enumerate(serving.machines):
        path = ("machines", at)
        offer = machine.provider is not None and machine.instance_type is not None
        if machine.usd_per_hour is None and not offer:
            yield Fault(path, f"machine {machine.name!r} needs usd_per_hour, or provider and instance_type")
        for key in ("requests_per_s", "measured"):
            for name in getattr(machine, key):
                if name not in buckets:
                    yield Fault(
                        (*path, key, name), f"no bucket {name[:60]!r}", near(name, buckets), at_key=True
                    )


def _speeds(file: Path, serving: Serving) -> Iterator[tuple[int, tuple[tuple[str, str], float]]]:
    """Line number, (machine, bucket) and speed of each row; errors name the file and the line."""
    names_of = {"machine": [m.name for m in serving.machines], "bucket": [b.name for b in serving.buckets]}
    reader = csv_rows(decode(read_limited(file, MAX_CSV_BYTES), str(file)), file)
    need_columns(file, reader.fieldnames, COLUMNS)
    for row in reader:
        for name, names in names_of.items():
            if row[name] not in names:
                raise InputError(f"{file}:{reader.line_num}: no {name} '{str(row[name])[:60]}' (did you mean "
                                 f"'{near(row[name] or '', names) or names[0]}'?)")  # fmt: skip
        try:
            speed = float(row["requests_per_s"])
        except (TypeError, ValueError):
            speed = math.nan
        if not (math.isfinite(speed) and speed >= 0):
            given = row["requests_per_s"]
            text = f"requests_per_s must be a number of 0 or more, got '{str(given)[:60]}'{comma_hint(given)}"
            raise InputError(f"{file}:{reader.line_num}: {text}")
        yield reader.line_num, ((row["machine"], row["bucket"]), speed)
