"""Arguments of a command line inside a shell script, without running it.

Understood: continued lines, quotes, comments, assignments (`X=8`, `X=${X:-8}`, arrays, arithmetic of known numbers),
references to them, and branches (`if`, `case`) that such values decide. A reference to what the script does not set is
left out and named.
"""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.errors import InputError
from planner.trainer_files.branches import UNSET, Branches
from planner.trainer_files.slurm import slurm_variables

MAX_WORDS = 20_000
_MOST_EXPANSION = 100_000
_DEPTH = 8
_MOST_POWER = 64  # base and exponent: `2 ** 22` tokens
_END = "--"  # behind the words of a command: what follows is no value of its last argument
_ASSIGNMENT = re.compile(
    r"(?:export\s+|local\s+|readonly\s+|declare\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL
)
_REFERENCE = re.compile(
    r"\$\{([A-Za-z_]\w*|[0-9])(?:\[[@*0-9]+\])?(?::?([-=+?])([^{}]*))?\}|\$([A-Za-z_]\w*|[0-9])"
)
_ARITHMETIC = re.compile(r"\$\(\(([^()]*(?:\([^()]*\)[^()]*)*)\)\)")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_SPACED_SUM = re.compile(r"\$\(\([\w\s$*/%+{}()-]*?\)\)")
_SUM = re.compile(r"\$\(\s*expr\s+([^()]*)\)|`\s*expr\s+([^`]*)`")
# all elements of an array, each of which is a word: `"${ARGUMENTS[@]}"`
_ELEMENTS = re.compile(r'"(\$\{[A-Za-z_]\w*\[@\]\})"')
_COMMAND = re.compile(r"\$\((?!\()[^()]*\)|`[^`]*`")
# assignments before a command, that hold for it alone: `A=1 B=2 program --name value`
_FOR_COMMAND = re.compile(
    r"(?:[A-Za-z_]\w*+=(?:'[^']*'|\"[^\"]*\"|[^\s'\"()`$]|\$\w++|\$\{[^{}]*\})*+\s+)+(?=[A-Za-z_./$][^=\s]*(?:\s|$))"
)
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?=([^{}]*)\}")
_ENVIRONMENT = re.compile(r"([A-Za-z_]\w*)=(\S*)")
# variables that tell launchers which processes to start, as the arguments of others
VISIBLE = "visible_devices"
SLURM_GPUS, SLURM_NODES = "slurm_gpus_on_node", "slurm_nnodes"
LAUNCHED = ("nproc_per_node", "nnodes", VISIBLE, SLURM_GPUS, SLURM_NODES)
_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
_LAUNCHERS = {"NPROC_PER_NODE": "nproc_per_node", "NNODES": "nnodes"}
# an override of Hydra: `model.hidden_size=4096`
_OVERRIDE = re.compile(r"\+*([A-Za-z_]\w*(?:\.\w+)+)=(.*)", re.DOTALL)
# one without dots counts behind the file that it overrides: `train.py base.yml steps=10`
_PLAIN_OVERRIDE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
CONFIGURATION = "config_file"
# a choice of a group of Hydra's, without dots beside overrides with them: `engine=megatron`
_CHOICE = re.compile(r"\+*([a-z]\w*)=([a-z]\w*)")
CHOICES = "choices"
# the file whose values overrides change: `config=examples/config.yaml`
_BASE = re.compile(r"config=(\S+\.ya?ml)")
BASES = "defaults"
# commands of tools, whose first word names what they do: `megatron sft`
_TOOLS = ("trl", "swift", "megatron", "litgpt", "tune")
# a module with the packages that it is in
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[a-z_]\w*){2,}")
# a name with its value behind a space, in one word; behind an equals sign a space is part of the value
_SPACED = re.compile(r"--[\w.-]+\s")
# arguments that name places, which change neither speed nor memory
_PLACES = re.compile(
    r"path|file|save|load|dir|addr|port|node_rank|local_rank|prefix|blend|name|tensorboard|wandb|tokenizer|cache"
)
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip


class _EndlessError(Exception):
    """Variables refer to each other so that their text grows without bound."""


def parse_arguments(text: str, name: str) -> tuple[dict[str, Any], list[str]]:
    """Read the `--name value` arguments of a script.

    Args:
        text: the script, or bare arguments.
        name: what messages call it.

    Returns:
        Values by name (dashes as underscores; True without a value; a list for several) and remarks. Of an argument
        given twice the last counts, as for a command.
    """
    try:
        words, doubtful = _words(text, name)
    except _EndlessError:
        raise InputError(f"{name}: its variables grow without bound: write the arguments out") from None
    arguments, dropped = _arguments(_spelled_out([part for word in words for part in _parts(word)]))
    unread = sorted(name for name in dropped if name not in arguments and not _PLACES.search(name))
    written = [name if "." in name else f"--{name.replace('_', '-')}" for name in unread]
    remarks = [f"{name} is not read: the file does not set its value" for name in written]
    remarks += [
        f"{name} depends on a condition that the file does not decide: its last form is read"
        for name in sorted(doubtful)
    ]
    return arguments, remarks


def programs_of(text: str, name: str) -> tuple[str, ...]:
    """Names of the Python programs that a script starts, without folder and ending, such as `pretrain_gpt`.

    Of a module that is started by its path (`-m package.cli.train`) it is the last part; of a tool's command
    (`swift pt`) the tool and its first word.
    """
    words, _ = _words(text, name)
    parts = [part for word in words for part in _parts(word)]
    programs: list[str] = []
    for part, behind in zip(parts, [*parts[1:], _END], strict=False):
        if part in _TOOLS and behind.isidentifier():
            programs += [part, behind]
        elif part.endswith(".py") or _MODULE.fullmatch(part):
            programs.append(part.rsplit("/", 1)[-1][:-3] if part.endswith(".py") else part.rsplit(".", 1)[-1])
    return tuple(dict.fromkeys(programs))


def _words(text: str, name: str, *, branching: bool = True) -> tuple[list[str], set[str]]:
    """Words of the commands, variables put in, and the variables whose value is doubtful."""
    variables = slurm_variables(text)
    words = _launched(variables)
    branches = Branches(variables, lambda part: _expand(part, variables))
    for line in (
        part for whole in _lines(text) for part in (branches.lines(whole) if branching else [whole])
    ):
        line = _SPACED_SUM.sub(lambda sum_: re.sub(r"\s", "", sum_[0]), _ELEMENTS.sub(r"\1", line))
        before = _FOR_COMMAND.match(line)
        if before is not None:
            words += _launcher(dict(_ENVIRONMENT.findall(before[0])), variables)
            line = line[before.end() :]
        if line.startswith(": "):  # `: ${X:=8}` sets what is not set
            for name_of, value in _DEFAULT.findall(line):
                if name_of not in variables:
                    branches.assign(name_of, _expand(_assigned(value), variables))
            continue
        match = _ASSIGNMENT.fullmatch(line)
        if match is not None and not line.startswith("-"):
            value = _expand(_assigned(match[3]), variables)
            joined = f"{variables.get(match[1], '')} {value}".strip() if match[2] else value
            branches.assign(match[1], joined)
            continue
        if "--" in line or "$" in line or "=" in line:
            words += [*_split(_expand(line, variables), name), _END]
        if len(words) > MAX_WORDS:
            raise InputError(f"{name}: holds more than {MAX_WORDS:,} words: name the script of one run")
    if branches.open:  # what looked like a branch was none: a text, or another language's
        return _words(text, name, branching=False)
    if not any(
        (word.startswith("--") and word != _END) or _OVERRIDE.fullmatch(word) or _is_overridden(words, at)
        for at, word in enumerate(words)
    ):  # the variables are put together elsewhere
        words = [word for value in variables.values() for word in _split(_expand(value, variables), name)]
    return [*_launcher(variables, variables), *words], branches.doubtful


def _is_overridden(words: list[str], at: int) -> bool:
    """Whether the word is an override right behind the file that it overrides."""
    return at > 0 and words[at - 1].endswith((".yml", ".yaml")) and bool(_PLAIN_OVERRIDE.fullmatch(words[at]))


def _launcher(environment: Mapping[str, str], variables: Mapping[str, str]) -> list[str]:
    """The variables that tell launchers which processes to start, as arguments."""
    values = {key: _expand(_assigned(value), variables) for key, value in environment.items()
              if key in (_VISIBLE_DEVICES, *_LAUNCHERS)}  # fmt: skip
    counts = {argument: values.get(key, "") for key, argument in _LAUNCHERS.items()}
    if re.fullmatch(r"\d+(,\d+)*", listed := values.get(_VISIBLE_DEVICES, "")):
        counts[VISIBLE] = str(listed.count(",") + 1)
    return [
        word
        for argument, count in counts.items()
        if count.isdecimal()
        for word in (f"--{argument}", count, _END)
    ]


def _launched(variables: Mapping[str, str]) -> list[str]:
    """The nodes and accelerators that Slurm gives a script, as arguments."""
    chips = variables.get("SLURM_GPUS_ON_NODE")
    if chips is None:
        return []
    nodes = variables.get("SLURM_NNODES", "1")
    return [f"--{SLURM_GPUS}", chips, _END, f"--{SLURM_NODES}", nodes, _END]


def _lines(text: str) -> Iterator[str]:
    """Commands: continued lines joined, arrays in brackets on one line, comments dropped."""
    # a comment ends with its line, also where that ends with a backslash
    bare = "\n".join([*(re.sub(r"(^|\s)#.*$", r"\1", line) for line in text.splitlines()), ""])
    joined = re.sub(r"\\[ \t]*\n", " ", bare)
    pending = ""
    for raw in joined.splitlines():
        line = raw.strip()
        if not line:
            continue
        pending = f"{pending} {line}".strip()
        opened = _ASSIGNMENT.fullmatch(pending)
        body = opened[3] if opened is not None else ""
        if body.startswith("(") and not _closes(body):
            continue
        if body[:1] in ("'", '"') and (len(body) == 1 or body.count(body[0]) % 2):
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _closes(array: str) -> bool:
    """Whether an array's bracket is closed, whatever sums are in it: `(--ffn $((4 * H))` goes on."""
    bare = _QUOTED.sub("", array)
    return array.rstrip().endswith(")") and bare.count("(") <= bare.count(")")


def _assigned(value: str) -> str:
    value = value.strip().rstrip(";").strip()
    if value.startswith("(") and value.endswith(")"):
        return value[1:-1].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1].strip()
    return value


def _expand(text: str, variables: Mapping[str, str]) -> str:
    """Put in the values of variables; what is not known becomes a mark that no value has."""

    def value_of(match: re.Match[str]) -> str:
        name, kind, default = match[1] or match[4], match[2], match[3]
        if name in variables and kind != "+":
            return variables[name]
        if kind in ("-", "="):
            return _assigned(default or "")
        if kind == "+":
            return default or "" if name in variables else ""
        # all words of an array that another file sets are no value
        return _END if "[@]" in match[0] or "[*]" in match[0] else UNSET

    for _ in range(_DEPTH):
        before = text
        text = _SUM.sub(lambda match: f"$(({(match[1] or match[2]).replace(chr(92), '')}))", text)
        text = _COMMAND.sub(UNSET, text)  # what a command would print is not known without running it
        text = _ARITHMETIC.sub(lambda match: _calculated(_REFERENCE.sub(value_of, match[1]), variables), text)
        text = _REFERENCE.sub(value_of, text)
        if len(text) > _MOST_EXPANSION:
            raise _EndlessError
        if text == before:
            break
    return text


def _calculated(expression: str, variables: Mapping[str, str]) -> str:
    names = re.sub(r"[A-Za-z_]\w*", lambda match: variables.get(match[0], match[0]), expression)
    try:
        return str(_number(ast.parse(names.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return UNSET


def _number(node: ast.expr) -> int:
    """Value of whole numbers under + - * / % and small powers; nothing else is evaluated."""
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 10**12:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _number(node.left), _number(node.right)
        if isinstance(node.op, ast.Pow) and not (0 <= right <= _MOST_POWER and abs(left) <= _MOST_POWER):
            raise ValueError("a power without bound")
        return int(_OPERATORS[type(node.op)](left, right))
    raise ValueError("not a sum of whole numbers")


def _split(line: str, name: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        try:
            return shlex.split(line.replace("'", " ").replace('"', " "))
        except ValueError as error:
            raise InputError(f"{name}: cannot split the arguments: {error}") from None


def _parts(word: str) -> list[str]:
    """The arguments inside one quoted word, as `sh -c "..."` and lists of `"--name value"` have them."""
    inside = " --" in word or bool(_SPACED.match(word))
    return word.split() if inside else [word]


def _spelled_out(words: list[str]) -> list[str]:
    """Short names that count (`-b 64`: the batch of timm and torchvision), timm's launcher and LitGPT's model.

    All become arguments: the model stands behind LitGPT's command (`litgpt finetune_lora MODEL --devices 2`).
    """
    out: list[str] = []
    for before, word, behind in zip(
        ["", *words], words, [*words[1:], _END], strict=False
    ):  # no words: nothing
        if before == "litgpt" and not behind.startswith("-"):
            out += [word, "--model_name" if word == "pretrain" else "--checkpoint_dir"]
            continue
        if word == "-b" and behind.isdecimal():
            word = "--batch-size"
        elif word.endswith("distributed_train.sh") and behind.isdecimal():
            out += ["--nproc_per_node", behind, _END]
        out.append(word)
    return out


def _arguments(words: list[str]) -> tuple[dict[str, Any], set[str]]:
    """Values by name, and the names of those whose value is not known."""
    arguments: dict[str, Any] = {}
    dropped: set[str] = set()
    name, overridden = "", ""
    values: list[str] = []
    composed = any(_OVERRIDE.fullmatch(word) for word in words)
    for before, word in zip(["", *words], [*words, _END], strict=True):
        override = _OVERRIDE.fullmatch(word) or (_PLAIN_OVERRIDE.fullmatch(word) if overridden else None)
        if word.startswith("--"):
            overridden = ""
        elif ("tune" in words and name == "config") or (  # with or without an ending
            word.endswith((".yml", ".yaml")) and not (name and not values)  # and no argument's value
        ):
            overridden = word
        if before.endswith(".py") and word.endswith((".yml", ".yaml")):
            arguments.setdefault("config", word)
        if override is not None and "." not in override[1] and overridden:
            arguments.setdefault(CONFIGURATION, overridden.rpartition("/")[2])
        if override is not None:
            value = override[2].rpartition("/")[2] if UNSET in override[2] else override[2]
            if UNSET in value:
                dropped.add(override[1])
            else:  # of a path the last part may be known
                _put(arguments, override[1], value)
            continue
        base = _BASE.fullmatch(word) if composed else None
        if base is not None:
            arguments[BASES] = [base[1]]
            continue
        choice = _CHOICE.fullmatch(word) if composed else None
        if choice is not None:
            _put(arguments, f"{CHOICES}.{choice[1]}", choice[2])
            continue
        if not word.startswith("--"):
            values.append(word)
            continue
        if name and UNSET in "".join(values[:1]):
            dropped.add(name)
        elif name:
            _put(arguments, name, True if not values else values[0] if len(values) == 1 else values)
        name, _, value = word[2:].partition("=")
        name = name.replace("-", "_")
        values = [value] if value else []
    return arguments, dropped


def _put(arguments: dict[str, Any], name: str, value: Any) -> None:
    """Set a value; a name with dots is a path."""
    *sections, last = name.split(".")
    for section in sections[:_DEPTH]:
        inner = arguments.setdefault(section, {})
        if not isinstance(inner, dict):
            return
        arguments = inner
    arguments[last] = value
