"""A full `catalog refresh` from local fakes: `python -m benchmarks.refresh [--latency-ms 50]`.

Every fake runs in a process of its own and waits `latency` before each answer. Printed: wall time against the sum of
those waits (the parallelism achieved), requests, most calls at once, rows, CPU and peak memory of the refreshing
process. Wall time also holds the fakes' own work, so on few cores the ratio understates the parallelism.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from catalogs.providers.base import FetchOptions
from catalogs.refresh.run import refresh
from catalogs.tables.regions import residency_groups
from tests.fakes import aws, azure, gcp
from tests.fakes.http_base import FakeServer, Handler, Request


@dataclass(frozen=True)
class Place:
    """Where a fake in another process listens."""

    url: str


def names_of(provider: str, limit: int) -> list[str]:
    """Regions of a provider that the catalog knows, government clouds left out."""
    return sorted(name for of, name in residency_groups() if of == provider and "gov" not in name)[:limit]


def serve_aws(latency_s: float, limit: int) -> FakeServer:
    """34 regions x 1,300 types, as far as the catalog knows regions."""
    return aws.fake_aws(world=aws.World.large(limit, 1300), latency_s=latency_s)


def serve_azure(latency_s: float, limit: int) -> FakeServer:
    """One region's price items and sizes, repeated in every region."""
    regions = names_of("azure", limit)
    items, sizes = azure.fixture("retail_items"), azure.fixture("resource_skus")
    first = items[0]["armRegionName"]
    mine = [item for item in items if item["armRegionName"] == first]
    prices = {name: [{**item, "armRegionName": name} for item in mine] for name in regions}
    everywhere = [{**size, "locations": regions} for size in sizes]

    def retail(request: Request) -> Any:
        region = azure._region_of(request, "armRegionName")
        envelope = {"BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail"}
        return azure._paged(
            request, prices.get(region, []), "Items", "NextPageLink", {"region": region}, envelope
        )

    def skus(request: Request) -> Any:
        return azure._paged(request, everywhere, "value", "nextLink", {"api-version": "2021-07-01"}, {})

    return azure.fake_azure(routes={azure.RETAIL: retail, azure.SKUS: skus}, latency_s=latency_s)


def serve_gcp(latency_s: float, limit: int) -> FakeServer:
    """The fixture's zones and SKUs, repeated in every region."""
    regions = names_of("gcp", limit)
    routes: dict[str, Handler] = {}
    for route, name, key in (
        (gcp.MACHINE_TYPES, "machine_types", "machineTypes"),
        (gcp.ACCELERATOR_TYPES, "accelerator_types", "acceleratorTypes"),
    ):
        zone = next(held for held in gcp.fixture(name).values() if held.get(key))
        routes[route] = _aggregated(name, key, zone[key], regions)
    entry = gcp.fixture("regions")[0]
    routes[gcp.REGIONS] = _listed("items", [{**entry, "name": name} for name in regions])
    skus = [{**sku, "serviceRegions": regions} for sku in gcp.fixture("skus")]
    routes[gcp.SKUS] = _listed("skus", skus)
    return gcp.fake_gcp(routes=routes, latency_s=latency_s)


def _aggregated(name: str, key: str, items: list[Any], regions: list[str]) -> Handler:
    held = [
        (f"zones/{region}-a", {key: [{**one, "zone": f"{region}-a"} for one in items]}) for region in regions
    ]

    def answer(request: Request) -> Any:
        page, token = gcp._page(held, request, "pageToken")
        body = {"kind": f"compute#{name}", "id": "x", "items": dict(page), "selfLink": ""}
        return {**body, "nextPageToken": token} if token else body

    return answer


def _listed(key: str, items: list[Any]) -> Handler:
    def answer(request: Request) -> Any:
        page, token = gcp._page(items, request, "pageToken")
        return {key: page, "nextPageToken": token} if token else {key: page}

    return answer


SERVERS: dict[str, Callable[[float, int], FakeServer]] = {
    "aws": serve_aws,
    "azure": serve_azure,
    "gcp": serve_gcp,
}


def _serve(name: str, latency_s: float, limit: int, pipe: Connection) -> None:
    with SERVERS[name](latency_s, limit) as fake:
        pipe.send(fake.url)
        pipe.recv()
        pipe.send((len(fake.requests), fake.most_active, time.process_time()))


def _create(places: dict[str, Place]) -> Callable[[str, FetchOptions], Any]:
    from dataclasses import replace

    from catalogs.providers.azure import AzureProvider
    from catalogs.providers.registry import create_provider
    from tests.catalogs.providers.gcp_setup import make

    def create(name: str, options: FetchOptions) -> Any:
        place: Any = places[name]
        if name == "gcp":
            return make(replace(options, endpoints=gcp.endpoints(place)))
        if name == "azure":
            return AzureProvider(
                replace(options, endpoints=azure.endpoints(place)), client=azure.client_factory()
            )
        return create_provider(name, options)

    return create


def measure(latency_s: float, limits: dict[str, int]) -> dict[str, Any]:
    """Run one refresh of all providers and return the figures."""
    context = multiprocessing.get_context("spawn")
    pipes, places = {}, {}
    for name, limit in limits.items():
        ours, theirs = context.Pipe()
        context.Process(target=_serve, args=(name, latency_s, limit, theirs), daemon=True).start()
        pipes[name], places[name] = ours, Place(ours.recv())
    os.environ.update(aws.environment(places["aws"]))  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as home:
        os.environ["PLANNER_DATA_DIR"] = os.environ["PLANNER_CACHE_DIR"] = home
        begin, cpu = time.perf_counter(), time.process_time()
        report = refresh(list(limits), FetchOptions(), create=_create(places))
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    rows = sum(outcome.n_offers + outcome.n_instance_types for outcome in report.outcomes)
    told = {}
    for name, pipe in pipes.items():
        pipe.send("stop")
        told[name] = pipe.recv()
    waits = latency_s * sum(requests for requests, _, _ in told.values())
    return {
        "regions": {name: len(names_of(name, limit)) for name, limit in limits.items()},
        "offers": {outcome.provider: outcome.n_offers for outcome in report.outcomes},
        "good": report.is_good,
        "requests": {name: requests for name, (requests, _, _) in told.items()},
        "most_at_once": {name: most for name, (_, most, _) in told.items()},
        "rows": rows,
        "rows_per_cpu_s": round(rows / cpu),
        "wall_s": round(wall, 1),
        "sum_of_waits_s": round(waits, 1),
        "parallelism": round(waits / wall, 1),
        "cpu_s": round(cpu, 1),
        "fakes_cpu_s": round(sum(spent for _, _, spent in told.values()), 1),
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--aws", type=int, default=34)
    parser.add_argument("--azure", type=int, default=60)
    parser.add_argument("--gcp", type=int, default=40)
    given = parser.parse_args()
    limits = {"aws": given.aws, "azure": given.azure, "gcp": given.gcp}
    print(json.dumps(measure(given.latency_ms / 1000.0, limits), indent=2))


if __name__ == "__main__":
    main()
