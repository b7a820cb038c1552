"""Progress on standard error, for a person at a terminal: of a refresh, of counted work, of steps, of a search."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

OnProgress = Callable[[str, str, str, int], None]


@contextmanager
def _drawn(
    kind: Literal["time", "count", "share"], *, quiet: bool, console: Console | None = None
) -> Iterator[Progress | None]:
    """Draw progress until the block ends, on standard error if it is a terminal; None: nobody looks."""
    if quiet or (console is None and not sys.stderr.isatty()):
        yield None
        return
    from rich import progress as parts
    from rich.console import Console as NewConsole

    text = parts.TextColumn("{task.description}")
    columns = {
        "time": (parts.SpinnerColumn(), text, parts.TimeElapsedColumn()),
        "count": (text, parts.BarColumn(), parts.MofNCompleteColumn(), parts.TimeRemainingColumn()),
        "share": (text, parts.BarColumn(), parts.TimeElapsedColumn()),
    }[kind]
    with parts.Progress(*columns, console=console or NewConsole(stderr=True), transient=True) as progress:
        yield progress


@contextmanager
def refresh_progress(
    providers: Sequence[str], *, quiet: bool = False, console: Console | None = None
) -> Iterator[OnProgress | None]:
    """Give the callback that draws progress, one line each provider; None where nobody looks.

    Args:
        providers: provider ids.
        quiet: draw nothing.
        console: where to draw; default: standard error, if it is a terminal.
    """
    with _drawn("time", quiet=quiet, console=console) as progress:
        if progress is None:
            yield None
            return
        lock = threading.Lock()
        tasks = {name: progress.add_task(f"{name:<10} waiting", total=None) for name in providers}
        rows: dict[str, int] = dict.fromkeys(providers, 0)
        regions: dict[str, set[str]] = {name: set() for name in providers}

        def tell(provider: str, region: str, api: str, more: int) -> None:
            with lock:
                rows[provider] += more
                regions[provider] |= {region} - {""}
                n_regions = f"{len(regions[provider])} regions, " if regions[provider] else ""
                text = f"{provider:<10} {n_regions}{rows[provider]} rows  {region} {api}"
            progress.update(tasks[provider], description=text.rstrip())

        yield tell


@contextmanager
def counted_progress(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """Give the callback that draws a bar from the number done and the number in all; None where nobody looks."""
    with _drawn("count", quiet=quiet) as progress:
        if progress is None:
            yield None
            return
        bar = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


@contextmanager
def step_progress(what: str, *, quiet: bool) -> Iterator[Callable[[str, float], None] | None]:
    """Give the callback that draws a bar from a step's name and the share done (0..1); None where nobody looks."""
    with _drawn("share", quiet=quiet) as progress:
        if progress is None:
            yield None
            return
        bar = progress.add_task(what, total=1.0)
        yield lambda step, share: progress.update(bar, description=f"{what}: {step}", completed=share)


@contextmanager
def text_progress(what: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Give the callback that shows what is being done and for how long; it does nothing where nobody looks."""
    with _drawn("time", quiet=quiet) as progress:
        if progress is None:
            yield lambda _text: None
            return
        task = progress.add_task(what, total=None)
        yield lambda text: progress.update(task, description=f"{what}: {text}")
