"""A draft as a commented workload: every value with where it was read, blanks as comments to fill."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from planner.trainer_files.gather import Draft
from planner.trainer_files.model import Blank, Fact

_SECTIONS = ("model", "training", "data", "constraints")
_COMMENT_COLUMN = 40
_WIDTH = 116
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./ +()-]*")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off")
_MOST_UNKNOWN = 12
SCHEMA = "workload.v1.json"
_NO_SCHEMA = (
    f"# For completion in an editor: planner schema workload > {SCHEMA}, and as the first line here\n"
    f"#   yaml-language-server: $schema={SCHEMA}"
)


def point_at_schema(text: str, folder: Path) -> str:
    """The text of a workload for a file in `folder`: where the schema is not there, its first line says how to get it.

    Editors report a schema that they do not find as a fault of the file.
    """
    if (folder / SCHEMA).is_file():
        return text
    return text.replace(f"# yaml-language-server: $schema={SCHEMA}", _NO_SCHEMA, 1)


def render_draft(draft: Draft) -> str:
    """The workload as YAML."""
    top = {"version": 1, "name": draft.name}
    top |= {key: fact.value for key, fact in draft.facts.items() if "." not in key}
    command = " ".join(["planner init", *(["--from", *draft.files] if draft.files else [])])
    lines = [
        f"# yaml-language-server: $schema={SCHEMA}",
        *_comment(f"A draft by `{command}`: check each line."),
        *_comment("'assumed' was not stated; lines that begin with '# FILL' are still to be given."),
        *(f"{key}: {_value(value)}" for key, value in top.items()),
    ]
    others = (key.partition(".")[0] for key in draft.facts if "." in key)
    for section in dict.fromkeys((*_SECTIONS, *others)):
        lines += _section(draft, section)
    lines += _remarks(draft)
    return "\n".join(lines) + "\n"


def _section(draft: Draft, section: str) -> list[str]:
    tree: dict[str, Any] = {}
    for key, fact in draft.facts.items():
        first, _, subkey = key.partition(".")
        if first == section and subkey:
            _plant(tree, subkey.split("."), fact)
    blanks = [blank for blank in draft.blanks if blank.key.startswith(f"{section}.")]
    if not tree and not blanks:
        return []
    body = _tree(tree, 1, f"{draft.files[0]}: " if len(draft.files) == 1 else "")
    for blank in blanks:
        body += _blank(blank)
    return ["", f"{section}:" if tree else f"# {section}:", *body]


def _plant(tree: dict[str, Any], path: list[str], fact: Fact) -> None:
    for part in path[:-1]:
        inner = tree.get(part)
        if not isinstance(inner, dict):  # `layout: auto` and then a part of it
            inner = tree[part] = {}
        tree = inner
    tree[path[-1]] = fact


def _tree(tree: dict[str, Any], depth: int, only: str) -> list[str]:
    """Lines of a section; `only` is the name that every origin begins with, which need not be repeated."""
    lines = []
    for key, item in tree.items():
        indent = "  " * depth
        if isinstance(item, dict) and all(part.isdigit() for part in item):  # a list
            lines.append(f"{indent}{key}:")
            for part in item.values():
                first, *others = _tree(part, depth + 2, only)
                lines += [f"{indent}  - {first.lstrip()}", *others]
            continue
        if isinstance(item, dict):
            lines += [f"{indent}{key}:", *_tree(item, depth + 1, only)]
            continue
        text = f"{indent}{key}: {_value(item.value)}"
        where = item.where.removeprefix(only)
        origin = f"assumed: {where}" if item.assumed else where
        lines.append(f"{text:<{_COMMENT_COLUMN}}  # {_one_line(origin)}" if origin else text)
    return lines


def _blank(blank: Blank) -> list[str]:
    key = blank.key.partition(".")[2]
    return [f"  # FILL {blank.key}: {_one_line(blank.why)}", f"  # {key}: {blank.example}"]


def _remarks(draft: Draft) -> list[str]:
    lines: list[str] = []
    if draft.notes:
        lines += ["", "# Notes", *(line for note in draft.notes for line in _comment(note, "- "))]
    if draft.warnings:
        lines += ["", "# Not counted, or uncertain"]
        lines += [line for text in draft.warnings for line in _comment(text, "- ")]
    for name, keys in draft.unknown.items():
        shown = ", ".join(keys[:_MOST_UNKNOWN]) + (
            f" and {len(keys) - _MOST_UNKNOWN} more" if keys[_MOST_UNKNOWN:] else ""
        )
        lines += ["", *_comment(f"Keys of {name} that are not known here and were not read: {shown}")]
    return lines


def _comment(text: str, mark: str = "") -> list[str]:
    """A comment of bounded width."""
    words, lines, line = _one_line(text).split(" "), [], f"# {mark}"
    blank = "# " + " " * len(mark)
    for word in words:
        if len(line) + len(word) + 1 > _WIDTH and line.strip("# -"):
            lines.append(line.rstrip())
            line = blank
        line += ("" if line.endswith(" ") else " ") + word
    return [*lines, line.rstrip()]


def _one_line(text: str) -> str:
    """Text without line breaks or control characters, which would end the comment."""
    return re.sub(r"\s+", " ", "".join(letter if letter.isprintable() else " " for letter in text)).strip()


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return "[" + ", ".join(scalar(str(item)) for item in value) + "]"
    if isinstance(value, int):
        return str(value)
    return scalar(str(value)) if isinstance(value, str) else repr(value)


def scalar(text: str) -> str:
    """A text as YAML reads it back: plain where that is safe, else quoted."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and text == text.strip():
        return text
    return json.dumps(_one_line(text), ensure_ascii=False)
