"""A Prometheus server asked over HTTP: within a total time, up to a size, with a token that no message shows.

The API is that of Prometheus 2 and 3 and of the managed stores that speak it (`/api/v1/query_range`): values are texts,
an empty result is a success, more than 11,000 points per series are refused, a wrong query is 400 with `bad_data`.
"""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from planner.errors import InputError

TOKEN_VARIABLE = "PLANNER_PROMETHEUS_TOKEN"  # noqa: S105 - the name of a variable, not a token
TIMEOUT_S = 30.0
MOST_BYTES = 32 << 20
MOST_POINTS = 10_000  # the server refuses above 11,000
LEAST_STEP_S = 15.0
_CHUNK = 1 << 16
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_UNSUPPORTED = 9.0e18  # DCGM's 9223372036854775794
_SHOWN = 300


class _Bearer(AuthBase):
    """Sends a token and nothing else: without an authentication of its own, requests would look into .netrc."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Prometheus:
    """One server.

    Args:
        url: `http://host:9090`, with a path before `/api/v1` where there is one.
        token_env: environment variable that holds a bearer token; none is sent where it is unset.
        timeout_s: for all queries together.
        most_bytes: of one answer.

    Raises:
        InputError: the address is none, holds a password, or the token would travel in the clear.
    """

    def __init__(
        self,
        url: str,
        *,
        token_env: str = TOKEN_VARIABLE,
        timeout_s: float = TIMEOUT_S,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        parts = _address(url)
        token = os.environ.get(token_env, "").strip()
        if token and not (token.isascii() and token.isprintable()):
            raise InputError(f"{token_env}: holds no token: characters that no header may have")
        if token and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise InputError(
                f"--prometheus {url}: the token of {token_env} would travel in the clear: use https"
            )
        self.url, self._token_env, self._most = url.rstrip("/"), token_env, most_bytes
        self._session, self._auth = requests.Session(), _Bearer(token)
        self._end = time.monotonic() + timeout_s
        self._timeout_s = timeout_s

    def query_range(self, name: str, query: str, start: float, end: float) -> dict[float, float]:
        """Values of a query that gives one series, by POSIX second; empty where there is none.

        Args:
            name: of the quantity, for messages.
            query: PromQL.
            start: first moment, POSIX seconds.
            end: last one.

        Raises:
            InputError: the server cannot be reached, refuses, or answers something else.
        """
        step = max(LEAST_STEP_S, math.ceil((end - start) / MOST_POINTS))
        parameters = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.0f}"}
        status, body = self._get(f"{self.url}/api/v1/query_range", parameters)
        return self._series(name, query, status, body)

    def _get(self, url: str, asked: dict[str, str]) -> tuple[int, bytes]:
        """Status and body, within the time that is left."""
        try:
            with self._session.get(
                url, params=asked, auth=self._auth, stream=True, allow_redirects=False, timeout=self._left(),
                headers={"Accept": "application/json"},
            ) as answer:  # fmt: skip
                if answer.is_redirect:
                    raise InputError(
                        f"--prometheus {self.url}: the server sends elsewhere: give that address"
                    )
                data = bytearray()
                for chunk in answer.iter_content(_CHUNK):
                    data += chunk
                    if len(data) > self._most:
                        raise InputError(
                            f"--prometheus {self.url}: more than {self._most >> 20} MiB in one answer: aggregate it"
                        )
                    self._left()
                return answer.status_code, bytes(data)
        except requests.Timeout:
            raise self._late() from None
        except requests.RequestException as error:
            reason = type(error).__name__
            raise InputError(
                f"--prometheus {self.url}: cannot be queried ({reason}): is it running there?"
            ) from None

    def _left(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise self._late()
        return left

    def _late(self) -> InputError:
        return InputError(
            f"--prometheus {self.url}: no whole answer within {self._timeout_s:g} s: give more with --timeout, or "
            "a shorter span with --started"
        )

    def _series(self, name: str, query: str, status: int, body: bytes) -> dict[float, float]:
        place = f"--prometheus {self.url}"
        if status in (401, 403):
            raise InputError(f"{place}: access refused ({status}): put a bearer token into {self._token_env}")
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise InputError(f"{place}: status {status} and no JSON: is it a Prometheus server?")
        if status == 400 or answer.get("status") == "error":
            reason = str(answer.get("error", ""))[:_SHOWN]
            raise InputError(
                f"{place}: the query of {name} is refused: {reason} (query: {query}; --metric {name}=QUERY)"
            )
        data = answer.get("data")
        result = data.get("result") if isinstance(data, dict) else None
        if status != 200 or answer.get("status") != "success" or not isinstance(result, list):
            raise InputError(f"{place}: status {status} and no result: is it a Prometheus server?")
        if len(result) > 1:
            raise InputError(
                f"{place}: the query of {name} gives {len(result)} series: aggregate it (max, avg, count): {query}"
            )
        return _points(result[0], place) if result else {}


def _address(url: str) -> Any:
    """The parts of an address.

    Raises:
        InputError: it is none, or holds what a process list would show.
    """
    try:
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None:
            raise InputError(
                f"--prometheus: a password in the address shows in the list of processes: use {TOKEN_VARIABLE}"
            )
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(f"--prometheus {url}: must be an address like http://127.0.0.1:9090")
    return parts


def _points(series: Any, place: str) -> dict[float, float]:
    """Values by moment; texts that are no finite figure are left out."""
    values = series.get("values") if isinstance(series, dict) else None
    if not isinstance(values, list):
        raise InputError(f"{place}: a series without values: is it a Prometheus server?")
    by_moment: dict[float, float] = {}
    for pair in values:
        try:
            moment, value = float(pair[0]), float(pair[1])
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            raise InputError(f"{place}: a sample is not a pair of moment and figure") from None
        if math.isfinite(moment) and math.isfinite(value) and abs(value) < _UNSUPPORTED:
            by_moment[moment] = value
    return by_moment
