"""Dataclasses that cost little to define: the methods are shared by all of them instead of generated for each.

`dataclasses.dataclass` writes and compiles the source of six methods per class, 0.4 ms each time the program starts;
the engine has over sixty such classes. `record` gives the same fields, defaults, `replace`, `fields`, equality,
hash, text and frozen attributes from methods that look at the fields when they run. Making an instance takes a few
microseconds more, so it is for classes with few instances. Type checkers see a plain `dataclass`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import MISSING, FrozenInstanceError, dataclass

    def record(cls: Any = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
        """Make `cls` a dataclass; the two options are those of `dataclasses.dataclass`."""
        if cls is None:
            return lambda made: record(made, frozen=frozen, eq=eq)
        methods = {"__init__": _init, "__repr__": _repr}
        if eq:
            methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        own = {name: method for name, method in methods.items() if name not in vars(cls)}
        # without a text of its own `dataclass` would write the signature into it, a third of its time
        cls.__doc__ = cls.__doc__ or cls.__name__
        # `dataclass` collects the fields and leaves out every method it would have to write
        made = dataclass(init=False, repr=False, eq=False)(cls)
        for name, method in own.items():
            setattr(made, name, method)
        made.__record_defaults__ = _defaults(made)
        return made

    def _defaults(cls: Any) -> dict[str, tuple[Any, bool]]:
        """Per field in order: its default, its factory (true second part), or nothing."""
        out = {}
        for name, field in cls.__dataclass_fields__.items():
            made = field.default_factory is not MISSING
            out[name] = (field.default_factory if made else field.default, made)
        return out

    def _init(self: Any, /, *args: Any, **given: Any) -> None:
        defaults = self.__record_defaults__
        if not args and given.keys() == defaults.keys():  # the usual call
            self.__dict__.update(given)
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
            for name, (default, made) in defaults.items():
                if name not in values and default is not MISSING:
                    values[name] = default() if made else default
            missing = [name for name in defaults if name not in values]
            if missing:
                raise TypeError(f"{type(self).__name__}: missing {', '.join(missing)}")
        self.__dict__.update(values)

    def _repr(self: Any) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__record_defaults__)
        return f"{type(self).__qualname__}({inner})"

    def _values(self: Any) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__record_defaults__)

    def _eq(self: Any, other: object) -> bool:
        return _values(self) == _values(other) if type(other) is type(self) else NotImplemented

    def _hash(self: Any) -> int:
        return hash(_values(self))

    def _refuse(_self: Any, name: str, _value: Any = None) -> NoReturn:
        raise FrozenInstanceError(f"cannot change field {name!r}")


__all__ = ["record"]
