"""Values and calls of a Python script, read from its text: nothing is imported or run.

Understood: constants, sums of numbers, names, dictionaries and `dict(...)`, fields of classes, defaults of functions
and of `add_argument`, branches that constants decide. What follows from anything else is not known and left out.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.records import record

MAX_CALLS = 20_000
_MOST = 10**15
_LONGEST = 10_000
_DEEPEST = 60
# questions whose answer the accelerator decides
_BY_HARDWARE = re.compile(r"(.*\.)?(is_bfloat16_supported|is_bf16_supported|is_torch_bf16_gpu_available)")
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
# what a launcher sets: a default is not what a run has
_LAUNCHED = ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS", "SLURM_NNODES", "CUDA_VISIBLE_DEVICES")
_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {"int": int, "float": float, "str": str, "bool": bool}


class _Unknown:
    """The one value that is not known."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()


@record(frozen=True)
class Call:
    """A call of what the script does not define with constants: a configuration, a trainer, a loaded model.

    Attributes:
        name: with its dots, such as `FastLanguageModel.from_pretrained`.
        positional: values by place, `UNKNOWN` among them.
        named: values by name, known ones alone.
        unread: names whose value is not known.
    """

    name: str
    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    unread: tuple[str, ...] = ()

    @property
    def last(self) -> str:
        """The name behind the last dot."""
        return self.name.rpartition(".")[2]


@record(frozen=True)
class Imported:
    """A class that the script imports."""

    name: str


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
        reader = _Reader()
        reader.statements(tree.body)
    except SyntaxError as error:
        raise InputError(f"{path}: is not valid Python: line {error.lineno}: {error.msg}") from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise InputError(f"{path}: is not valid Python: {error or 'nested too deeply'}") from None
    return reader.script


class _Reader:
    """Follows the statements of a script in their order."""

    def __init__(self) -> None:
        self.script = Script()
        self.fields: dict[str, Any] = {}  # of classes, and of arguments of the command line
        self.stated: set[str] = set()  # of the latter
        self.imported: dict[str, Imported] = {}  # classes
        self.depth = 0

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
                node.target, _calculated(node.op, self.value(_as_read(node.target)), self.value(node.value))
            )
        elif isinstance(node, ast.If):
            decided = self.value(node.test)
            if decided or not _is_plain(decided):
                self.statements(node.body)
            if not decided or not _is_plain(decided):
                self.statements(node.orelse)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.parameters(node.args)
            self.statements(node.body)
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
                elif isinstance(part, ast.ExceptHandler | ast.match_case):
                    self.statements(part.body)
                elif isinstance(part, ast.expr):
                    self.value(part)
                elif isinstance(part, ast.withitem):
                    self.value(part.context_expr)

    def parameters(self, arguments: ast.arguments) -> None:
        places = [*arguments.posonlyargs, *arguments.args]
        with_default = places[len(places) - len(arguments.defaults) :]
        pairs = [*zip(with_default, arguments.defaults, strict=True),
                 *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]  # fmt: skip
        for parameter, default in pairs:
            value = UNKNOWN if default is None else self.value(default)
            if value is not UNKNOWN and value is not None:
                self.script.values[parameter.arg] = value

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
                self.statements(part.body)

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            if isinstance(value, list | tuple) and len(value) == len(target.elts):
                for part, inner in zip(target.elts, value, strict=True):
                    self.assign(part, inner)
            elif target.elts:  # `model, tokenizer = ...from_pretrained(...)`
                self.assign(target.elts[0], value if isinstance(value, Call) else UNKNOWN)
        elif isinstance(target, ast.Name):
            if value is UNKNOWN:
                self.script.values.pop(target.id, None)
            else:
                self.script.values[target.id] = value
        elif isinstance(target, ast.Attribute):
            if value is not UNKNOWN:
                self.script.assigned[_dotted(target)] = value
        elif isinstance(target, ast.Subscript):
            owner, key = self.value(target.value), self.value(target.slice)
            if isinstance(owner, dict) and isinstance(key, str) and value is not UNKNOWN:
                owner[key] = value

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
            return self.pairs((self.value(key) if key else None, item) for key, item in
                              zip(node.keys, node.values, strict=True))  # fmt: skip
        if isinstance(node, ast.List | ast.Tuple):
            items = [self.value(item) for item in node.elts]
            return UNKNOWN if any(item is UNKNOWN for item in items) else items
        if isinstance(node, ast.BinOp):
            return _calculated(node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.BoolOp):  # `a or b`: the first that is known and true
            known = [self.value(part) for part in node.values]
            plain = all(_is_plain(part) for part in known)
            return (
                next((part for part in known if part), known[-1])
                if plain and isinstance(node.op, ast.Or)
                else UNKNOWN
            )
        if isinstance(node, ast.IfExp):
            decided = self.value(node.test)
            first, second = self.value(node.body), self.value(node.orelse)
            return UNKNOWN if not _is_plain(decided) else first if decided else second
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

    def pairs(self, items: Iterable[tuple[Any, ast.expr]]) -> dict[str, Any]:
        """Known values by their name; those without a name (`**more`) put in."""
        found: dict[str, Any] = {}
        for name, item in items:
            value = self.value(item)
            if name is None:
                found |= value if isinstance(value, dict) else {}
            elif name == "type" and (value is UNKNOWN or isinstance(value, Call | Imported)):
                found[name] = value.name if isinstance(value, Call | Imported) else _dotted(item)
            elif isinstance(name, str) and value is not UNKNOWN:
                found[name] = value
        return found

    def call(self, node: ast.Call) -> Any:
        name = _dotted(node.func)
        named = self.pairs((keyword.arg, keyword.value) for keyword in node.keywords)
        positional = tuple(self.value(part) for part in node.args)
        if name == "dict":
            return (dict(positional[0]) if positional and isinstance(positional[0], dict) else {}) | named
        if name in _CONVERSIONS and len(positional) == 1:
            return _converted(_CONVERSIONS[name], positional[0])
        if name in ("os.getenv", "getenv"):
            return _by_default(positional)
        if _BY_HARDWARE.fullmatch(name):
            return "auto"
        if name.endswith(".get") and positional:
            return self.looked_up(node, positional)
        if name.endswith(".add_argument"):
            self.argument(positional, named)
            return UNKNOWN
        receiver = self.value(node.func.value) if isinstance(node.func, ast.Attribute) else UNKNOWN
        unread = tuple(keyword.arg for keyword in node.keywords if keyword.arg and keyword.arg not in named)
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
        default = _by_default(positional)
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


def _by_default(positional: tuple[Any, ...]) -> Any:
    return positional[1] if len(positional) > 1 and positional[0] not in _LAUNCHED else UNKNOWN


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list | dict)


def _as_read(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _dotted(node: ast.expr) -> str:
    """`a.b.c` of names and their attributes; a call or an item among them is left out."""
    parts: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return ".".join(reversed(parts))
    return ".".join([node.id, *reversed(parts)])


def _calculated(kind: ast.operator, left: Any, right: Any) -> Any:
    """A sum of numbers of usual size, or texts put together."""
    operation = _OPERATORS.get(type(kind))
    texts = isinstance(left, str) and isinstance(right, str)
    numbers = all(isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= _MOST
                  for part in (left, right))  # fmt: skip
    if operation is None or not (numbers or (texts and isinstance(kind, ast.Add))):
        return UNKNOWN
    if texts and len(left) + len(right) > _LONGEST:
        return UNKNOWN
    try:
        return operation(left, right)
    except (ZeroDivisionError, OverflowError):
        return UNKNOWN


def _converted(kind: Callable[[Any], Any], value: Any) -> Any:
    if not isinstance(value, bool | int | float | str):
        return UNKNOWN
    try:
        return kind(value)
    except (ValueError, OverflowError):
        return UNKNOWN
