"""Values and calls of a Python script, read from its text: nothing is imported or run.

Understood: constants, sums of numbers, names, dictionaries and `dict(...)`, fields of classes, defaults of functions
and of `add_argument`, branches that constants decide. Of other branches all are read,
and what they leave with different values is not known. What follows from anything else is not known and left out.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.records import record
from planner.trainer_files.python_values import (
    BY_HARDWARE,
    CONVERSIONS,
    UNKNOWN,
    Call,
    Imported,
    as_read,
    by_default,
    calculated,
    compared,
    converted,
    dotted,
    is_plain,
)

MAX_CALLS = 20_000
_DEEPEST = 60


@record
class Script:
    """What a script states.

    Attributes:
        values: of names, at its end.
        calls: in their order, inner before outer.
        defaults: names of arguments of its own command line whose default was read.
        assigned: values of attributes by their name with its dots, such as `cfg.train.train_iters`.
    """

    values: dict[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)
    assigned: dict[str, Any] = field(default_factory=dict)


def read_script(text: str, path: Path) -> Script:
    """Read a script.

    Raises:
        InputError: it is no Python, or nested too deeply.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the script's own style
            tree = ast.parse(text)
        reader = _Reader(tree)
        reader.statements(tree.body)
    except SyntaxError as error:
        raise InputError(f"{path}: is not valid Python: line {error.lineno}: {error.msg}") from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise InputError(f"{path}: is not valid Python: {error or 'nested too deeply'}") from None
    return reader.script


class _Reader:
    """Follows the statements of a script in their order."""

    def __init__(self, tree: ast.AST) -> None:
        self.script = Script(values={"__name__": "__main__"})
        self.changed: dict[str, Any] = {}  # name -> its value before the branch that is read
        self.branches = 0  # that no constant decides, around the statement
        self.fields: dict[str, Any] = {}  # of classes, and of arguments of the command line
        self.stated: set[str] = set()  # of the latter
        self.imported: dict[str, Imported] = {}  # classes
        self.depth = 0
        # function -> arguments that the script itself passes, by name or place: their defaults do not count
        self.passed: dict[str, dict[str | int, Any]] = {}
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                mine = self.passed.setdefault(call.func.id, {})
                given: list[tuple[str | int, ast.expr]] = [*enumerate(call.args)]
                given += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
                for key, value in given:
                    is_once = isinstance(value, ast.Constant) and key not in mine
                    mine[key] = self.value(value) if is_once else UNKNOWN

    def statements(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.assign(target, value)
        elif isinstance(node, ast.AnnAssign):
            self.assign(node.target, UNKNOWN if node.value is None else self.value(node.value))
        elif isinstance(node, ast.AugAssign):
            self.assign(
                node.target, calculated(node.op, self.value(as_read(node.target)), self.value(node.value))
            )
        elif isinstance(node, ast.If):
            decided = self.value(node.test)
            if is_plain(decided):
                self.statements(node.body if decided else node.orelse)
            else:
                self.either(node.body, node.orelse)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.body_of(node, self.parameters(node))
        elif isinstance(node, ast.For | ast.AsyncFor):
            self.value(node.iter)
            self.assign(node.target, UNKNOWN)
            self.either(node.body, node.orelse)
        elif isinstance(node, ast.While):
            self.value(node.test)
            self.either(node.body, node.orelse)
        elif isinstance(node, ast.Try):
            self.statements(node.body)
            self.either([], *(handler.body for handler in node.handlers))
            self.statements([*node.orelse, *node.finalbody])
        elif isinstance(node, ast.Match):
            self.value(node.subject)
            self.either([], *(case.body for case in node.cases))
        elif isinstance(node, ast.ClassDef):
            self.class_of(node)
        elif isinstance(node, ast.ImportFrom):
            names = (alias.asname or alias.name for alias in node.names)
            self.imported |= {name: Imported(name) for name in names if name[:1].isupper()}
        else:
            self.others(node)

    def others(self, node: ast.stmt) -> None:
        """Blocks with statements in them, and expressions on their own."""
        for _, value in ast.iter_fields(node):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.stmt):
                    self.statement(part)
                elif isinstance(part, ast.expr):
                    self.value(part)
                elif isinstance(part, ast.withitem):
                    entered = self.value(part.context_expr)
                    if part.optional_vars is not None:
                        self.assign(part.optional_vars, entered if isinstance(entered, Call) else UNKNOWN)

    def either(self, *bodies: Sequence[ast.stmt]) -> None:
        """Branches of which any may be taken: a name that they leave with different values is not known."""
        outer, ends = self.changed, []
        self.branches += 1
        for body in bodies:
            self.changed = {}
            self.statements(body)
            ends.append({name: self.script.values.get(name, UNKNOWN) for name in self.changed})
            for name, before in self.changed.items():
                self.set(name, before)
        self.branches -= 1
        self.changed = outer
        for name in {name: None for end in ends for name in end}:
            before = self.script.values.get(name, UNKNOWN)
            found = [end.get(name, before) for end in ends if name in end or before is not UNKNOWN]
            self.name(name, found[0] if all(_is_same(found[0], value) for value in found) else UNKNOWN)

    def body_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef, unknown: Sequence[str]) -> None:
        """A function's body; parameters whose value is not known hide names of the script."""
        hidden = {name: self.script.values.get(name, UNKNOWN) for name in unknown}
        for name in hidden:
            self.name(name, UNKNOWN)
        self.statements(node.body)
        for name, before in hidden.items():
            self.name(name, before)

    def parameters(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
        """Note defaults, and return the names of parameters whose value is not known."""
        arguments, passed = node.args, self.passed.get(node.name, {})
        places = [*arguments.posonlyargs, *arguments.args]
        with_default = places[len(places) - len(arguments.defaults) :]
        pairs = [*zip(with_default, arguments.defaults, strict=True),
                 *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]  # fmt: skip
        defaults = {
            parameter.arg: UNKNOWN if default is None else self.value(default) for parameter, default in pairs
        }
        unknown = []
        for place, name in enumerate(one.arg for one in (*places, *arguments.kwonlyargs)):
            value = passed.get(
                name, passed.get(place) if place in passed and place < len(places) else defaults.get(name)
            )
            if value is UNKNOWN or value is None:
                unknown.append(name)
            else:
                self.name(name, value)
        return unknown

    def class_of(self, node: ast.ClassDef) -> None:
        """Fields of a class are found by their name, whatever its instance is called."""
        for part in node.body:
            if isinstance(part, ast.AnnAssign | ast.Assign) and part.value is not None:
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                value = self.value(part.value)
                if isinstance(value, Call) and value.last in ("field", "Field"):
                    value = value.named.get("default", UNKNOWN)
                for target in targets:
                    if isinstance(target, ast.Name) and value is not UNKNOWN:
                        self.fields[target.id] = value
            elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                self.body_of(part, [one.arg for one in (*part.args.args, *part.args.kwonlyargs)])

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            if isinstance(value, list | tuple) and len(value) == len(target.elts):
                for part, inner in zip(target.elts, value, strict=True):
                    self.assign(part, inner)
            elif target.elts:  # `model, tokenizer = ...from_pretrained(...)`
                self.assign(target.elts[0], value if isinstance(value, Call) else UNKNOWN)
                for inner in target.elts[1:]:
                    self.assign(inner, UNKNOWN)
        elif isinstance(target, ast.Name):
            self.name(target.id, value)
        elif isinstance(target, ast.Attribute):
            self.put(self.script.assigned, dotted(target), value)
            owner = self.value(target.value)
            if isinstance(owner, Call):
                self.put(owner.named, target.attr, value)
                if target.attr not in owner.named:
                    owner.unread.append(target.attr)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, UNKNOWN)
        elif isinstance(target, ast.Subscript):
            owner, key = self.value(target.value), self.value(target.slice)
            if isinstance(owner, dict) and isinstance(key, str):
                self.put(owner, key, value)

    def name(self, name: str, value: Any) -> None:
        """Set a name; what it was is kept for the end of the branch."""
        self.changed.setdefault(name, self.script.values.get(name, UNKNOWN))
        self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        if value is UNKNOWN:
            self.script.values.pop(name, None)
        else:
            self.script.values[name] = value

    def put(self, held: dict[str, Any], key: str, value: Any) -> None:
        """Set a field; one that a branch changes is not known."""
        if value is UNKNOWN or (self.branches and key in held and not _is_same(held[key], value)):
            held.pop(key, None)
        else:
            held[key] = value

    def value(self, node: ast.expr) -> Any:
        """The value of an expression, `UNKNOWN` where it does not follow from constants."""
        self.depth += 1
        try:
            return self._value(node) if self.depth <= _DEEPEST else UNKNOWN
        finally:
            self.depth -= 1

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.script.values.get(node.id, self.imported.get(node.id, UNKNOWN))
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.Dict):
            return self.pairs((self.value(key) if key else None, item, self.value(item)) for key, item in
                              zip(node.keys, node.values, strict=True))  # fmt: skip
        if isinstance(node, ast.List | ast.Tuple):
            items = [self.value(item) for item in node.elts]
            return UNKNOWN if any(item is UNKNOWN for item in items) else items
        if isinstance(node, ast.BinOp):
            return calculated(node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.BoolOp):  # `a or b`: the first that is true
            known = [self.value(part) for part in node.values]
            for part in known:
                if not is_plain(part) or bool(part) is isinstance(node.op, ast.Or):
                    return part if is_plain(part) else UNKNOWN
            return known[-1]
        if isinstance(node, ast.Compare):
            values = [self.value(part) for part in (node.left, *node.comparators)]
            return compared(node.ops[0], *values) if len(values) == 2 else UNKNOWN
        if isinstance(node, ast.NamedExpr):
            value = self.value(node.value)
            self.assign(node.target, value)
            return value
        if isinstance(node, ast.IfExp):
            decided = self.value(node.test)
            first, second = self.value(node.body), self.value(node.orelse)
            return UNKNOWN if not is_plain(decided) else first if decided else second
        if isinstance(node, ast.Subscript):
            owner, key = self.value(node.value), self.value(node.slice)
            return owner.get(key, UNKNOWN) if isinstance(owner, dict) and isinstance(key, str) else UNKNOWN
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self.value(part)
        return UNKNOWN

    def unary(self, node: ast.UnaryOp) -> Any:
        inner = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not inner if isinstance(inner, bool) else UNKNOWN
        number = isinstance(inner, int | float) and not isinstance(inner, bool)
        if not number or isinstance(node.op, ast.Invert):
            return UNKNOWN
        return -inner if isinstance(node.op, ast.USub) else inner

    def attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in ("torch", "jnp"):
            return node.attr  # a type of numbers
        owner = self.value(node.value)
        if isinstance(owner, Call) and node.attr in owner.named:
            return owner.named[node.attr]
        if node.attr in self.fields and not isinstance(owner, dict | str | list):
            if node.attr in self.stated and node.attr not in self.script.defaults:
                self.script.defaults.append(node.attr)
            return self.fields[node.attr]
        return UNKNOWN

    def pairs(self, items: Iterable[tuple[Any, ast.expr, Any]]) -> dict[str, Any]:
        """Known values by their name; those without a name (`**more`) put in."""
        found: dict[str, Any] = {}
        for name, item, value in items:
            if name is None:
                found |= value if isinstance(value, dict) else {}
            elif name == "type" and (value is UNKNOWN or isinstance(value, Call | Imported)):
                found[name] = value.name if isinstance(value, Call | Imported) else dotted(item)
            elif isinstance(name, str) and value is not UNKNOWN:
                found[name] = value
        return found

    def call(self, node: ast.Call) -> Any:
        name = dotted(node.func)
        items = [(keyword.arg, keyword.value, self.value(keyword.value)) for keyword in node.keywords]
        named = self.pairs(items)
        positional = tuple(self.value(part) for part in node.args)
        if name == "dict":
            return (dict(positional[0]) if positional and isinstance(positional[0], dict) else {}) | named
        if name in CONVERSIONS and len(positional) == 1:
            return converted(CONVERSIONS[name], positional[0])
        if name in ("os.getenv", "getenv"):
            return by_default(positional)
        if BY_HARDWARE.fullmatch(name):
            return "auto"
        if name.endswith(".get") and positional:
            return self.looked_up(node, positional)
        if name.endswith(".add_argument"):
            self.argument(positional, named)
            return UNKNOWN
        receiver = self.value(node.func.value) if isinstance(node.func, ast.Attribute) else UNKNOWN
        unread = [name or f"**{dotted(item)}" for name, item, value in items
                  if (name not in named if name else not isinstance(value, dict))]  # fmt: skip
        call = Call(
            name, (receiver, *positional) if isinstance(receiver, Call) else positional, named, unread
        )
        self.script.calls.append(call)
        if len(self.script.calls) > MAX_CALLS:
            raise ValueError(f"more than {MAX_CALLS:,} calls")
        return call

    def looked_up(self, node: ast.Call, positional: tuple[Any, ...]) -> Any:
        """`settings.get(name, default)`."""
        owner = self.value(node.func.value) if isinstance(node.func, ast.Attribute) else UNKNOWN
        default = by_default(positional)
        return (
            owner.get(positional[0], default)
            if isinstance(owner, dict) and isinstance(positional[0], str)
            else default
        )

    def argument(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """The default of an argument of the script's own command line."""
        flags = [word for word in positional if isinstance(word, str)]
        word = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
        name = str(named.get("dest") or word.lstrip("-").replace("-", "_"))
        value = named.get("default", False if named.get("action") == "store_true" else UNKNOWN)
        if name and value is not UNKNOWN and value is not None:
            self.fields[name] = value
            self.stated.add(name)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same one, or equal texts or numbers."""
    if one is other:
        return True
    return isinstance(one, bool | int | float | str) and type(one) is type(other) and bool(one == other)
