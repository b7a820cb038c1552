"""Settings and where each came from: flag > `PLANNER_*` > ./planner.toml > the user's planner.toml > default.

The pinned key of catalogs alone is taken from the user's planner.toml first: a checkout may pin one, not replace one.

The group hands the values found here to click as defaults, so a command's own flag wins without further code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.files.limited import read_limited
from planner.records import record
from planner.render.formats import PLAN_FORMATS

ENV_PREFIX = "PLANNER_"
FILE_NAME = "planner.toml"
_MAX_BYTES = 1 << 20
_DURATION = r"\d+(\.\d+)?\s*(s|m|min|h)?"
_RATIO = r"\d+(\.\d+)?([eE][-+]?\d+)?\s*%?"


@record(frozen=True)
class Setting:
    """One thing a user may set; `check` returns what is wrong with a value, or an empty text.

    `personal`: the user's file comes before that of the current folder, so that a checkout cannot replace it.
    """

    name: str
    default: str
    help: str
    check: Callable[[str], str]
    personal: bool = False


@record(frozen=True)
class Resolved:
    """A setting's value (text; empty where there is none) and the place that gave it."""

    name: str
    value: str
    origin: str


def _any_path(value: str) -> str:
    return "" if value and "\0" not in value else "a path is needed"


def _output(value: str) -> str:
    return "" if value in PLAN_FORMATS else f"one of {', '.join(PLAN_FORMATS)} is needed"


def _count(value: str) -> str:
    return (
        "" if value.isascii() and value.isdigit() and int(value) > 0 else "a whole number above 0 is needed"
    )


def _duration(value: str) -> str:
    return "" if re.fullmatch(_DURATION, value) else "a duration such as 30s or 2m is needed"


def _size(value: str) -> str:
    from planner.units import parse_size

    try:
        parse_size(value)
    except ValueError:
        return "a size such as 4GiB is needed"
    return ""


def _ratio(value: str) -> str:
    return "" if re.fullmatch(_RATIO, value) else "a ratio such as 0.1% or 0.001 is needed"


SETTINGS: tuple[Setting, ...] = (
    Setting("cache_dir", "", "folder of derived files that may be deleted any time", _any_path),
    Setting("catalog_dir", "", "catalog snapshot to use instead of the bundled one", _any_path),
    Setting(
        "catalog_key", "", "public keys, one of which must have signed the catalog", _any_path, personal=True
    ),
    Setting("output", "table", "output format of plans", _output),
    Setting("max_results", "10", "alternatives shown", _count),
    Setting("time_limit", "30s", "longest search of a mixed-integer program", _duration),
    Setting("max_memory", "", "most memory of an answer; default 2GiB where no bill is read", _size),
    Setting(
        "reuse_answers", "5min", "how long an unchanged question has the same answer; 0: never", _duration
    ),
    Setting("gap", "0.1%", "relative optimality gap at which that search may stop", _ratio),
)


def user_config_path() -> Path:
    """Return the place of the user's own configuration file, which need not exist."""
    import click

    return Path(click.get_app_dir("planner")) / FILE_NAME


def load_settings(
    *, directory: Path | None = None, environ: Mapping[str, str] | None = None, user_file: Path | None = None
) -> tuple[Resolved, ...]:
    """Resolve every setting of `SETTINGS`, in its order.

    Args:
        directory: folder whose `planner.toml` counts as the project's; the current one when None.
        environ: environment to read; the process's own when None.
        user_file: the user's configuration file; `user_config_path()` when None.

    Raises:
        InputError: a value is invalid, a file is unreadable, or a name is unknown; lists every fault.
    """
    environ = os.environ if environ is None else environ
    files = [(directory or Path()) / FILE_NAME, user_file or user_config_path()]
    faults: list[str] = []
    tables = [(path, _load_file(path, faults)) for path in files]
    resolved = tuple(_resolve(setting, environ, tables, faults) for setting in SETTINGS)
    if faults:
        raise InputError("\n".join(faults))
    return resolved


def command_defaults(settings: tuple[Resolved, ...]) -> dict[str, Any]:
    """Return the values that the user set, by parameter name: click's defaults for every command."""
    return {s.name: s.value for s in settings if s.origin != "default"}


def environment_for_folders(settings: tuple[Resolved, ...]) -> dict[str, str]:
    """Return variables that hand folders named in a file on to `catalogs`, which reads only variables."""
    folders = {setting.name for setting in SETTINGS if setting.check is _any_path}
    found = {
        s.name: s for s in settings if s.name in folders and s.origin not in ("default", _variable(s.name))
    }
    return {_variable(name): setting.value for name, setting in found.items()}


def _variable(name: str) -> str:
    return ENV_PREFIX + name.upper()


def _resolve(
    setting: Setting, environ: Mapping[str, str], tables: list[tuple[Path, dict[str, str]]], faults: list[str]
) -> Resolved:
    variable = _variable(setting.name)
    resolved = Resolved(setting.name, setting.default, "default")
    if environ.get(variable):  # an empty variable means unset, as everywhere else
        resolved = Resolved(setting.name, environ[variable], variable)
    else:
        for path, table in reversed(tables) if setting.personal else tables:
            if setting.name in table:
                resolved = Resolved(setting.name, _from_file(setting, table[setting.name], path), str(path))
                break
    fault = setting.check(resolved.value) if resolved.origin != "default" else ""
    if fault:
        faults.append(f"{resolved.origin}: {setting.name}: {fault}, not {resolved.value!r}")
    return resolved


def _from_file(setting: Setting, value: str, path: Path) -> str:
    """Read a folder's name as the file means it: from its own place, with `~` for the user's home."""
    if setting.check is not _any_path or not value:
        return value
    return str(path.parent / os.path.expanduser(value))  # noqa: PTH111 - `~nobody` is no error but a name


def _load_file(path: Path, faults: list[str]) -> dict[str, str]:
    try:
        raw = read_limited(path, _MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        faults.append(f"{path}: cannot be read: {error.strerror}")
        return {}
    import tomllib

    try:
        table = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        faults.append(f"{path}: not valid TOML: {error}")
        return {}
    known = {setting.name for setting in SETTINGS}
    faults.extend(f"{path}: {key}: unknown setting{_hint(key, known)}" for key in table if key not in known)
    return {key: str(value) for key, value in table.items() if key in known}


def _hint(key: str, known: set[str]) -> str:
    import difflib

    close = difflib.get_close_matches(key, sorted(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else f"; there are {', '.join(sorted(known))}"
