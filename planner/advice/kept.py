"""What advice solved before, kept beside the compiled catalog: a launcher asks every few minutes about one job.

Two things take nearly all the time of an answer and change seldom: the hazards of the zones and the policy solved for
them. Both follow from the plan, the user's records, the zones and the price to half a percent of on-demand; not from
how far the job is. A copy only saves time (docs/adr/0004): its key is a hash over everything that it follows from, the
code and data among it, and one that cannot be read or written is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalogs.cache.arrays import packed, unpacked
from catalogs.cache.copies import cache_directory, open_copy, write_copy
from planner.version import __version__

if TYPE_CHECKING:
    import numpy.typing as npt

    Arrays = Mapping[str, npt.NDArray[Any]]

MOST_COPIES = 16  # a policy of several zones takes some MB
_MOST_BYTES = 256 << 20
_PACKAGE = Path(__file__).parents[1]
_RULES = (
    "advice/hazards.py",
    "advice/kept.py",
    "data/assumptions.csv",
    "data/spot/*.csv",
    "spot/*.py",
    "spot/policy/*.py",
)


@cache
def _rules() -> bytes:
    """Hash of the code and data that decide what is solved."""
    digest = hashlib.sha256(__version__.encode())
    for pattern in _RULES:
        for path in sorted(_PACKAGE.glob(pattern)):
            with contextlib.suppress(OSError):
                digest.update(b"\0" + path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


def _path(kind: str, key: object, suffix: str) -> Path:
    digest = hashlib.sha256(_rules() + kind.encode() + b"\0" + repr(key).encode()).hexdigest()
    return cache_directory() / f"spot-{kind}-{digest[:40]}.{suffix}"


def kept_arrays(key: object, solve: Callable[[], Arrays]) -> Arrays:
    """Arrays solved before for the same key, else solved now and kept.

    Args:
        key: everything that they follow from beside code and data; its `repr` must tell keys apart.
        solve: works them out.
    """
    path = _path("policy", key, "bin")
    # A copy may be damaged in any way; every failure to read it means only that it is not used.
    with contextlib.suppress(Exception), open_copy(path) as file:
        return dict(zip(*unpacked(file.read(_MOST_BYTES), path.name), strict=True))
    arrays = solve()
    data = packed(path.name, list(arrays), list(arrays.values()))
    write_copy(path, lambda file: file.write(data), pattern="spot-policy-*.bin", most=MOST_COPIES)
    with contextlib.suppress(OSError):
        for former in cache_directory().glob("spot-policy-*.npz"):  # as versions before 0.3 wrote them
            former.unlink(missing_ok=True)
    return arrays


def kept_values(key: object, solve: Callable[[], Any]) -> Any:
    """The same for plain values of JSON; both ways they have passed through JSON once."""
    path = _path("hazards", key, "json")
    # as above: a copy that cannot be read is not used
    with contextlib.suppress(Exception), open_copy(path) as file:
        return _checked(json.loads(file.read()))
    text = json.dumps(solve())
    stored = json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest(), "text": text})
    write_copy(
        path, lambda file: file.write(stored.encode()), pattern="spot-hazards-*.json", most=MOST_COPIES
    )
    return json.loads(text)


def _checked(stored: Mapping[str, str]) -> Any:
    """The values of a copy.

    Raises:
        ValueError: the text is not what was written.
    """
    if hashlib.sha256(stored["text"].encode()).hexdigest() != stored["sha256"]:
        raise ValueError("damaged")
    return json.loads(stored["text"])
