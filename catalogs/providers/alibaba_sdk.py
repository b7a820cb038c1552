"""The official SDK of Alibaba Cloud behind one method, imported at the first call."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Protocol

from catalogs.errors import install_command
from catalogs.providers.alibaba_rows import PROVIDER
from catalogs.providers.base import CredentialsMissing, FetchOptions
from catalogs.providers.capped import cap_session, capped_session

_CONNECTIONS = 37
"""Connections that a session of ours may keep: the SDK's sessions differ by it, and its own default is 40."""
_ERRORS = 400  # the first status of them
INSTALL_HINT = f"install the SDK: {install_command('alibaba')}"


class EcsClient(Protocol):
    """What is needed of the SDK: one call by its name, parameters and answer as JSON values."""

    def call(self, action: str, parameters: Mapping[str, Any]) -> Any:
        """Return the body of the answer."""
        ...


def sdk_client(region: str, options: FetchOptions) -> EcsClient:
    """Make the official SDK's client of one region, with the SDK's own chain of credentials.

    Raises:
        CredentialsMissing: when the SDK is not installed or finds no credentials; says what to do.
    """
    try:
        from alibabacloud_credentials.client import Client as Credentials
        from alibabacloud_ecs20140526 import models
        from alibabacloud_ecs20140526.client import Client
        from alibabacloud_tea_openapi.utils_models import Config
        from darabonba.runtime import RuntimeOptions
    except ImportError:
        raise CredentialsMissing(
            f"the SDK of Alibaba Cloud is not installed; {INSTALL_HINT}", provider=PROVIDER
        ) from None
    endpoint = options.endpoint("alibaba_ecs")
    scheme, _, host = endpoint.rpartition("://")
    config = Config(credential=Credentials(), region_id=region, endpoint=host or None)
    if scheme:
        config.protocol = scheme.upper()
    timeout_ms = int(options.timeout_s * 1000)
    runtime = RuntimeOptions(
        autoretry=False,
        read_timeout=timeout_ms,
        connect_timeout=min(timeout_ms, 10_000),
        max_idle_conns=_CONNECTIONS,
    )
    client = Client(config)
    if not _limit_session(config.protocol or "HTTPS", client._endpoint, options.max_bytes):
        options.log.remark(
            f"{PROVIDER}: --max-bytes does not hold with this version of darabonba-core; update it"
        )
    return _SdkClient(client, models, runtime)


def _limit_session(protocol: str, host: str, max_bytes: int) -> bool:
    """Put the limits on the session that the SDK will use for a host, and on no other.

    The SDK takes no transport. It keeps its sessions by protocol, host, port and number of connections, so ours is
    made beforehand under a number that nobody else asks for.

    Returns:
        Whether this version of the SDK keeps sessions so.
    """
    from darabonba.core import DaraCore

    sessions = getattr(DaraCore, "_sessions", None)  # the SDK names no public way to its transport
    if sessions is None or not hasattr(DaraCore, "_resolve_pool_maxsize"):
        return False
    key = f"{protocol.lower()}://{host}:80:pool={_CONNECTIONS}"  # 80 whatever the protocol: the SDK's own default
    if key not in sessions:
        sessions[key] = capped_session(max_bytes)
    session = sessions[key]
    session.max_redirects = 0  # the interface has none; a proxy's may lead anywhere
    cap_session(session, max_bytes, _note)
    return True


_latest = threading.local()
"""Status of the latest answer in this thread: of one without the interface's own error the SDK tells the body alone."""


def _note(status: int) -> None:
    _latest.status = status


class RefusedError(Exception):
    """An answer with a status of errors that is none of the interface's own: a proxy's page, say."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.statusCode = status  # as the SDK's own exceptions call it


class _SdkClient:
    """The SDK's client behind one method."""

    def __init__(self, client: Any, models: Any, runtime: Any) -> None:
        self._client = client
        self._models = models
        self._runtime = runtime

    def call(self, action: str, parameters: Mapping[str, Any]) -> Any:
        """Call `action`; names of parameters and of the answer are the API's own.

        Raises:
            RefusedError: for what the SDK raises without a code of the interface, where the status is one of errors.
            ValueError: the answer is no JSON object.
        """
        request = getattr(self._models, f"{action}Request")().from_map(dict(parameters))
        method = "".join(f"_{c.lower()}" if c.isupper() else c for c in action).lstrip("_")
        _note(0)
        try:
            answer = getattr(self._client, f"{method}_with_options")(request, self._runtime)
        except Exception as error:
            if _latest.status >= _ERRORS and not getattr(error, "code", ""):
                raise RefusedError(_latest.status) from error
            raise
        if answer.body is None:
            raise ValueError("the answer is no JSON object")
        return answer.body.to_map()
