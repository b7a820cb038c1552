"""The backends by name. Adding one: a file here, a line in `_BACKENDS`, a row in the conformance suite."""

from __future__ import annotations

import importlib

from solvers.backends.base import Backend
from solvers.problem.errors import BackendError

DEFAULT = "scipy"
# name: "module:class", in order of preference for `auto` (fastest import first).
_BACKENDS = {
    "highspy": "solvers.backends.highs:HighsBackend",
    "scipy": "solvers.backends.scipy_milp:ScipyBackend",
}


def names() -> tuple[str, ...]:
    """Return the names of all known backends, installed or not."""
    return tuple(_BACKENDS)


def get_backend(name: str = DEFAULT) -> Backend:
    """Return the backend called `name`; `auto` takes the first one installed.

    Raises:
        BackendError: unknown name, or not installed; says what to do.
    """
    if name == "auto":
        return next(backend for backend in map(_load, _BACKENDS) if backend.is_available())
    if name not in _BACKENDS:
        raise BackendError(f"unknown solver {name!r}; known: {', '.join(_BACKENDS)}, auto")
    backend = _load(name)
    if not backend.is_available():
        raise BackendError(
            f"solver {name!r} is not installed; install it with `pip install {name}` or use `scipy`"
        )
    return backend


def _load(name: str) -> Backend:
    module, _, attribute = _BACKENDS[name].partition(":")
    backend: Backend = getattr(importlib.import_module(module), attribute)()
    return backend
