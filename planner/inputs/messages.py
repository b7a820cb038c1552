"""What pydantic found, in the words of the workload: one fault per error, with a near miss if any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from planner.errors import LONGEST_VALUE, shortened
from planner.inputs.faults import MAX_SHOWN, Fault, Path, alike, near
from planner.inputs.other_words import KEYS, begins_with, key_meant, other_name, value_elsewhere, why_not_here
from planner.inputs.schema import Workload

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_UNION_TAGS = frozenset(("auto", "pinned"))
_REMEDIES: dict[Path, str] = {
    ("training", "global_batch"): "samples (sequences) per optimizer step, e.g. 256",
    ("version",): "write 'version: 1' first",
    ("name",): "a name to show on the plan",
}


def _shown(value: object) -> str:
    if isinstance(value, dict | list | tuple):
        return "a list" if not isinstance(value, dict) else "a mapping"
    text = str(value)
    if isinstance(value, bool):
        return text.lower()
    if isinstance(value, int | float):
        return text
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}...'"


_MAX_KEYS = 12  # of a section that a message lists
# likeness from which a key was meant for one of its own section, whatever other sections have
_MISSPELT = 0.85
_YAML11_BOOL = frozenset(("yes", "no", "on", "off", "y", "n"))
# By pydantic's error type; `shown` is the value as typed, the other names are pydantic's own.
_TEXTS = {
    "quantity": "{text}",
    "int_type": "must be a whole number, got {shown}",
    "int_from_float": "must be a whole number, got {shown}",
    "int_parsing_size": "is too large a number",
    "float_type": "must be a number, got {shown}",
    "finite_number": "must be a finite number, got {shown}",
    "string_type": "must be text, got {shown}: put it in quotes",
    "string_too_short": "must not be empty",
    "string_too_long": "is longer than {max_length} characters",
    "string_pattern_mismatch": "must be {form}, got {shown}",
    "too_long": "has {actual_length} items, at most {max_length} are read: split the file",
    "dict_type": "must be a mapping of keys to values, got {shown}",
    "greater_than": "must be more than {gt}, got {shown}",
    "greater_than_equal": "must be at least {ge}, got {shown}",
    "less_than": "must be less than {lt}, got {shown}",
    "less_than_equal": "must be at most {le}, got {shown}",
}
# By how a text's pattern begins: what it asks for.
_FORMS = {
    "^([+-]": "like '-12%', '+0.40' or '3.20' in quotes",
    "^v?": "a release like '0.10.1'",
    "^[A-Za-z_]": "a name of letters, digits and _ that does not begin with a digit",
    "^[^\\s": "one word without spaces",
    "^[^": "text without NUL characters",
}


def _text(kind: str, ctx: Mapping[str, Any], value: object, fallback: str) -> str:
    if kind in ("literal_error", "union_tag_invalid"):
        expected = str(ctx["expected"]).replace("'", "")
        return f"must be {'one of ' if ' or ' in expected else ''}{expected}, got {_shown(value)}"
    if kind == "bool_type":
        note = " (YAML 1.2 knows only true and false)" if str(value).lower() in _YAML11_BOOL else ""
        return f"must be true or false, got {_shown(value)}{note}"
    if kind == "tuple_type":
        return "must be a list" + ("" if isinstance(value, dict) else f": write [{shortened(str(value))}]")
    template = _TEXTS.get(kind)
    if template is None:
        return fallback[:1].lower() + fallback[1:]
    if kind == "string_type" and isinstance(value, dict | list):
        template = template.partition(": ")[0]  # quotes make no text of it
    limits = {key: f"{item:g}" if isinstance(item, float) else item for key, item in ctx.items()}
    pattern = str(ctx.get("pattern", ""))
    form = next(
        (words for start, words in _FORMS.items() if pattern.startswith(start)), "text of another form"
    )
    return template.format(shown=_shown(value), form=form, **limits)


def pydantic_faults(details: Sequence[ErrorDetails], root: type[BaseModel] = Workload) -> list[Fault]:
    """Translate pydantic's errors on a file of kind `root`; a key missing because it is misspelt is reported once."""
    details = [detail for detail in details if not _only_its_items_are_wrong(detail)]
    faults = [
        _fault(detail, root) if number < 2 * MAX_SHOWN else _bare_fault(detail)
        for number, detail in enumerate(details)
    ]
    misspelt = {(*fault.path[:-1], fault.did_you_mean) for fault in faults if fault.did_you_mean}
    absent = [(*detail["loc"],) if detail["type"] == "missing" else None for detail in details]
    return [fault for fault, path in zip(faults, absent, strict=True) if path not in misspelt]


def _bare_fault(detail: ErrorDetails) -> Fault:
    """A fault beyond those that are shown: 40,000 of them must not cost a search for a near word each."""
    return Fault((*detail["loc"],), detail["type"])


def _fault(detail: ErrorDetails, root: type[BaseModel]) -> Fault:
    path: Path = tuple(part for part in detail["loc"] if part not in _UNION_TAGS)
    kind, value, ctx = detail["type"], detail.get("input"), detail.get("ctx", {})
    if kind == "missing":
        remedy, only = _REMEDIES.get(path), _choices(path, root)
        if remedy is None and len(only) == 1:
            remedy = f"write '{path[-1]}: {only[0]}'"
        remedy = remedy or _purpose(path, root)
        text = f"'{path[-1]}' is missing" + (f": {remedy}" if remedy else "")
        return Fault(path[:-1], text, at_key=True)
    if kind == "extra_forbidden":
        return _unknown_key(path, value, root)
    if kind in ("model_type", "model_attributes_type"):
        text = f"must be a section of keys and values, got {_shown(value)}{_keys_at(path, root)}"
        said = why_not_here("", str(path[-1])) if isinstance(value, bool) and path else ""
        return Fault(path, f"{text}; {said}" if said else text + _as_section(path, value, root))
    if kind == "tuple_type" and isinstance(value, dict):
        allowed = value.get("allow")  # some constraints have `allow` and `deny`, others are lists
        is_names = isinstance(allowed, list) and all(isinstance(name, str) for name in allowed)
        if is_names and allowed and len(value) == 1:
            return Fault(path, f"must be a list: write [{', '.join(map(str, allowed))}]")
        return Fault(path, f"must be a list{_keys_at(path, root, '; keys of each item: ')}")
    text = _too_short(path, ctx, root) if kind == "too_short" else _text(kind, ctx, value, detail["msg"])
    said = value_elsewhere(path, value) if isinstance(value, str) else ""
    if kind == "string_type" and isinstance(value, dict):  # such as scope: {team: research}
        within = next((part for part in reversed(path[:-1]) if isinstance(part, str)), "")
        said = next(filter(None, (why_not_here(within, str(key)) for key in value)), "")
    if said:
        return Fault(path, f"{text}; {said}")
    hint = ""
    if kind == "literal_error" and isinstance(value, str):
        choices = _choices(path, root)
        hint = other_name(value, choices) or near(value, choices) or begins_with(value, choices)
    return Fault(path, text, hint)


def _purpose(path: Path, root: type[BaseModel]) -> str:
    """What a key is for, as the schema says, with the keys of a section; "" where it does not say."""
    section = section_at(path[:-1], root)
    field = section.model_fields.get(str(path[-1])) if section is not None else None
    said = (
        (field.description or "").replace(", ...", " and the like").rstrip(".") if field is not None else ""
    )
    first = said.split(" ", 1)[0]
    if first[1:].islower() or len(first) == 1:  # no name or abbreviation
        said = said[:1].lower() + said[1:]
    return said + _keys_at(path, root) if said.lower() != str(path[-1]) else ""


def _only_its_items_are_wrong(detail: ErrorDetails) -> bool:
    """Whether a list counts as too short only because pydantic leaves out its wrong items, told for themselves."""
    items = detail.get("input")
    if detail["type"] != "too_short" or not isinstance(items, list | tuple):
        return False
    return len(items) >= int(detail["ctx"]["min_length"])


def _too_short(path: Path, ctx: Mapping[str, Any], root: type[BaseModel]) -> str:
    """Say what a list is for that has too few items."""
    section, number = section_at(path[:-1], root), int(ctx["min_length"])
    field = section.model_fields.get(str(path[-1])) if section is not None else None
    purpose = f" ({field.description.rstrip('.')})" if field is not None and field.description else ""
    state = "is an empty list" if not ctx["actual_length"] else f"has {ctx['actual_length']} items"
    return f"{state}: give at least {number} item{'s' * (number > 1)}{purpose}"


def _unknown_key(path: Path, value: object, root: type[BaseModel]) -> Fault:
    section = section_at(path[:-1], root)
    key = str(path[-1])
    keys = tuple(section.model_fields) if section is not None else ()
    text = f"unknown key {_shown(key)}"
    top = "" if "training" in keys else None  # of a workload, not of another kind of file
    names = [
        part for part in path[:-1] if isinstance(part, str)
    ]  # an item of a list is in what the list is called
    within = names[-1] if names else top
    reason = "" if within is None else why_not_here(within, key)
    if reason and not key_meant(key, value, keys):
        return Fault(path, f"{text}: {reason}", at_key=True)
    hint = key_meant(key, value, keys) or alike(key, keys, cutoff=_MISSPELT)
    inside = homes_of(key, section) if section is not None and not hint else []
    if inside:
        return Fault(path, f"{text}: it belongs under {_either(inside)}", at_key=True)
    hint = hint or near(key, keys)
    if not hint:
        meant = KEYS.get(key.lower(), key)
        homes = homes_of(meant, root)
        if len(homes) == 1:
            text += f": it belongs under '{homes[0]}'" + ("" if meant == key else f" as {meant}")
        else:
            text += _after_comma(key) if value is None else ""
            text += _listed(keys, "; known here: ")
    return Fault(path, text, hint, at_key=True)


def _after_comma(key: str) -> str:
    """What to write where a word stands alone, as after the comma of `{budget_usd: $5,000}` or `{providers: a, b}`."""
    lead = " without a value: within { } a comma begins the next key"
    if key[:1].isdigit():
        return f"{lead}, so write numbers without commas, as in 5000 or 5_000"
    return f"{lead}, so write a list in brackets, as in [a, {key}]"


def _as_section(path: Path, value: object, root: type[BaseModel]) -> str:
    """How a section is written of which only one value was given: `{preset: llama-3-8b}`; "" where none is likely."""
    section = section_at(path, root)
    names = () if section is None else tuple(section.model_fields)
    if len(str(value)) > LONGEST_VALUE:
        return ""
    if isinstance(value, str):
        key = next((name for name in ("preset", "type", "allow") if name in names), "")
        return f"; write {{{key}: {f'[{value}]' if key == 'allow' else value}}}" if key else ""
    if isinstance(value, int | float) and "mean" in names:
        return f"; write {{mean: {value}}}"
    if isinstance(value, list) and "allow" in names and all(isinstance(item, str) for item in value):
        return f"; write {{allow: [{', '.join(value)}]}}"
    return ""


def _keys_at(path: Path, root: type[BaseModel], lead: str = "; its keys: ") -> str:
    section = section_at(path, root)
    return "" if section is None else _listed(tuple(section.model_fields), lead)


def _listed(keys: Sequence[str], lead: str) -> str:
    more = ", ..." if len(keys) > _MAX_KEYS else ""
    return f"{lead}{', '.join(keys[:_MAX_KEYS])}{more}" if keys else ""


def _either(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _choices(path: Path, root: type[BaseModel]) -> list[str]:
    """Return the texts that the field at `path` allows, or those of the list that it is an item of."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    section = section_at(path[:-1], root) if path else None
    field = section.model_fields.get(str(path[-1])) if section is not None else None
    return [] if field is None else _literals(field.annotation)


def _literals(annotation: object) -> list[str]:
    """Find the texts inside `Literal["a", "b"]`, also inside `X | None`, `tuple[X, ...]` or `Annotated[...]`."""
    if get_origin(annotation) is Literal:
        return [word for word in get_args(annotation) if isinstance(word, str)]
    return [word for part in get_args(annotation) for word in _literals(part)]


def homes_of(key: str, model: type[BaseModel]) -> list[str]:
    """The sections right below `model` that have `key`."""
    return [
        name
        for name, field in model.model_fields.items()
        if (section := _model_in(field.annotation)) is not None and key in section.model_fields
    ]


def section_at(path: Path, root: type[BaseModel] = Workload) -> type[BaseModel] | None:
    """Return the model that describes the mapping at `path` of a file of kind `root`."""
    section: type[BaseModel] | None = root
    for part in path:
        if section is None:
            return None
        if isinstance(part, int):
            continue
        field = section.model_fields.get(part)
        section = _model_in(field.annotation) if field is not None else None
    return section


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Find the model inside `X | None`, `tuple[X, ...]` or `Annotated[...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        model = _model_in(part)
        if model is not None:
            return model
    return None
