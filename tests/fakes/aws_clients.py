"""Clients of the AWS SDK that ask `tests.fakes.aws`."""

from __future__ import annotations

import os
from functools import cache, partial
from typing import Any, ClassVar
from unittest import mock

from catalogs.providers.aws_client import AwsClients
from catalogs.providers.base import FetchOptions
from tests.fakes.aws import SECRETS


@cache
def session() -> Any:
    """One SDK session for all tests: it reads the service models, which takes longer than a whole refresh."""
    import boto3

    return boto3.Session(*SECRETS[:2], aws_session_token=SECRETS[2])


class SharedClients(AwsClients):
    """Clients that all tests of a process share: to make one takes as long as a test's own calls.

    One is made per service, region, server and settings; its retries do not run out, however many tests use it.
    """

    _shared: ClassVar[dict[tuple[object, ...], Any]] = {}

    def __init__(self, options: FetchOptions) -> None:
        super().__init__(options, session())

    def _create(self, service: str, region: str) -> Any:
        from botocore.retries.quota import RetryQuota

        url, chosen = os.environ["AWS_ENDPOINT_URL"], self.options
        settings = (
            chosen.retries,
            chosen.timeout_s,
            chosen.max_workers,
            chosen.max_bytes,
            *chosen.endpoints.items(),
        )
        key = (service, region, url, *settings)
        if key not in self._shared:
            with mock.patch("botocore.retries.quota.RetryQuota", partial(RetryQuota, 10**9)):
                self._shared[key] = super()._create(service, region)
        return self._shared[key]
