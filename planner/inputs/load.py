"""From a YAML file to a `Workload`, or to one error that lists every fault with its place.

A file that was valid before is taken from its compiled copy (`compiled`) and needs no yaml; a new one that is plainly
valid needs yaml but not pydantic (`plain`); only what may be wrong meets the models.
"""

from __future__ import annotations

import errno
import hashlib
import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.files import limited
from planner.inputs.compiled import copy_key, load_copy, save_copy
from planner.inputs.faults import Fault, Source
from planner.inputs.view import as_view
from planner.records import record

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from planner.inputs.faults import Path as FaultPath
    from planner.inputs.faults import Place
    from planner.inputs.schema import Workload
    from planner.inputs.yaml12 import Document

MAX_BYTES = 1024 * 1024
STDIN = Path("-")
# Files of other questions, by their key `kind`.
_OTHERS = (
    "portfolio", "pipeline", "schedule", "serving", "commit", "tco", "budget", "showback", "sweep", "state",
)  # fmt: skip
# What reads them, where it is not a command of that name.
_COMMANDS = {
    "spot sweep": "simulate --sweep", "state": "advise PLAN.json --state", "showback": "review --focus BILL --showback",
}  # fmt: skip
_KEY_OF = {
    "pools": "commit", "machines": "machines", "budgets": "budget", "jobs": "portfolio", "tasks": "pipeline",
    "rules": "showback", "workloads": "sweep",
}  # fmt: skip
# endings of scripts, and keys that trainers' configurations have and no workload
_SCRIPTS = frozenset({".py", ".ipynb", ".sh", ".slurm", ".sbatch", ".toml"})
_OF_TRAINERS = frozenset({
    "base_model", "model_name_or_path", "model_name", "per_device_train_batch_size", "micro_batch_size", "trainer",
    "finetuning_type", "actor_rollout_ref", "zero_optimization", "distributed_type", "peft_type", "architectures",
    "model_type", "global_train_batch_size", "base_config", "parallelism", "policy", "optimizer", "train_batch_size",
    "imgsz",
})  # fmt: skip
# Keys of a workload that they hardly have: with one, such a key is misplaced in a workload.
_NOT_OF_TRAINERS = frozenset({"version", "training", "constraints"})
# Keys that a workload has and the file of another question has not, but for serving's model.
OF_A_WORKLOAD = frozenset({"model", "training", "task", "inference"})
_OF_ANSWERS = frozenset({"schema_version", "planner_version"})  # of every saved answer
_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x1f]")  # but for tabs, and what ends a line


@record(frozen=True)
class LoadedWorkload:
    """A valid workload, the hash of the bytes it came from, and its text for messages that need a place.

    `workload` is a read-only view with the attributes of the model, wherever it came from. `at` is its path in a file
    that holds more than the workload.
    """

    workload: Workload
    sha256: str
    path: Path
    source: Source
    at: FaultPath = ()

    def __repr__(self) -> str:
        """In a notebook: what it is and where it came from."""
        return f"<Workload: {self.workload.name} ({self.workload.kind}), {self.path}>"

    def error(self, faults: Iterable[Fault]) -> InputError:
        """Return the error for faults found later (an unknown region, say), with their places in the file."""
        return self.source.error(replace(fault, path=(*self.at, *fault.path)) for fault in faults)

    def offer_paths(self) -> tuple[Path, ...]:
        """Return the files named in `prices.offers`, relative paths taken from the workload's own folder."""
        return tuple(self.path.parent / name for name in self.workload.prices.offers)

    def file_paths(self) -> tuple[Path, ...]:
        """Return every file that the workload names: own offers, records of spot and of waits, a measured disk."""
        workload = self.workload
        names = (*workload.spot.evidence, *workload.constraints.waiting_records, workload.storage.fio)
        return (*self.offer_paths(), *(self.path.parent / name for name in names if name is not None))


@record(frozen=True)
class UnreadSource(Source):
    """A text whose places are found only when a fault must be shown."""

    def locate(self, path: FaultPath, *, at_key: bool = False) -> Place | None:
        """Place of a key or value."""
        return self._read().locate(path, at_key=at_key)

    def error(self, faults: Iterable[Fault]) -> InputError:
        """The error for faults, with their places."""
        return self._read().error(faults)

    def _read(self) -> Source:
        from planner.inputs.yaml12 import parse_yaml

        return parse_yaml(self.text, self.name).source


def load_workload(path: Path, *, cache: bool = True) -> LoadedWorkload:
    """Load and validate a workload file.

    Args:
        path: a YAML file, version 1 of the workload format, at most 1 MiB, UTF-8.
        cache: use (and write) the compiled copy; it changes the time that loading takes, nothing else.

    Raises:
        InputError: the file cannot be read or is not valid; lists all faults in the order of their lines.
    """
    data = read_limited(path)
    sha256 = hashlib.sha256(data).hexdigest()
    key = copy_key(data) if cache else ""
    stored = load_copy(key) if cache else None
    if stored is not None:
        source = UnreadSource(str(path), data.decode("utf-8-sig"))
        loaded = LoadedWorkload(stored, sha256, path, source)
    else:
        loaded = parse_workload(decode(data, str(path)), path, sha256=sha256)
        # a copy is found by the workload's bytes alone, which do not tell whether a file that it names changed
        model = loaded.workload.model
        alone = (model is None or model.config is None) and not loaded.workload.constraints.waiting_records
        if cache and alone:
            save_copy(key, loaded.workload)
    check_offer_files(loaded)
    return loaded


def check_offer_files(loaded: LoadedWorkload) -> None:
    """Refuse names of files that are not there: asked every time, for files come and go."""
    missing = [
        Fault(("prices", "offers", index), f"no such file: {name}")
        for index, (name, file) in enumerate(
            zip(loaded.workload.prices.offers, loaded.offer_paths(), strict=True)
        )
        if not file.is_file()
    ]
    if missing:
        raise loaded.error(missing)


def read_limited(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Read a file of at most `limit` bytes without ever reading more; `-` is standard input."""
    if path == STDIN:
        return _read_stdin(limit)
    try:
        return limited.read_limited(path, limit)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, not a file") from None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise InputError(
                f"{path}: a workload file has at most {limit // 1024:,} KiB; this one is larger: "
                "name the data by 'data.size' instead"
            ) from None
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read: {reason}") from None


def _read_stdin(limit: int) -> bytes:
    sys.audit("planner.read_stdin")  # no event of Python's tells it, see `planner.files.opened`
    data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        raise InputError(
            f"-: standard input holds more than {limit // 1024:,} KiB: name the data by 'data.size' instead"
        )
    return data


def decode(data: bytes, name: str) -> str:
    """Decode UTF-8 (with or without a byte order mark); refuse other encodings and binary files."""
    encoding = _BOMS.get(data[:2])
    if encoding is not None:
        raise InputError(f"{name}: is encoded as {encoding}: save it as UTF-8")
    if b"\0" in data:
        raise InputError(f"{name}: is a binary file, not a YAML text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name}:{line}: is not UTF-8 text (byte 0x{data[error.start]:02x}): save it as UTF-8"
        ) from None
    control = _CONTROL.search(text)
    if control is not None:
        lines = text[: control.end()].splitlines()
        place = f"{name}:{len(lines)}:{len(lines[-1])}"
        code = f"U+{ord(control.group()):04X}"
        raise InputError(f"{place}: holds the control character {code}: is it a text file?")
    return text


def parse_workload(text: str, path: Path, *, sha256: str | None = None) -> LoadedWorkload:
    """Validate the text of a workload; `path` names it in messages and anchors relative paths.

    Raises:
        InputError: with all faults.
    """
    from planner.inputs.yaml12 import YamlError, parse_yaml

    name = str(path)
    refuse_script(path)
    if sha256 is None:
        sha256 = hashlib.sha256(text.encode()).hexdigest()
    try:
        document = parse_yaml(text, name)
    except YamlError as error:
        raise Source(name, text).error(error.faults) from None
    return parse_data(document, document.source, path, sha256)


def parse_data(document: Document, source: Source, path: Path, sha256: str) -> LoadedWorkload:
    """Validate the data of a workload.

    Args:
        document: what YAML gave.
        source: names the places of faults.
        path: names the file, and anchors relative paths.
        sha256: of what the data come from.

    Raises:
        InputError: with all faults.
    """
    from planner.inputs.config_file import expand_config, sha256_with
    from planner.inputs.waiting_file import expand_waits

    name = str(path)
    refuse_empty(document.data, name)
    if not isinstance(document.data, dict):
        kind = "a list" if isinstance(document.data, list) else "a single value"
        raise source.error([Fault((), f"the file must be a mapping of keys to values, not {kind}")])
    refuse_other_kind(document.data, name)

    def read(file: Path) -> str:
        return decode(read_limited(file), str(file))

    sized = expand_config(document.data, path.parent, read)
    expanded = expand_waits(sized.data, path.parent, read)
    faults = [*document.faults, *sized.faults, *expanded.faults]
    if sized.faults or expanded.faults:
        raise source.error(faults)
    workload, workload_faults = validate(expanded.data)
    faults += [fault for fault in workload_faults if fault.path not in document.stand_ins]
    if faults or workload is None:
        raise source.error(faults)
    content = sized.content + expanded.content
    return LoadedWorkload(workload, sha256_with(sha256, content), path, source)


def refuse_empty(data: object, name: str, kind: str = "") -> None:
    """Say how a file starts, where it holds nothing.

    Raises:
        InputError: it holds nothing.
    """
    if data is None:
        schema = f"planner schema {kind}".rstrip()
        raise InputError(f"{name}: is empty; start with 'version: 1' ('{schema}' prints the format)")


def refuse_script(path: Path) -> None:
    """Name the command that reads a script, which no workload is.

    Raises:
        InputError: the file's ending is a script's.
    """
    if path.suffix.lower() in _SCRIPTS:
        raise _of_a_trainer(str(path))


def _of_a_trainer(name: str) -> InputError:
    return InputError(
        f"{name}: is not a workload; if you train with it, planner init --from {name} --out workload.yaml makes "
        "one of it"
    )


def refuse_other_kind(data: dict[str, Any], name: str) -> None:
    """Name the command of a file that is not a workload.

    Raises:
        InputError: the file says that it is of another kind.
    """
    if _NOT_OF_TRAINERS.isdisjoint(data) and not _OF_TRAINERS.isdisjoint(data):
        raise _of_a_trainer(name)
    refuse_answer(data, name)
    kind = other_kind(data)
    if kind == "machines":
        raise InputError(
            f"{name}: lists machines that you own; it is not a workload: name it under `prices.offers` of one"
        )
    if kind:
        raise InputError(
            f"{name}: is a {kind} file, not a workload: use `planner {_COMMANDS.get(kind, kind)} {name}`"
        )


def refuse_answer(data: dict[str, Any], name: str) -> None:
    """Name what reads a saved answer, where the file that was asked about is needed.

    Raises:
        InputError: the keys are those of an answer.
    """
    if data.keys() >= _OF_ANSWERS:
        raise InputError(
            f"{name}: is a saved answer: give the file that it answers; `planner verify`, diff, export, "
            "track and advise read answers"
        )


def refuse_file_of(kind: str, fields: Collection[str], data: dict[str, Any], name: str) -> None:
    """Name the command of a file of another kind than `kind`, whose keys are `fields`, where there is one.

    Raises:
        InputError: the file says so; of commitments, which have no key `kind`, the key `pools` does.
    """
    said = data.get("kind", "commit" if "pools" in data and "pools" not in fields else None)
    if isinstance(said, str) and said in _OTHERS and said != kind:
        command = _COMMANDS.get(said, said)
        raise InputError(f"{name}: is a {said} file, not a {kind} file: use `planner {command} {name}`")


def is_workload(data: dict[str, Any]) -> bool:
    """Whether the keys of a file are those of a workload."""
    return data.get("kind") not in _OTHERS and not OF_A_WORKLOAD.isdisjoint(data)


def other_kind(data: dict[str, Any]) -> str:
    """Which other question a file is of; empty where it may be a workload.

    Files of commitments and of machines have no key `kind`, and others may lack it: they are recognised by theirs.
    """
    kind = data.get("kind")
    if kind == "serving":  # also without its buckets and machines: `planner serving` says what is missing
        return (
            "" if data.keys() & {"training", "task"} and not data.keys() & {"buckets", "machines"} else kind
        )
    if data.keys() & OF_A_WORKLOAD:
        return ""
    if kind == "sweep":
        return "sweep" if "workloads" in data else "spot sweep"
    if kind in _OTHERS:
        return str(kind)
    return next((of for key, of in _KEY_OF.items() if key in data), "") if kind is None else ""


def validate(data: dict[str, Any]) -> tuple[Workload | None, list[Fault]]:
    """Validate plain data; return the workload as a read-only view, None where invalid, and all faults.

    What is plainly valid never meets pydantic; the rest is read by the models, which say what is wrong.
    """
    from planner.inputs.checks import find_faults
    from planner.inputs.plain import read_plain

    workload = read_plain(data)
    if workload is not None:
        return workload, find_faults(workload)
    from pydantic import ValidationError

    from planner.inputs.schema import Workload

    try:
        workload = as_view(Workload.model_validate(data))
    except ValidationError as error:
        from planner.inputs.messages import pydantic_faults

        details = error.errors(include_url=False)
        partial, invalid = _partial(data, details)
        return None, [*pydantic_faults(details), *find_faults(partial, invalid)]
    return workload, find_faults(workload)


def _partial(data: dict[str, Any], details: list[ErrorDetails]) -> tuple[Workload, set[str]]:
    """Build a workload of the sections without fault, so that the rules joining them can still run."""
    from planner.inputs.schema import Workload

    invalid = {str(detail["loc"][0]) for detail in details if detail["loc"]}
    good = {key: value for key, value in data.items() if key not in invalid}
    for required, stand_in in (("version", 1), ("name", "unnamed")):
        good.setdefault(required, stand_in)
    return Workload.model_validate(good), invalid
