"""Texts of users inside shell, YAML and HCL: quoted so that they stay one value."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

import yaml


def shell(text: str) -> str:
    """One word of a POSIX shell."""
    return shlex.quote(text)


def shell_words(words: Iterable[str]) -> str:
    """Words of a command, each quoted where it must be."""
    return " ".join(map(shell, words))


def comment(text: str) -> str:
    """Text that stays on one comment line: line ends and other control characters become spaces."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


class _Dumper(yaml.SafeDumper):
    """Safe YAML for programs of Go and Python alike: quoted where a reader might see another type."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Indent lists below their key."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write equal values out: launch files are read by people."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    if "\n" in value and all(char.isprintable() or char == "\n" for char in value) and " \n" not in value:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    # YAML 1.1 words for booleans, and numbers such as 1e3, 0o7, 1_000 or 12:30, that some readers take as such
    plain = value and (value[0].isalpha() or value[0] in "/_") and value.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "nan"])
_Dumper.add_representer(str, _text)


def yaml_text(*documents: object) -> str:
    """Documents of plain values as YAML, keys in their own order."""
    return yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=2**20
    )
