"""Reads the commands of a Markdown page.

A page's fenced `bash` blocks hold commands, one per line (a trailing backslash joins lines). Its `console`
blocks hold commands after `$ ` and below each what it prints, where a line `...` stands for any lines and
`[..]` for any text within a line. Every block is run in order, in one folder, unless an HTML comment right
above it says otherwise:

    <!-- test: skip needs a network -->     the block is not run; a reason is required
    <!-- test: exit 3 -->                   its last command ends with this code
    <!-- test: loose -->                    only exit codes are checked, not what is printed

Words may be joined by commas: `<!-- test: exit 3, loose -->`. The installation before a command, recognised
by `_INSTALL`, is left out: the environment of the tests is the installed one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FENCE = re.compile(r"^```(\w*)\s*$")
_MARKER = re.compile(r"^<!--\s*test:\s*(.+?)\s*-->$")
_INSTALL = re.compile(r"^python3 -m venv \S+ && \S*pip install (?:-q )?(?:-e )?\S+(?: && |$)")


@dataclass
class Command:
    """One command, what it should print (None: not compared) and its exit code."""

    line: int
    text: str
    output: list[str] | None = None
    exit_code: int = 0


@dataclass
class Block:
    """The commands of one fenced block; `skip` holds the reason for leaving it out."""

    line: int
    language: str
    commands: list[Command] = field(default_factory=list)
    skip: str = ""


def without_install(command: str) -> str:
    """Leave out the making of an environment and the use of its path."""
    return _INSTALL.sub("", command).replace(".venv/bin/", "")


def read_blocks(markdown: str) -> list[Block]:
    """Return the bash and console blocks of a page."""
    blocks: list[Block] = []
    lines = markdown.splitlines()
    marker, index = "", 0
    while index < len(lines):
        fence = _FENCE.match(lines[index])
        if fence is None:
            found = _MARKER.match(lines[index])
            marker = found.group(1) if found else marker if not lines[index].strip() else ""
            index += 1
            continue
        end = next(i for i in range(index + 1, len(lines)) if lines[i].strip() == "```")
        if fence.group(1) in ("bash", "console"):
            blocks.append(_block(index + 1, fence.group(1), lines[index + 1 : end], marker))
        marker, index = "", end + 1
    return blocks


def _block(line: int, language: str, body: list[str], marker: str) -> Block:
    block = Block(line, language)
    if marker.startswith("skip"):
        block.skip = marker.removeprefix("skip").strip()
        assert block.skip, f"line {line}: a skipped block needs a reason"
        return block
    words = [word.strip() for word in marker.split(",") if word.strip()]
    known = [word for word in words if word == "loose" or re.fullmatch(r"exit \d+", word)]
    assert words == known, f"line {line}: unknown marker {marker!r}"
    joined = ""
    for number, text in enumerate(body, start=line + 1):
        is_command = language == "bash" or text.startswith("$ ") or bool(joined)
        if is_command and text.strip() and not text.lstrip().startswith("#"):
            joined += text.removeprefix("$ ").strip()
            if joined.endswith("\\"):
                joined = joined[:-1]
                continue
            output: list[str] | None = [] if language == "console" and "loose" not in words else None
            block.commands.append(Command(number, joined, output))
            joined = ""
        elif not is_command and block.commands and block.commands[-1].output is not None:
            block.commands[-1].output.append(text)
    for word in words:
        if word.startswith("exit ") and block.commands:
            block.commands[-1].exit_code = int(word.removeprefix("exit "))
    return block


def mismatch(expected: list[str], printed: str) -> str:
    """Return what differs between the expected lines and a printed text; an empty text where nothing does."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            parts = (re.escape(part) for part in line.rstrip().split("[..]"))
            pattern += ".*".join(parts) + r"[ ]*\n"
    if re.fullmatch(pattern, printed.rstrip("\n") + "\n" if printed.strip() else ""):
        return ""
    return "expected:\n" + "\n".join(expected) + "\nprinted:\n" + printed
