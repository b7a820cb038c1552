"""Limits of one call: its time in all, the size of its answer, and what a server may ask to wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import requests

Result = TypeVar("Result")
CHUNK_BYTES = 1 << 16
# Packed answers that grow by more than this are no price list (1.5 GB of bulk CSV packs 1:20).
MAX_GROWTH = 200
_GROWTH_FROM_BYTES = 10 << 20
# A file may be this much larger than an answer that is held in memory.
STREAM_FACTOR = 32


class CallTimedOut(Exception):  # noqa: N818 - a kind of answer more than an error
    """A call that had not its whole answer in time."""


class TooLarge(Exception):  # noqa: N818 - as above
    """An answer above the limit; its text says which."""


class _Call(threading.Thread, Generic[Result]):
    """One call in a thread of its own, which nobody waits for when the caller gave up."""

    def __init__(self, do: Callable[[], Result], discard: Callable[[Result], None]) -> None:
        super().__init__(daemon=True, name="fetch")
        self._do = do
        self._discard = discard
        self._lock = threading.Lock()
        self._is_over = self._is_given_up = False
        self.result: Result | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            result = self._do()
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            with self._lock:
                self._is_over, self.error = True, error
            return
        with self._lock:
            self._is_over, self.result = True, result
            is_late = self._is_given_up
        if is_late:
            self._discard(result)

    def give_up(self) -> bool:
        """Leave the call to itself; False where it is over meanwhile."""
        with self._lock:
            self._is_given_up = not self._is_over
            return self._is_given_up


def within(
    seconds: float, do: Callable[[], Result], discard: Callable[[Result], None] = lambda _: None
) -> Result:
    """Return what `do` returns, or give up: time-outs of sockets do not end a server that sends a byte per second.

    Args:
        seconds: longest time of the call.
        do: the call.
        discard: given a result that came too late, such as an answer to close.

    Raises:
        CallTimedOut: when it takes longer than `seconds`.
    """
    call = _Call(do, discard)
    call.start()
    call.join(max(seconds, 0.0))
    if call.is_alive() and call.give_up():
        raise CallTimedOut(f"no whole answer in time ({seconds:g} s)")
    if call.error is not None:
        raise call.error
    return call.result  # type: ignore[return-value]


def chunks_of(response: requests.Response, max_bytes: int) -> Iterator[bytes]:
    """The decompressed body in chunks; ends an answer that is too large or packed too well.

    Raises:
        TooLarge: when a limit is passed.
    """
    n_bytes = 0
    for chunk in _content(response):
        n_bytes += len(chunk)
        if n_bytes > max_bytes:
            raise TooLarge(f"more than {max_bytes:,} bytes (--max-bytes)")
        received = response.raw.tell()
        if n_bytes > _GROWTH_FROM_BYTES and n_bytes > MAX_GROWTH * max(received, 1):
            raise TooLarge(f"{received:,} bytes that unpack to more than {MAX_GROWTH} times as much")
        yield chunk


def _content(response: requests.Response) -> Iterator[bytes]:
    import requests

    try:
        yield from response.iter_content(CHUNK_BYTES)
    except ValueError as error:  # a chunk of a negative size: urllib3 takes it for a size to read
        raise requests.exceptions.ChunkedEncodingError(str(error)) from None


def retry_after_s(text: str | None) -> float | None:
    """Seconds that a `Retry-After` asks for: a number or a date; None for anything else.

    >>> retry_after_s("7"), retry_after_s("soon"), retry_after_s("-1"), retry_after_s(None)
    (7.0, None, None, None)
    """
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except (TypeError, ValueError, IndexError, OverflowError):
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        seconds = max(0.0, (date - datetime.now(UTC)).total_seconds())
    return seconds if 0 <= seconds < float("inf") else None
