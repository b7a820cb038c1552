"""One HTTP client for public lists: retries, time-outs, an ETag cache, streaming; faults become ProviderErrors.

SDKs bring their own transport; this is for plain interfaces (Azure Retail Prices, AWS price list files, Cloud
Billing). Nothing here logs or stores a header, and a URL is shown without its query: either may hold a secret.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from catalogs.providers.base import (
    CredentialsMissing,
    FetchOptions,
    PermissionDenied,
    ProviderError,
    RateLimited,
    SchemaChanged,
    Unreachable,
)
from catalogs.providers.etags import EtagStore
from catalogs.providers.limits import STREAM_FACTOR, CallTimedOut, TooLarge, chunks_of, retry_after_s, within
from catalogs.providers.redirects import LeftTheHost, get_on_host

if TYPE_CHECKING:
    import requests

_RETRIED = (429, 500, 502, 503, 504)
_BATCH_CHUNKS = 16  # 1 MiB of a file must come within the time limit


@dataclass(frozen=True)
class _Get:
    """One request, and what its messages name."""

    url: str
    params: Mapping[str, str] | None
    headers: dict[str, str]
    api: str
    region: str
    permission: str


@dataclass(frozen=True)
class _Answer:
    """What came: the body is "" where it is to be streamed from `response`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    response: requests.Response


class HttpClient:
    """A session for one provider; opened at the first request, closed by `close` or a `with` block."""

    def __init__(
        self,
        provider: str,
        options: FetchOptions,
        *,
        login_hint: str = "",
        cache_dir: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take settings only; nothing is opened.

        Args:
            provider: provider id, for messages.
            options: time-outs and retries.
            login_hint: said when the server answers 401.
            cache_dir: where answers with an ETag are kept for `cached=True`; None: not kept.
            sleep: how to pause between tries.
        """
        self.provider = provider
        self.options = options
        self.login_hint = login_hint
        self.cache_dir = cache_dir
        self._sleep = sleep
        self._session: requests.Session | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    def get_json(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        api: str = "",
        region: str = "",
        permission: str = "",
        cached: bool = False,
    ) -> Any:
        """Return the parsed JSON of an answer.

        Args:
            url: where.
            params: query parameters.
            headers: request headers; never logged.
            api: name of the interface for messages.
            region: region for messages.
            permission: what a 403 means in the cloud's own words.
            cached: keep the body by its ETag and ask with If-None-Match; only for public answers.

        Raises:
            ProviderError: by what went wrong; see the subclasses.
        """
        fault: ProviderError | None = None
        for attempt in range(self.options.retries + 1):
            body = self._body(url, params, headers, api, region, permission, cached)
            try:
                return json.loads(body)
            except (ValueError, RecursionError) as error:
                # A proxy's or a cut page: worth another try before it is called a change of format.
                fault = SchemaChanged(
                    f"the answer of {_shown(url)} is not JSON ({type(error).__name__})",
                    where="body",
                    provider=self.provider,
                    region=region,
                    api=api,
                )
            if attempt:
                break
            self._pause(attempt)
        assert fault is not None
        raise fault

    @contextlib.contextmanager
    def stream(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        api: str = "",
        region: str = "",
        permission: str = "",
    ) -> Iterator[Iterator[bytes]]:
        """Give the body in chunks of at most 64 KiB, decompressed; for files larger than memory.

        Raises:
            ProviderError: also while the chunks are read.
        """
        call = _Get(url, None, dict(headers or {}), api, region, permission)
        response = self._request(call, whole=False).response
        try:
            yield self._chunks(response, call)
        finally:
            # Closing waits for whoever reads: a reader that was given up must not hold the caller.
            threading.Thread(target=response.close, daemon=True, name="close").start()

    def _chunks(self, response: requests.Response, call: _Get) -> Iterator[bytes]:
        import requests

        chunks = chunks_of(response, self.options.max_bytes * STREAM_FACTOR)
        limit_s = self.options.timeout_s * STREAM_FACTOR
        left_s = limit_s
        try:
            while left_s > 0:
                began = time.monotonic()
                longest_s = min(self.options.timeout_s, left_s)
                batch = within(longest_s, lambda: list(islice(chunks, _BATCH_CHUNKS)))
                left_s -= time.monotonic() - began  # the reader's own time between two batches is not counted
                if not batch:
                    return
                yield from batch
            raise CallTimedOut(f"no whole file in time ({limit_s:g} s)")
        except (requests.RequestException, CallTimedOut, TooLarge) as error:
            raise self._fault(error, call) from None

    def _body(
        self,
        url: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        api: str,
        region: str,
        permission: str,
        cached: bool,
    ) -> bytes:
        store = EtagStore(self.cache_dir, url, params) if cached and self.cache_dir else None
        stored = store.load() if store else None
        request_headers = dict(headers or {})
        if stored:
            request_headers["If-None-Match"] = stored[0]
        call = _Get(url, params, request_headers, api, region, permission)
        answer = self._request(call, whole=True)
        if answer.status == 304 and stored:
            return stored[1]
        if store and answer.headers.get("ETag"):
            store.save(answer.headers["ETag"], answer.body)
        return answer.body

    def _request(self, call: _Get, *, whole: bool) -> _Answer:
        """Ask, and ask again after throttling, server faults and broken answers.

        All tries together may take `timeout_s`, pauses between them not counted.
        """
        import requests

        left_s = self.options.timeout_s
        for attempt in range(self.options.retries + 1):
            began = time.monotonic()
            answer: _Answer | None = None
            error: Exception | None = None
            try:
                answer = within(left_s, partial(self._get, call, whole), lambda late: late.response.close())
            except (CallTimedOut, TooLarge, LeftTheHost) as limit:
                raise self._fault(limit, call) from None
            except requests.RequestException as broken:
                error = broken
            left_s -= time.monotonic() - began
            is_last = attempt == self.options.retries or left_s <= 0
            if answer is not None and (is_last or answer.status not in _RETRIED):
                fault = self._status_fault(answer.status, call)
                if fault is None:
                    return answer
                answer.response.close()
                raise fault
            if error is not None and is_last:
                raise self._fault(error, call) from None
            wait_s = retry_after_s(answer.headers.get("Retry-After")) if answer is not None else None
            self._pause(attempt, wait_s)
        raise AssertionError("the loop returns or raises")

    def _get(self, call: _Get, whole: bool) -> _Answer:
        """One try; the body too where it is wanted `whole`."""
        timeout_s = (min(10.0, self.options.timeout_s), self.options.timeout_s)
        response = get_on_host(self._open(), call.url, call.params, call.headers, timeout_s)
        body = b"".join(chunks_of(response, self.options.max_bytes)) if whole else b""
        return _Answer(response.status_code, response.headers, body, response)

    def _pause(self, attempt: int, asked_s: float | None = None) -> None:
        wait_s = self.options.backoff_s * 2**attempt if asked_s is None else asked_s
        self._sleep(min(wait_s, self.options.max_wait_s))

    def _open(self) -> requests.Session:
        with self._lock:
            if self._session is None:
                self._session = _new_session(self.options)
            return self._session

    def _fault(self, error: Exception, call: _Get) -> ProviderError:
        place = {"provider": self.provider, "region": call.region, "api": call.api}
        if isinstance(error, TooLarge):
            return SchemaChanged(
                f"the answer of {_shown(call.url)} is refused: {error}", where="body", **place
            )
        if isinstance(error, LeftTheHost):
            return SchemaChanged(f"{_shown(call.url)} {error}", where="Location", **place)
        reason = str(error) if isinstance(error, CallTimedOut) else _reason(error)
        return Unreachable(
            f"no whole answer from {_shown(call.url)}: {reason}; check the network and try again", **place
        )

    def _status_fault(self, status: int, call: _Get) -> ProviderError | None:
        place = {"provider": self.provider, "region": call.region, "api": call.api}
        if status < 400:
            return None
        if status == 401:
            hint = f"; {self.login_hint}" if self.login_hint else ""
            return CredentialsMissing(f"credentials missing, expired or refused (HTTP 401){hint}", **place)
        if status == 403:
            return PermissionDenied(
                f"{_shown(call.url)} refused access (HTTP 403)",
                permission=call.permission or call.api or "unknown",
                **place,
            )
        if status == 429:
            return RateLimited(
                f"still throttled after {self.options.retries + 1} tries (HTTP 429); try again later", **place
            )
        if status >= 500:
            return Unreachable(f"{_shown(call.url)} answers HTTP {status}; try again later", **place)
        return SchemaChanged(
            f"{_shown(call.url)} refuses the request (HTTP {status}); update the planner",
            where="request",
            **place,
        )


def http_cache_directory() -> Path:
    """Where public answers are kept by ETag: below the planner's cache directory."""
    from catalogs.cache.copies import cache_directory

    return cache_directory() / "http"


def _new_session(options: FetchOptions) -> requests.Session:
    import requests
    from requests.adapters import HTTPAdapter

    hide_queries_in_logs()
    session = requests.Session()
    adapter = HTTPAdapter(max_retries=0, pool_maxsize=max(10, options.max_workers))
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


class _NoQuery(logging.Filter):
    """Takes the query out of the URLs that urllib3 logs when it tries again: a key may be in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_without_query(a) if isinstance(a, str) else a for a in record.args)
        return True


def _without_query(text: str) -> str:
    path, mark, _ = text.partition("?")
    return f"{path}?..." if mark else text


def hide_queries_in_logs() -> None:
    """Keep what follows a `?` out of urllib3's log; may be called any number of times."""
    for name in ("urllib3.connectionpool", "urllib3.util.retry"):
        log = logging.getLogger(name)
        if not any(isinstance(present, _NoQuery) for present in log.filters):
            log.addFilter(_NoQuery())


def _shown(url: str) -> str:
    """A URL without query and user info: either may carry a key."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _reason(error: Exception) -> str:
    """The kind of a transport fault in words; its own text may hold the full URL."""
    import requests
    import urllib3

    kinds: tuple[tuple[type[Exception], str], ...] = (
        (requests.exceptions.ChunkedEncodingError, "the answer was cut short"),
        (requests.exceptions.ConnectTimeout, "no connection in time"),
        (requests.exceptions.ReadTimeout, "no answer in time"),
        (requests.exceptions.SSLError, "TLS failed"),
        (requests.exceptions.ProxyError, "the proxy failed"),
        (urllib3.exceptions.ConnectTimeoutError, "no connection in time"),
        (urllib3.exceptions.ReadTimeoutError, "no answer in time"),
        (requests.exceptions.ConnectionError, "the connection failed"),
    )
    # After the last retry requests wraps a time-out into a plain ConnectionError.
    inner = getattr(error.args[0], "reason", None) if error.args else None
    error = inner if isinstance(inner, urllib3.exceptions.TimeoutError) else error
    return next((words for kind, words in kinds if isinstance(error, kind)), type(error).__name__)
