"""`--max-bytes` for answers that come through a cloud's SDK: the body is counted where the SDK reads it.

The SDKs read whole bodies from urllib3, all but AWS's by way of requests. Their clients get a transport whose bodies
end at the limit; no library is changed for anybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from catalogs.providers.base import SchemaChanged
from catalogs.providers.limits import CHUNK_BYTES, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import requests


class CappedBody:
    """An answer of urllib3 whose unpacked body ends with `TooLarge` at the limit; all else is the answer's own."""

    def __init__(self, raw: Any, max_bytes: int) -> None:
        """Count from here on.

        Args:
            raw: the answer, not read yet.
            max_bytes: longest body.
        """
        self._raw, self._most, self._done = raw, max_bytes, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, amt: int = CHUNK_BYTES, decode_content: bool | None = None) -> Iterator[bytes]:
        """The body in parts."""
        for part in self._raw.stream(min(amt, CHUNK_BYTES), decode_content=decode_content):
            yield self._counted(part)

    def read(
        self, amt: int | None = None, decode_content: bool | None = None, cache_content: bool = False
    ) -> bytes:
        """The body, or its next `amt` bytes."""
        if amt is None:
            return b"".join(self.stream(decode_content=decode_content))
        return self._counted(self._raw.read(amt, decode_content=decode_content, cache_content=cache_content))

    def _counted(self, part: bytes) -> bytes:
        self._done += len(part)
        if self._done > self._most:
            self._raw.close()
            raise TooLarge(f"more than {self._most:,} bytes (--max-bytes)")
        return part


def capped_adapter(max_bytes: int, note: Callable[[int], None] | None = None) -> Any:
    """Adapter of requests with the limit, to be mounted on a session; `note` hears the status of each answer."""
    from requests.adapters import HTTPAdapter

    class Capped(HTTPAdapter):
        def send(self, *args: Any, **settings: Any) -> requests.Response:
            answer = super().send(*args, **settings)
            answer.raw = CappedBody(answer.raw, max_bytes)
            if note is not None:
                note(answer.status_code)
            return answer

    return Capped()


def capped_session(max_bytes: int) -> requests.Session:
    """A session of requests with the limit."""
    import requests

    session = requests.Session()
    cap_session(session, max_bytes)
    return session


def cap_session(session: requests.Session, max_bytes: int, note: Callable[[int], None] | None = None) -> None:
    """Put the limit on a session of an SDK; `note` hears the status of each answer."""
    for scheme in ("https://", "http://"):
        session.mount(scheme, capped_adapter(max_bytes, note))


def cap_botocore(client: Any, max_bytes: int) -> None:
    """Limit a boto3 client: its session opens connections of the classes in its table."""
    session = client._endpoint.http_session  # the SDK names no public way to its transport
    classes = {
        scheme: _capped_pool(kind, max_bytes) for scheme, kind in session._pool_classes_by_scheme.items()
    }
    session._pool_classes_by_scheme = session._manager.pool_classes_by_scheme = classes


def _capped_pool(kind: Any, max_bytes: int) -> Any:
    class Capped(kind):  # type: ignore[misc]
        def urlopen(self, *args: Any, **settings: Any) -> Any:
            return CappedBody(super().urlopen(*args, **settings), max_bytes)

    return Capped


def too_large(error: BaseException, place: dict[str, str]) -> SchemaChanged | None:
    """Our error for an answer above the limit, however the SDK wraps it; None for any other."""
    cause = getattr(error, "inner_exception", None) or error  # set by the SDK of Alibaba Cloud
    inner = getattr(cause, "kwargs", {}).get("error", cause)  # set by botocore
    if not isinstance(inner, TooLarge):
        return None
    return SchemaChanged(f"the answer is refused: {inner}", where="body", **place)
