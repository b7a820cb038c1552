"""Reading what a user names, without reading more than a limit or waiting for ever.

A name may be a sparse file of terabytes, a device that never ends, a pipe that nobody writes to, or a packed file that
unpacks to a million times its size. Each is an `OSError` whose `strerror` says so, beside those of the system, so that
a reader has one place to turn into its message.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import time
import zlib
from pathlib import Path

PIPE_WAIT_S = 10.0  # for a writer of a named pipe to come
PIPE_IDLE_S = 120.0  # between two writes of one that came: `planner verify <(planner optimize ...)`
MAX_RECORD_BYTES = 256 << 20  # records, histories and traces, unpacked
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"


def read_limited(path: Path, most: int) -> bytes:
    """Read a whole file of at most `most` bytes; of a larger one never more than a byte beyond.

    Raises:
        OSError: it cannot be read, is larger, or is a pipe to which nobody writes.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb", buffering=0):
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode) and status.st_size > most:
            raise too_large(path, most)
        if stat.S_ISREG(status.st_mode):
            data = _read_regular(handle, most)
        elif stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        else:
            return _read_stream(handle, path, most)
    if len(data) > most:
        raise too_large(path, most)
    return data


def read_unpacked(path: Path, most: int) -> bytes:
    """Read a file, unpacked where it is gzip; neither the file nor what it holds may be larger than `most` bytes.

    Raises:
        OSError: as `read_limited`, or it is damaged.
    """
    data = read_limited(path, most)
    if not data.startswith(_GZIP):
        return data
    out = bytearray()
    while data:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            out += unpacker.decompress(data, most + 1 - len(out))
        except zlib.error as error:
            raise OSError(errno.EINVAL, f"damaged gzip: {error}", str(path)) from None
        if len(out) > most:
            raise OSError(errno.EFBIG, f"unpacks to more than {_size(most)}", str(path))
        if not unpacker.eof:
            raise OSError(errno.EINVAL, "damaged gzip: it ends too early", str(path))
        data = unpacker.unused_data.lstrip(b"\0")
    return bytes(out)


def read_start(path: Path, most: int) -> bytes:
    """Read the first `most` bytes of a file whose kind they tell; the rest is read by the reader of that kind.

    Raises:
        OSError: it cannot be read, or can be read once only (a pipe, a device).
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file; save it to one, for it is read twice", str(path))
        return file.read(most)


def open_text(path: Path, most: int) -> io.StringIO:
    """Open a text of UTF-8, with or without a byte order mark and plain or gzip, its line ends as they are.

    Raises:
        OSError: as `read_unpacked`.
        UnicodeDecodeError: it is no UTF-8.
    """
    return io.StringIO(read_unpacked(path, most).decode("utf-8-sig"), newline="")


def too_large(path: Path, most: int) -> OSError:
    """The error of a file above its limit."""
    return OSError(errno.EFBIG, f"larger than {_size(most)}", str(path))


def _size(most: int) -> str:
    return f"{most / 2**20:,.0f} MiB" if most >= 2**20 else f"{most / 2**10:,.0f} KiB"


def _read_regular(handle: int, most: int) -> bytes:
    parts, left = [], most + 1
    while left > 0 and (part := os.read(handle, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _read_stream(handle: int, path: Path, most: int) -> bytes:
    """Read a pipe or a device to its end, up to one byte beyond the limit, which is an error."""
    data = bytearray()
    until = time.monotonic() + PIPE_WAIT_S
    while len(data) <= most:
        try:
            part = os.read(handle, min(_CHUNK, most + 1 - len(data)))
        except BlockingIOError:  # a writer is there and thinks
            if not select.select([handle], [], [], PIPE_IDLE_S)[0]:
                raise TimeoutError(
                    errno.ETIMEDOUT, f"nothing was written to it for {PIPE_IDLE_S:g} s", str(path)
                ) from None
            continue
        if part:
            data += part
        elif data or not stat.S_ISFIFO(os.fstat(handle).st_mode):
            break
        elif time.monotonic() > until:
            raise TimeoutError(
                errno.ETIMEDOUT, f"a pipe to which nobody wrote for {PIPE_WAIT_S:g} s", str(path)
            )
        else:
            time.sleep(0.01)
    if len(data) > most:  # asked before the bytes are copied
        raise too_large(path, most)
    return bytes(data)
