"""Branches of a shell script, as far as its own variables decide them: lines that are not taken go."""

from __future__ import annotations

import operator
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase

from planner.records import record

UNSET = "\u2400"

_CONTROL = re.compile(r"(if|elif|else|then|fi|case|esac)\b|;;")
_LABEL = re.compile(r"\(?\s*([^()$`;=]+)\)(.*)", re.DOTALL)
_SEVERAL = re.compile(r"[A-Za-z_]\w*=(?:[^\s;()\"']*|\"[^\"]*\"|'[^']*')\s*;\s*\S")
_SUBJECT = re.compile(r"case\s+(.+?)\s+in\b(.*)", re.DOTALL)
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq, "-ne": operator.ne, "-lt": operator.lt, "-le": operator.le, "-gt": operator.gt,
    "-ge": operator.ge,
}  # fmt: skip


@record
class _Frame:
    """An open `if` or `case`.

    Attributes:
        subject: what a `case` compares; None for an `if`.
        runs: the present branch is taken, or may be.
        taken: a branch surely was.
        unsure: nobody knows of a branch whether it is taken.
        labelled: the present part of a `case` stands behind its label.
        assigned: what each branch sets.
        before: earlier values of these.
    """

    subject: str | None
    runs: bool
    taken: bool = False
    unsure: bool = False
    labelled: bool = False
    assigned: list[dict[str, str]] = field(default_factory=list)
    before: dict[str, str] = field(default_factory=dict)


class Branches:
    """The lines of a script that count, given the variables that it has set so far."""

    def __init__(self, variables: dict[str, str], expand: Callable[[str], str]) -> None:
        """Take the variables, which are read as the lines come and of which doubtful ones are unset.

        Args:
            variables: of the script, by name.
            expand: puts the values of variables into a text; `UNSET` for those that are not known.
        """
        self._variables, self._expand = variables, expand
        self._frames: list[_Frame] = []
        self.doubtful: set[str] = set()

    @property
    def open(self) -> bool:
        """Whether a branch was begun and not ended."""
        return bool(self._frames)

    def lines(self, line: str) -> Iterator[str]:
        """The parts of a line that are run."""
        inside_case = bool(self._frames) and self._frames[-1].subject is not None
        if not _CONTROL.match(line) and not (inside_case and _LABEL.match(line)):
            if self._runs():
                yield from _statements(line) if _SEVERAL.match(line) else [line]
            return
        for part in _statements(line):
            statement = self._control(part)
            if statement:
                yield from self.lines(statement)

    def assign(self, name: str, value: str) -> None:
        """Set a variable; a branch that may not be taken leaves a value that is known for one that is not."""
        unsure = [frame for frame in self._frames if frame.unsure]
        before = self._variables.get(name)
        if unsure and before is not None and UNSET in value and UNSET not in before:
            return
        for frame in unsure:
            if not any(name in branch for branch in frame.assigned) and before is not None:
                frame.before.setdefault(name, before)
            frame.assigned[-1][name] = value
        self._variables[name] = value

    def _runs(self) -> bool:
        return all(frame.runs for frame in self._frames)

    def _control(self, part: str) -> str:
        """Take a word that opens, changes or closes a branch; returns what stands behind it."""
        word = re.match(r"[a-z]+|;;", part)
        keyword = word[0] if word is not None else ""
        remainder = part[len(keyword) :].strip()
        frame = self._frames[-1] if self._frames else None
        if keyword == "if":
            self._frames.append(_Frame(None, False))
            self._enter(self._holds(remainder))
            return ""
        subject = _SUBJECT.match(part) if keyword == "case" else None
        if subject is not None:
            self._frames.append(_Frame(self._expand(subject[1]).strip("\"' "), False))
            return subject[2].strip()
        if frame is None or keyword == "then":
            return (
                remainder if keyword == "then" else part if frame is None and keyword not in _CLOSING else ""
            )
        if keyword in ("elif", "else"):
            self._enter(self._holds(remainder) if keyword == "elif" else True)
            return remainder if keyword == "else" else ""
        if keyword in _CLOSING:
            self._close()
            return ""
        return self._labelled(frame, part)

    def _labelled(self, frame: _Frame, part: str) -> str:
        """A part of a `case`: its end, a label with what follows, or a statement of the branch."""
        if part.startswith(";;"):
            frame.runs = frame.labelled = False
            return ""
        label = _LABEL.match(part)
        if frame.subject is None or frame.labelled or label is None:
            return part if self._runs() and not _CONTROL.match(part) else ""
        frame.labelled = True
        patterns = [pattern.strip().strip("\"'") for pattern in label[1].split("|")]
        is_known = UNSET not in frame.subject
        matched = any(fnmatchcase(frame.subject, pattern) for pattern in patterns)
        self._enter(matched if is_known else None)
        return label[2].strip()

    def _enter(self, holds: bool | None) -> None:
        """Begin a branch; None: nobody knows whether it is taken."""
        frame = self._frames[-1]
        frame.runs = not frame.taken and holds is not False
        frame.unsure = frame.unsure or holds is None
        frame.taken = frame.taken or holds is True
        if frame.runs:
            frame.assigned.append({})

    def _close(self) -> None:
        """Leave: what doubtful branches set to different values is not known."""
        frame = self._frames.pop()
        if not frame.unsure:
            return
        branches = frame.assigned if frame.taken else [*frame.assigned, frame.before]
        for name in {name for branch in frame.assigned for name in branch}:
            values = {branch[name] for branch in branches if name in branch}
            if len(values) < 2:
                continue
            if "--" in self._variables[name]:  # a list of arguments: its last form is better than none
                self.doubtful.add(name)
            else:
                self._variables[name] = UNSET

    def _holds(self, condition: str) -> bool | None:
        """Whether a test holds; None where the script does not say."""
        text = condition.strip().strip(";").strip()
        for joint, decisive in ((_AND, False), (_OR, True)):
            parts = joint.split(text)
            if len(parts) > 1:
                if (_AND if joint is _OR else _OR).search(text):
                    return None
                return _joined([self._single(part) for part in parts], decisive=decisive)
        return self._single(text) if _TEST.match(text) else None

    def _single(self, text: str) -> bool | None:
        """Whether a test without a joint holds, with or without its brackets."""
        words = _words(self._expand(_TEST.sub(r"\1", _TEST_END.sub("", text.strip()))))
        negated = bool(words) and words[0] == "!"
        holds = _test(words[1:] if negated else words)
        return holds if holds is None or not negated else not holds


_CLOSING = ("fi", "esac")
_AND, _OR = re.compile(r"&&|\s-a\s"), re.compile(r"\|\||\s-o\s")
_TEST, _TEST_END = re.compile(r"^(!\s+)?(?:\[\[?|test)\s+"), re.compile(r"\s+\]\]?$")


def _joined(parts: list[bool | None], *, decisive: bool) -> bool | None:
    """Of tests joined by `and` one that fails decides, by `or` one that holds; else all must be known."""
    if decisive in parts:
        return decisive
    return None if None in parts else not decisive


def _test(words: list[str]) -> bool | None:
    if len(words) == 2 and words[0] in ("-z", "-n"):
        empty = words[1].strip(UNSET) == ""  # a variable that the script does not set is empty
        return empty if words[0] == "-z" else not empty
    if len(words) != 3:
        return None
    left, sign, right = words
    if sign in ("=", "==", "!=") and "" in (left, right):  # `[ "$STAGE" == "" ]` in place of -z
        return ((left + right).strip(UNSET) == "") is (sign != "!=")
    if UNSET in left + right:
        return None
    if sign in ("=", "==", "!="):
        return fnmatchcase(left, right) is (sign != "!=")
    if sign in _COMPARED and left.isdigit() and right.isdigit():
        return _COMPARED[sign](int(left), int(right))
    return None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _statements(line: str) -> list[str]:
    """The statements of a line: parts between semicolons outside quotes; `;;` is one of its own."""
    parts = re.findall(r";;|(?:\"[^\"]*\"|'[^']*'|[^;\"']|[\"'])+", line)
    return [part.strip() for part in parts if part.strip()]
