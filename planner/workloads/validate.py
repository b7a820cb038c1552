"""Whether an input file is valid: by its own rules, and by the names that only the catalog knows."""

from __future__ import annotations

import importlib
import shlex
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from catalogs.store.load import load_catalog
from catalogs.tariffs import load_tariffs
from planner.candidates.prepare import prepare
from planner.errors import InputError
from planner.inputs.config_file import expand_config
from planner.inputs.faults import Source
from planner.inputs.load import (
    STDIN,
    decode,
    other_kind,
    parse_workload,
    read_limited,
    refuse_other_kind,
    refuse_script,
    validate,
)
from planner.inputs.tasks import expand_task
from planner.inputs.yaml12 import YamlError, parse_yaml
from planner.market.names import accelerator_faults, name_faults
from planner.market.offers import gather_offers
from planner.market.place_names import check_pipeline_places, check_portfolio_places
from planner.records import record
from planner.render.model import Answer, Cell, facts, next_steps, versioned
from planner.render.presentable import Presentable

if TYPE_CHECKING:
    from pathlib import Path

    from planner.asked.options import Options
    from planner.inputs.faults import Fault
    from planner.inputs.yaml12 import Document

_READERS = {
    kind: (f"planner.inputs.{kind}_load", reader, part)
    for kind, reader, part in (
        ("budget", "load_budgets", "file"), ("commit", "load_commit", "question"),
        ("schedule", "load_schedule", "schedule"), ("serving", "load_serving", "serving"),
        ("sweep", "load_sweep", "sweep"),
    )
}  # fmt: skip
"""Module, function and part with the name, of the files that have no names to look up here."""
_NEXT = {
    "budget": "planner budget {} --daily COSTS",
    "machines": "list {} under prices.offers of a workload",
    "sweep": "planner sweep {} --results sweep.parquet",
    **{
        kind: f"planner {kind} {{}}"
        for kind in ("commit", "pipeline", "portfolio", "schedule", "serving", "tco")
    },
}
"""What to do with a valid file that is no workload, by its kind."""
_STAND_IN: dict[str, Any] = {
    "version": 1, "name": "unnamed", "model": {"preset": "bert-large"},
    "training": {"steps": 1, "global_batch": 1, "sequence_length": 128},
}  # fmt: skip
"""Sections that stand for faulty ones while the names of the others are looked up."""


@record(frozen=True)
class Valid(Presentable):
    """A file that is valid; `kind` is what it is, `sha256` that of its bytes as plans state it."""

    REPORT = "planner.workloads.validate:valid_report"
    __repr__ = Presentable.__repr__

    file: str
    kind: str
    name: str
    sha256: str


def validate_file(path: Path, options: Options) -> Valid:
    """Check an input file of any kind but a state.

    Args:
        path: the file; `-` is standard input, which may hold a workload.
        options: the day whose catalog knows the names.

    Raises:
        InputError: lists every fault with its place: missing and unknown keys, values, and, of a workload, names of
            regions, types and so on that the catalog does not have, also where other sections are faulty. Of other
            kinds the commands that plan them look up some names.
        CatalogError: the catalog cannot be used.
    """
    data = read_limited(path)
    text = decode(data, str(path))
    if path.suffix.lower() == ".csv" and "accelerator" in text.partition("\n")[0]:
        return _valid_machines(path, data)
    try:
        refuse_script(path)
        document = parse_yaml(text, str(path))
    except YamlError as error:
        raise Source(str(path), text).error(error.faults) from None
    kind = _kind(document.data, str(path))
    if path == STDIN and kind in ("tco", "machines", "portfolio", "pipeline", *_READERS):
        raise InputError(
            f"standard input holds a {kind} file: only workloads are read from it; name the file"
        )
    if kind == "tco":
        return _valid_tco(path)
    if kind == "machines":
        return _valid_machines(path, data)
    if kind in _READERS:
        module, reader, part = _READERS[kind]
        file: Any = getattr(getattr(importlib.import_module(module), reader)(path), part)
        return Valid(str(path), kind, str(file.name), sha256(data).hexdigest())
    if kind in ("portfolio", "pipeline"):
        from planner.inputs.kinds import load_any

        other: Any = load_any(path)
        (check_portfolio_places if kind == "portfolio" else check_pipeline_places)(other)
        return Valid(str(path), kind, str(getattr(other, kind).name), other.sha256)
    faults = _all_faults(document, path, options)
    if faults is not None:
        raise faults
    loaded = parse_workload(text, path)
    catalog = load_catalog(None, as_of=options.as_of)
    for workload in [variant.workload for variant in expand_task(loaded.workload)] or [loaded.workload]:
        prepare(loaded, workload, catalog, options)
    return Valid(str(path), loaded.workload.kind, loaded.workload.name, loaded.sha256)


def _valid_machines(path: Path, data: bytes) -> Valid:
    """Check a file of own machines or quotations, as `prices.offers` names it.

    Raises:
        CatalogInputError: lists every fault with its line.
    """
    from catalogs.offers.static import load_static

    load_static(path)
    return Valid(str(path), "machines", path.stem, sha256(data).hexdigest())


def _valid_tco(path: Path) -> Valid:
    """Check a file of `planner tco`.

    Raises:
        InputError: lists every fault with its place.
    """
    from planner.inputs.tco_load import load_tco

    loaded = load_tco(path)
    faults = accelerator_faults(("machine", "accelerator"), loaded.tco.machine.accelerator)
    if faults:
        raise loaded.document.source.error(faults)
    return Valid(str(path), "tco", loaded.tco.name, loaded.sha256)


def _kind(data: Any, name: str) -> str:
    """What the file says it is; empty where it does not say.

    Raises:
        InputError: it is of a kind that its own command checks.
    """
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind in ("portfolio", "pipeline", "tco") or not isinstance(data, dict):
        return kind if isinstance(kind, str) else ""
    other = other_kind(data)
    if other == "machines" or other in _READERS:
        return other
    refuse_other_kind(data, name)
    return kind if isinstance(kind, str) else ""


def _all_faults(document: Document, path: Path, options: Options) -> Exception | None:
    """The error of a faulty workload, names that the catalog lacks among its faults; None where it is valid."""
    if not isinstance(document.data, dict):
        return None  # its reader says what is wrong
    expanded = expand_config(document.data, path.parent, lambda file: decode(read_limited(file), str(file)))
    _, found = validate(expanded.data)
    faults = [
        *document.faults,
        *expanded.faults,
        *(one for one in found if one.path not in document.stand_ins),
    ]
    if not faults:
        return None
    return document.source.error([*faults, *_names(document.data, options)])


def _names(data: dict[str, Any], options: Options) -> list[Fault]:
    """Names that the catalog lacks in sections that are valid by themselves."""
    checked: dict[str, Any] = {key: data[key] for key in ("constraints", "baseline") if key in data}
    workload, faults = validate({**_STAND_IN, **checked})
    if workload is None or faults:
        return []
    tariffs = load_tariffs()
    day = options.now.date()
    offer_set = gather_offers(load_catalog(None, as_of=options.as_of), workload, tariffs, ".", day)
    return name_faults(workload, offer_set, tariffs)


def valid_report(valid: Valid) -> Answer:
    """Build the answer."""
    values: dict[str, Cell] = {
        "file": valid.file,
        "valid": "yes",
        "kind": valid.kind,
        "name": valid.name,
        "sha256": valid.sha256,
    }
    section = facts(
        "file", "File",
        [("kind", "kind", valid.kind, "text", ""), ("name", "name", valid.name, "text", ""),
         ("sha256", "sha256", valid.sha256, "text", "")],
    )  # fmt: skip
    title = f"{valid.file}: valid ({valid.kind} {valid.name})"
    following = _NEXT.get(valid.kind, "planner optimize {}").format(shlex.quote(valid.file))
    return Answer(
        "Validation", title, (), (section,), versioned({**values, "valid": True}), tuple(values), [values],
        front=(next_steps(f"next: {following}"),),
    )  # fmt: skip


__all__ = ["Valid", "valid_report", "validate_file"]
