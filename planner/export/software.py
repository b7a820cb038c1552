"""What a chip needs of software: CUDA, driver and an image that has code for it (gpu_images.csv)."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import cache

from planner.bundled import bundled_rows
from planner.errors import InputError
from planner.export.view import Pool
from planner.records import record

_CUDA_OF_TAG = re.compile(r"(?:cuda[:-]?|cu)(\d+)\.?(\d+)")


@record(frozen=True)
class Software:
    """What one generation of chips needs; texts are empty where unknown.

    `platform` is that of its hosts, `architecture` the name of its machine code, `first_cuda` and `last_cuda` the
    versions that compile for it (`last_cuda` empty: all later ones), `min_driver` the oldest Linux driver for `image`.
    """

    generation: str
    vendor: str
    accelerators: str
    platform: str
    architecture: str
    first_cuda: str
    last_cuda: str
    min_driver: str
    image: str
    image_cuda: str
    basis: str
    source: str
    as_of: str

    def has_code(self, cuda: str) -> bool:
        """Whether a CUDA version compiles for the chip."""
        requested = version(cuda)
        return (not self.first_cuda or version(self.first_cuda) <= requested) and (
            not self.last_cuda or requested <= version(self.last_cuda)
        )


@cache
def load_software() -> tuple[Software, ...]:
    """Read gpu_images.csv; of several rows for a chip the first holds."""
    return tuple(Software(**row) for row in bundled_rows("gpu_images.csv"))


@cache
def load_efa() -> dict[str, tuple[int, int]]:
    """EFA interfaces and network cards of AWS instance types (efa_interfaces.csv); a type without EFA is absent."""
    return {
        row["instance_type"]: (int(row["efa_interfaces"]), int(row["network_cards"]))
        for row in bundled_rows("efa_interfaces.csv")
    }


def software_of(pool: Pool) -> Software | None:
    """Return what the chip of a pool needs; None: nothing is known of it."""
    return next(
        (
            row
            for row in load_software()
            if row.generation == pool.generation
            and any(fnmatch(pool.accelerator, pattern) for pattern in row.accelerators.split())
        ),
        None,
    )


def platform_of(pool: Pool) -> str:
    """Return the platform of a pool's hosts: arm64 where the table says so, else amd64."""
    row = software_of(pool)
    return "amd64" if row is None else row.platform


def image_for(pools: tuple[Pool, ...], asked: str = "") -> str:
    """Return the image for all pools: the one asked for, else the oldest of the table that has code for every chip.

    Args:
        pools: of a plan.
        asked: `run.image` of the workload; checked where its tag names a CUDA version.

    Raises:
        InputError: no image is known, or the one asked for has no code for a chip.
    """
    rows = tuple(dict.fromkeys(row for pool in pools if (row := software_of(pool)) is not None))
    if asked:
        _check(asked, rows)
        return asked
    missing = [pool.accelerator for pool in pools if (row := software_of(pool)) is None or not row.image]
    if missing:
        raise InputError(
            f"no image is known that has code for {missing[0]}; name one in the workload under run.image"
        )
    fitting = [row for row in rows if _runs_all(row, rows)]
    if not fitting:
        chips = ", ".join(f"{row.architecture} on {row.platform}" for row in rows)
        raise InputError(
            f"no one image has code for {chips}; plan for one kind of accelerator, or name an image under run.image"
        )
    return min(fitting, key=lambda row: version(row.image_cuda)).image


def least_driver(pools: tuple[Pool, ...]) -> str:
    """Return the newest of the oldest drivers that the pools' chips need; empty where none is known."""
    return max(
        (row.min_driver for row in map(software_of, pools) if row and row.min_driver), key=version, default=""
    )


def cuda_of(image: str) -> str:
    """Return the CUDA version that the tag of an image names, empty where it names none."""
    match = _CUDA_OF_TAG.search(image.rpartition("/")[2])
    return f"{match[1]}.{match[2]}" if match else ""


def version(text: str) -> tuple[int, ...]:
    """Return a dotted version as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _runs_all(row: Software, others: tuple[Software, ...]) -> bool:
    if any((other.vendor, other.platform) != (row.vendor, row.platform) for other in others):
        return False
    return not row.image_cuda or all(other.has_code(row.image_cuda) for other in others)


def _check(image: str, rows: tuple[Software, ...]) -> None:
    """Refuse an image that says itself that it cannot run.

    Raises:
        InputError: its CUDA version has no code for a chip.
    """
    cuda = cuda_of(image)
    for row in rows:
        if cuda and row.first_cuda and not row.has_code(cuda):
            known = f"from {row.first_cuda}" + (f" to {row.last_cuda}" if row.last_cuda else "")
            raise InputError(
                f"run.image {image!r}: CUDA {cuda} has no code for {row.architecture} ({row.generation}), which needs "
                f"CUDA {known}; take another tag, such as {row.image or 'an older release'}"
            )
