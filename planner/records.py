"""Dataclasses that cost little to define: the methods are shared by all of them instead of generated for each.

`dataclasses.dataclass` writes and compiles the source of six methods per class, 0.4 ms each time the program starts;
the engine has over a hundred such classes. `record` gives the same fields, defaults, `replace`, `fields`, equality,
hash, text and frozen attributes from methods that look at the fields when they run. Making an instance takes a few
microseconds more, so it is for classes with few instances. Type checkers see a plain `dataclass`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
    from operator import attrgetter

    @dataclass(init=False, repr=False, eq=False)
    class _Pattern:
        """A class without generated methods and its field, as `dataclass` marks them."""

        member: int

    _KIND = _Pattern.__dataclass_fields__["member"]._field_type
    _NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")

    def record(cls: Any = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
        """Make `cls` a dataclass; the two options are those of `dataclasses.dataclass`."""
        if cls is None:
            return lambda given: record(given, frozen=frozen, eq=eq)
        methods = {"__init__": _init, "__repr__": _repr}
        if eq:
            methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        added = {name: method for name, method in methods.items() if name not in vars(cls)}
        # without a docstring `dataclass` writes the signature into it, which takes a third of its time
        cls.__doc__ = cls.__doc__ or cls.__name__
        new_type = _with_fields(cls) if _is_plain(cls) else dataclass(init=False, repr=False, eq=False)(cls)
        for name, method in added.items():
            setattr(new_type, name, method)
        new_type.__record_defaults__ = _defaults(new_type)
        items = new_type.__dataclass_fields__.items()
        new_type.__record_compared__ = _getter(tuple(name for name, item in items if item.compare))
        return new_type

    def _is_plain(cls: Any) -> bool:
        """Whether every annotation is the text of a field, and none of them is by keyword alone."""
        kinds, given = cls.__annotations__, vars(cls)
        if not all(type(kind) is str for kind in kinds.values()):
            return False
        text = "\n".join(kinds.values())  # all at once
        if any(other in text for other in _NO_FIELDS):
            return False
        defaults = (given[name] for name in kinds if name in given)
        return not any(isinstance(one, Field) and one.kw_only is True for one in defaults)

    def _with_fields(cls: Any) -> Any:
        """What `dataclass` does for such a class, without asking of every annotation what it may mean (0.5 ms)."""
        fields_by_name = {}
        for base in reversed(cls.__mro__[1:]):
            fields_by_name |= getattr(base, "__dataclass_fields__", {})
        for name, kind in cls.__annotations__.items():
            default = getattr(cls, name, MISSING)
            item = default if isinstance(default, Field) else field(default=default)
            if type(item.default).__hash__ is None:
                raise ValueError(f"mutable default of field {name}: use default_factory")
            item.name, item.type, item.kw_only, item._field_type = name, kind, False, _KIND
            fields_by_name[name] = item
            if default is item:  # the class shows the default itself
                if item.default is MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, item.default)
        cls.__dataclass_fields__, cls.__dataclass_params__ = fields_by_name, _Pattern.__dataclass_params__
        if "__match_args__" not in vars(cls):
            cls.__match_args__ = tuple(
                name for name, item in fields_by_name.items() if item.init and not item.kw_only
            )
        return cls

    def _defaults(cls: Any) -> dict[str, tuple[Any, bool]]:
        """Per field in order: its default, its factory (true second part), or nothing."""
        out = {}
        for name, record_field in cls.__dataclass_fields__.items():
            is_factory = record_field.default_factory is not MISSING
            out[name] = (record_field.default_factory if is_factory else record_field.default, is_factory)
        return out

    def _init(self: Any, /, *args: Any, **given: Any) -> None:
        defaults = self.__record_defaults__
        if not args and given.keys() == defaults.keys():  # the usual call
            self.__dict__.update(given)
            return
        if not given and len(args) == len(defaults):
            self.__dict__.update(zip(defaults, args, strict=True))
            return
        values = dict(zip(defaults, args, strict=False))
        if len(args) > len(defaults) or not given.keys() <= defaults.keys() - values.keys():
            wrong = [name for name in given if name not in defaults or name in values]
            what = (
                f"unexpected or repeated {', '.join(wrong)}" if wrong else f"{len(args)} positional arguments"
            )
            raise TypeError(f"{type(self).__name__}: {what}; the fields are {', '.join(defaults)}")
        values |= given
        if len(values) < len(defaults):
            for name, (default, is_factory) in defaults.items():
                if name not in values and default is not MISSING:
                    values[name] = default() if is_factory else default
            missing = [name for name in defaults if name not in values]
            if missing:
                raise TypeError(f"{type(self).__name__}: missing {', '.join(missing)}")
        self.__dict__.update(values)

    def _repr(self: Any) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__record_defaults__)
        return f"{type(self).__qualname__}({inner})"

    def _getter(names: tuple[str, ...]) -> Any:
        """What gives the values of these fields, one after another."""
        return (
            attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, one) for one in names)
        )

    def _values(self: Any) -> Any:
        return type(self).__record_compared__(self)

    def _eq(self: Any, other: object) -> bool:
        return _values(self) == _values(other) if type(other) is type(self) else NotImplemented

    def _hash(self: Any) -> int:
        return hash(_values(self))

    def _refuse(_self: Any, name: str, _value: Any = None) -> NoReturn:
        raise FrozenInstanceError(f"cannot change field {name!r}")


__all__ = ["record"]
