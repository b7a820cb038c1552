"""From a path to parsed keys: JSON, YAML, TOML, Python as text, or the arguments of a command in a shell script."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.inputs.faults import Fault, Source, fault_text
from planner.inputs.load import decode, read_limited
from planner.inputs.model_config import parse_json
from planner.inputs.yaml12 import YamlError, parse_yaml
from planner.trainer_files.abbreviations import written_out
from planner.trainer_files.arguments import parse_arguments, programs_of
from planner.trainer_files.model import Document
from planner.trainer_files.python_text import read_script

MAX_BYTES = 1024 * 1024
_ARGUMENT = re.compile(r"(?m)^[^#\n]*?--[a-z][a-z0-9_-]{2,}")
# an override of Hydra at a line's begin (`    data.train_batch_size=1024 \\`)
_OVERRIDE_LINE = re.compile(r"(?m)^[ \t]*\+*[a-z]\w*(?:\.\w+)+=\S")
# behind the program: one of Hydra, or one without dots behind the file that it overrides (`base.yml steps=10`)
_PYTHON = re.compile(r"\b(?:python[0-9.]*|torchrun) ")
_OVERRIDES = re.compile(r"""[ \t]\+*[a-z]\w*(?:\.\w+)+=\S|\.ya?ml["']?[ \t]+[a-z]\w*=""")
_CONFIGURATION = re.compile(r"(?<![\w./-])[\w./-]+\.(?:ya?ml|toml|json)\b")
_FLAG_KEY = re.compile(r"(?m)^\s*--[a-z][a-z0-9_-]*:(\s|$)")
_IMPORT = re.compile(r"(?m)^(from [\w.]+ import |import \w)")
# commands of the shell and of the notebook, also on continued lines or for a name, and questions
_MAGIC = re.compile(r"(?m)^([ \t]*)(?:(?:\w[\w, ]*=[ \t]*)?[!%](?:.*\\\n)*.*|\?.*|[\w.]+\?{1,2}[ \t]*)$")
# Ultralytics: names and values without dashes, in any order behind the program
_YOLO = re.compile(
    r"(?m)^[^#\n]*?\byolo[ \t]+(?:\w+[ \t]+){0,3}?(train|val|predict|export|track|benchmark)\b([^\n#;|&]*)"
)
_PAIR = re.compile(r"(?<!\S)([a-z]\w*)=[\"']?([^\s\"']+)")
# a quoted block of a page, with its language
_BLOCK = re.compile(r"(?ms)^```([A-Za-z]+)[ \t]*\n(.*?)^```")
# a configuration that a script writes: `cat > run.yaml <<'EOF'`, or with the file behind
_WRITTEN = re.compile(r">[ \t]*['\"]?([^\s<>'\"]+\.(?:ya?ml|toml|json))")
_UNTIL = re.compile(r"(?<!<)<<-?[ \t]*['\"]?(\w+)")
# what a trainer's own configuration names, and not that of an engine or a launcher; a command may name others
_TRAINED = ("base_model", "model_name_or_path", "model", "model_name", "policy", "actor_rollout_ref")
_COMMANDED = (*_TRAINED, "pretrained_model_name_or_path", "pretrain", "num_layers")
_TABLE = re.compile(r"(?m)^\s*\[[A-Za-z0-9_.\" -]+\]\s*(#.*)?$")


def read_document(path: Path) -> Document:
    """Read and parse a file.

    Raises:
        InputError: it cannot be read or parsed; names the place.
    """
    if path.is_dir():
        path = _inside(path)
    return parse_document(decode(read_limited(path, MAX_BYTES), str(path)), path)


def beside(path: Path, named: str) -> Path | None:
    """A named file in the folder of the one that names it, or below; never elsewhere."""
    folder = path.parent.resolve()
    for candidate in (folder / named, folder / Path(named).name):
        try:
            inside = candidate.resolve().is_relative_to(folder)
            if inside and candidate.is_file():
                return candidate
        except (OSError, ValueError):
            continue
    return None


def _inside(folder: Path) -> Path:
    """The model's configuration of a checkpoint's folder."""
    for name in ("config.json", "adapter_config.json"):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{folder}: is a folder without config.json; name a file")


def parse_document(text: str, path: Path) -> Document:
    """Parse a text by its look: not the name of the file but its content tells the syntax."""
    stripped = text.lstrip()
    if not stripped:
        raise InputError(f"{path}: is empty")
    if path.suffix.lower() == ".md":
        return _of_page(text, path)
    if _is_python(text, path):
        script = read_script(_of_notebook(text, path) if path.suffix.lower() == ".ipynb" else text, path)
        found = {"values": script.values, "calls": script.calls, "defaults": script.defaults}
        return Document(path, "python", {**found, "assigned": script.assigned})
    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    if stripped.startswith("{") and not is_yaml:
        return _braces(text, path)
    if path.suffix.lower() == ".toml" or (_TABLE.search(text) and "=" in text and path.suffix != ".sh"):
        return Document(path, "toml", _toml(text, path))
    runs = [] if is_yaml else [one for one in _YOLO.finditer(text.replace("\\\n", " ")) if "model=" in one[0]]
    if runs:
        detector = next((run for run in runs if run[1] == "train"), runs[0])
        return Document(
            path, "arguments", {"mode": detector[1], "task": "", **dict(_PAIR.findall(detector[0]))}
        )
    command = not is_yaml and not _FLAG_KEY.search(text) and (_ARGUMENT.search(text) or _has_overrides(text))
    run = _command(text, path) if command else None
    if not is_yaml and not (run and any(key in run.data for key in _COMMANDED)):
        run = _written(text, path) or run
    if run is not None:
        return run
    if not is_yaml and not _FLAG_KEY.search(text) and _is_script(stripped, path):
        started = ", ".join(dict.fromkeys(_CONFIGURATION.findall(text)))
        hint = f"name the file that it starts: {started}" if started else "name the trainer's own file"
        raise InputError(f"{path}: is a script without arguments of a trainer: {hint}")
    return _yaml(text, path)


def _command(text: str, path: Path) -> Document:
    arguments, remarks = parse_arguments(text, str(path))
    arguments, abbreviated = written_out(arguments)
    return Document(path, "arguments", arguments, (*remarks, *abbreviated), programs_of(text, str(path)))


def _written(text: str, path: Path) -> Document | None:
    """The trainer's configuration that a script writes (`cat > run.yaml <<EOF`) before it starts it; None: none."""
    lines = iter(text.split("\n"))
    for line in lines:
        file, until = _WRITTEN.search(line), _UNTIL.search(line)
        if file is None or until is None or not line.lstrip().startswith("cat"):
            continue
        body = "\n".join(_before(until[1], lines)).replace("\\$", "$")
        name = Path(file[1])
        try:  # JSON is YAML
            document = parse_document(body, path.with_name("_.toml" if name.suffix == ".toml" else "_.yaml"))
        except InputError:  # the shell puts variables in
            continue
        if any(key in document.data for key in _TRAINED):
            remark = f"{name.name}, which the script writes, is read; arguments of the command that starts it are not"
            return replace(document, path=path, remarks=(*document.remarks, remark))
    return None


def _before(end: str, lines: Iterator[str]) -> Iterator[str]:
    return takewhile(lambda line: line.strip() != end, lines)


def _of_page(text: str, path: Path) -> Document:
    """The configuration that a page quotes, as model cards do, or the command: the longest block of its kind.

    JSON comes last, which mostly is what a program prints.
    """
    blocks = _BLOCK.findall(text)
    for kinds in (("yaml", "yml", "toml"), ("bash", "sh", "shell"), ("json",)):
        held = [(len(body), kind, body) for kind, body in blocks if kind.lower() in kinds]
        if held:
            _, kind, body = max(held)
            suffix = ".sh" if kind.lower() in ("bash", "shell") else f".{kind.lower()}"
            return replace(parse_document(body, path.with_suffix(suffix)), path=path)
    raise InputError(
        f"{path}: quotes no configuration and no command (```yaml, ```bash): name the trainer's own file"
    )


def _is_python(text: str, path: Path) -> bool:
    """Whether a file is a Python script or a notebook, by its ending or by its imports."""
    return path.suffix.lower() in (".py", ".ipynb") or bool(
        not path.suffix and _IMPORT.search(text) and "=" in text
    )


def _of_notebook(text: str, path: Path) -> str:
    """The Python of a notebook's cells; commands of the shell are left out."""
    try:
        cells = json.loads(text)["cells"]
        parts = ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{path}: is not a notebook: it has no list of cells with their source") from None
    python = [part for part in parts if not part.lstrip().startswith("%%")]
    return "\n".join(_MAGIC.sub(r"\1pass", part) for part in python)


def _has_overrides(text: str) -> bool:
    """Whether a script overrides values; line by line, so that the time grows with the text and not faster."""
    if _OVERRIDE_LINE.search(text):
        return True
    for line in text.replace("\\\n", " ").split("\n"):
        command = line.partition("#")[0]
        program = _PYTHON.search(command)
        if program is not None and _OVERRIDES.search(command, program.end()):
            return True
    return False


def _is_script(text: str, path: Path) -> bool:
    return text.startswith("#!") or path.suffix.lower() in (".sh", ".bash", ".slurm", ".sbatch")


def _braces(text: str, path: Path) -> Document:
    """JSON, or YAML in braces: with comments, or a comma behind the last key."""
    try:
        return Document(path, "json", parse_json(text, str(path)))
    except InputError as error:
        if path.suffix.lower() == ".json":
            raise
        try:
            return _yaml(text, path)
        except InputError:
            raise error from None


def _toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{path}: is not valid TOML: {error}") from None


def _yaml(text: str, path: Path) -> Document:
    name = str(path)
    try:
        parsed = parse_yaml(text, name, foreign=True)
    except YamlError as error:
        raise Source(name, text).error(error.faults) from None
    if not isinstance(parsed.data, dict):
        text = "holds no mapping of keys to values: which tool's configuration is it?"
        raise parsed.source.error([Fault((), text)])
    remarks = tuple(fault_text(fault) for fault in parsed.faults)
    flags = _flags(parsed.data)
    if flags:
        return Document(path, "arguments", flags, remarks)
    return Document(path, "yaml", parsed.data, remarks)


def _flags(data: dict[str, Any]) -> dict[str, Any]:
    """Arguments that are keys of the file or of one of its sections: `MODEL_ARGS: {--num-layers: 12}`."""
    sections = [data, *(value for value in data.values() if isinstance(value, dict))]
    return {
        key[2:].replace("-", "_"): value
        for section in sections
        for key, value in section.items()
        if key.startswith("--")
    }
