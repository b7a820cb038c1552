"""The official SDK of Alibaba Cloud behind one method, imported at the first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from catalogs.errors import install_command
from catalogs.providers.alibaba_rows import PROVIDER
from catalogs.providers.base import CredentialsMissing, FetchOptions

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
        autoretry=False, read_timeout=timeout_ms, connect_timeout=min(timeout_ms, 10_000)
    )
    return _SdkClient(Client(config), models, runtime)


class _SdkClient:
    """The SDK's client behind one method."""

    def __init__(self, client: Any, models: Any, runtime: Any) -> None:
        self._client = client
        self._models = models
        self._runtime = runtime

    def call(self, action: str, parameters: Mapping[str, Any]) -> Any:
        """Call `action`; names of parameters and of the answer are the API's own."""
        request = getattr(self._models, f"{action}Request")().from_map(dict(parameters))
        method = "".join(f"_{c.lower()}" if c.isupper() else c for c in action).lstrip("_")
        answer = getattr(self._client, f"{method}_with_options")(request, self._runtime)
        return answer.body.to_map()
