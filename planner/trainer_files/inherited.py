"""Files that build on others: `defaults` of NeMo RL and of Hydra, one file or a list, each of which may build on more.

A command line builds on the file that it overrides (`config=run.yaml model.path=...`, `tune run --config run.yaml`,
torchtitan's `--job.config_file`), and a run of kohya's scripts or of musubi-tuner on the file of its dataset.

A section of the file that builds on another is merged into that of the other; every other value replaces it
(OmegaConf). The file itself comes last, or where Hydra's `_self_` puts it. Only files beside the one that names them,
below it, or given with it are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.trainer_files.arguments import BASES
from planner.trainer_files.files import beside, read_document
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document

_KEY = BASES
_SELF = "_self_"
_ENDINGS = (".yaml", ".yml", ".toml")
# keys that name such a file besides
_DATASET = "dataset_config"
_OF_TORCHTITAN = "job.config_file"
_OF_TORCHTUNE = "config"
_MOST = 20


def with_bases(document: Document, given: Sequence[Path]) -> tuple[Document, list[Path]]:
    """Put the keys of the files that a file builds on below its own.

    Args:
        document: the file.
        given: files that were named together with it.

    Returns:
        The file with their keys, and these files; a remark names each file that is neither beside nor given, and the
        choices of Hydra's groups, which are not read.

    Raises:
        InputError: one of them cannot be read, or they build on each other in a circle.
    """
    bases: list[Path] = []
    data, remarks = _merged(document, given, (document.path.resolve(),), bases)
    if not bases and not remarks:
        return document, []
    names = tuple(dict.fromkeys(path.name for path in bases))
    return replace(document, data=data, remarks=(*document.remarks, *remarks), bases=names), bases


def _merged(
    document: Document, given: Sequence[Path], chain: tuple[Path, ...], bases: list[Path]
) -> tuple[Mapping[str, Any], list[str]]:
    data: Mapping[str, Any] = {}
    remarks: list[str] = []
    started = _started(document)
    named_files, choices = _named(document, started)
    if len(bases) + len(named_files) - 1 > _MOST:
        raise InputError(f"{document.path}: {_KEY}: builds on more than {_MOST} files")
    for named in named_files:
        if named == _SELF:
            data = _over(data, document.data)
            continue
        path, key = _found(document.path, named, given), started.get(named, _KEY)
        if path is None:
            remarks.append(
                f"{key} {named[:200]}: is not next to it, so what it says is not read: put it "
                f"there{' (tune cp writes it)' if 'tune' in document.programs else ''} or add it to --from"
            )
            continue
        if path.resolve() in chain:
            raise InputError(f"{document.path}: {key} {named[:200]}: the file builds on itself")
        bases.append(path)
        below, more = _merged(read_document(path), given, (*chain, path.resolve()), bases)
        data = _over(data, below)
        remarks += more
    if choices:
        remarks.append(f"{_KEY} {', '.join(choices)[:200]}: choices of groups are not read")
    return data, remarks


def _named(document: Document, started: Iterable[str]) -> tuple[list[str], list[str]]:
    """The files that `defaults` names, `_self_` among them, and the choices of groups but Hydra's own."""
    stated = document.data.get(_KEY) if document.syntax in ("yaml", "json", "arguments") else None
    listed = [*(stated if isinstance(stated, list) else [stated]), *started]
    files = [entry for entry in listed if isinstance(entry, str) and entry]
    choices = [
        f"{group}: {choice}"
        for entry in listed
        if isinstance(entry, Mapping) and isinstance(stated, list)
        for group, choice in entry.items()
        if not str(group).removeprefix("override ").startswith("hydra/")
    ]
    return files if _SELF in files else [*files, _SELF], choices


def _started(document: Document) -> dict[str, str]:
    """The files that torchtitan's and torchtune's commands start, and that of a dataset, with the argument's name."""
    if document.syntax not in ("arguments", "toml"):
        return {}
    keys = [_OF_TORCHTITAN, _DATASET, *([_OF_TORCHTUNE] if "tune" in document.programs else [])]
    look = Lookup(document)
    named = {look.text(key): key for key in keys}
    # TRL's argument of the dataset's name is a part of one
    return {name: key for name, key in named.items() if name and (key != _DATASET or name.endswith(".toml"))}


def _found(path: Path, named: str, given: Sequence[Path]) -> Path | None:
    """A named file beside the one that names it, below it, or among those given; Hydra leaves the ending out."""
    names = [named] if named.endswith(_ENDINGS) else [named + ending for ending in _ENDINGS]
    for name in names:
        inside = beside(path, name)
        if inside is not None:
            return inside
        for other in given:
            if other.name == Path(name).name and other.resolve() != path.resolve():
                return other
    return None


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge sections; any other value of `above` counts."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = (
            _over(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
        )
    return merged
