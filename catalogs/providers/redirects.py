"""Redirects: followed on the host that was asked only, since a request may carry a key in a header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

if TYPE_CHECKING:
    import requests

MAX_REDIRECTS = 5
_DEFAULT_PORTS = {"http": 80, "https": 443}


class LeftTheHost(Exception):  # noqa: N818 - a kind of answer more than an error
    """A redirect elsewhere, or one after another; its text says which."""


def get_on_host(
    session: requests.Session,
    url: str,
    params: Mapping[str, str] | None,
    headers: Mapping[str, str],
    timeout_s: tuple[float, float],
) -> requests.Response:
    """Ask for `url` and follow redirects to the same host and port, never from https to http.

    Args:
        session: what to ask with.
        url: where.
        params: query parameters of the first request; a redirect states its own.
        headers: request headers.
        timeout_s: longest waits for the connection and between two parts of the answer.

    Returns:
        The answer, its body not read yet.

    Raises:
        LeftTheHost: the server sends elsewhere, or more than `MAX_REDIRECTS` times.
        requests.RequestException: no answer.
    """
    for _ in range(MAX_REDIRECTS + 1):
        try:
            response = session.get(
                url,
                params=params,
                headers=dict(headers),
                timeout=timeout_s,
                stream=True,
                allow_redirects=False,
            )
        except ValueError as error:  # requests reads the address of a redirect that it does not follow
            if isinstance(error, OSError):
                raise
            raise LeftTheHost("sends to no address that can be read; check the proxy") from None
        if not response.is_redirect:
            return response
        target = _target(url, response.headers["Location"])
        response.close()
        if not is_same_host(url, target):
            raise LeftTheHost(
                f"sends to another host ({urlsplit(target).hostname or 'none'}), which is not followed; "
                "check the proxy, or name the new address in the endpoint's environment variable"
            )
        url, params = target, None
    raise LeftTheHost(f"redirects more than {MAX_REDIRECTS} times; try again later")


def _target(url: str, location: str) -> str:
    """Where a redirect leads; "" where it says nothing that can be read."""
    try:
        target = urljoin(url, location)
        return target if urlsplit(target).hostname else ""
    except ValueError:
        return ""


def is_same_host(url: str, target: str) -> bool:
    """Whether `target` is on the host and port of `url`, or on its https; nonsense is not.

    >>> (
    ...     is_same_host("https://a.example/x", "https://a.example/y"),
    ...     is_same_host("https://a.example", "http://a.example"),
    ... )
    (True, False)
    """
    try:
        before, after = urlsplit(url), urlsplit(target)
        ports = [part.port or _DEFAULT_PORTS.get(part.scheme) for part in (before, after)]
    except ValueError:
        return False
    if before.hostname != after.hostname or after.scheme not in _DEFAULT_PORTS:
        return False
    return (before.scheme, ports[0]) == (after.scheme, ports[1]) or (before.scheme, *ports, after.scheme) == (
        *("http", 80, 443),
        "https",
    )
