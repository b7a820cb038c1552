"""What AWS publishes for everybody: the bulk price list and the Spot Advisor's data file."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from catalogs.providers import aws_bulk as bulk
from catalogs.providers import aws_spot as spot
from catalogs.providers.aws_rows import PROVIDER, Row, changed
from catalogs.providers.base import FetchOptions, ProviderError, map_regions
from catalogs.providers.http import HttpClient, http_cache_directory
from catalogs.providers.known_types import known_types
from catalogs.providers.row_reader import RowReader

# Commercial regions: no government or China partition, no local zone (us-west-2-lax-1).
_COMMERCIAL = re.compile(r"^(?!us-gov-|cn-|us-iso|eu-isoe|eusc-)[a-z]{2}-[a-z]+-\d+$")


def is_commercial(region: str) -> bool:
    """Whether a region is of the usual partition, priced in USD and open to any account."""
    return bool(_COMMERCIAL.match(region))


class PublicLists:
    """Reads the public lists; opens nothing before the first read."""

    def __init__(self, options: FetchOptions, today: Callable[[], str]) -> None:
        """Take settings only.

        Args:
            options: time-outs, retries, endpoints, log.
            today: ISO date of the answers.
        """
        self.options = options
        self._today = today
        self._http = HttpClient(PROVIDER, options, cache_dir=http_cache_directory())

    def regions(self) -> list[str]:
        """Regions that have a price list."""
        return sorted(filter(is_commercial, bulk.parse_region_index(self._index(), None)))

    def types(self) -> list[Row]:
        """Machines this package knows: the public lists do not describe accelerators."""
        recorded = known_types(PROVIDER)
        return [dict(recorded[name]) for name in sorted(recorded) if recorded[name]["status"] == "current"]

    def offers(self, regions: Sequence[str], options: AbstractSet[str], names: AbstractSet[str]) -> list[Row]:
        """On-demand and reserved prices as listed, spot derived from the advised savings.

        Raises:
            ProviderError: when no region could be read.
        """
        regions = list(regions) or self.regions()
        needed = set(options) | ({"on_demand"} if "spot" in options else set())
        rows = self.listed(regions, needed, names)
        listed = [row for row in rows if row["purchase_option"] in options]
        if "spot" in options:
            on_demand = [row for row in rows if row["purchase_option"] == "on_demand"]
            listed += spot.derived_spot_rows(on_demand, self.advice(regions))
        return listed

    def listed(self, regions: Sequence[str], options: AbstractSet[str], names: AbstractSet[str]) -> list[Row]:
        """On-demand and reserved prices of the bulk price list.

        Raises:
            ProviderError: when no region could be read.
        """
        paths = bulk.parse_region_index(self._index(), regions)
        for region in regions:
            if region not in paths:
                self.options.log.failed(
                    ProviderError(
                        "no price list for this region", provider=PROVIDER, region=region, api=bulk.API
                    )
                )

        def fetch(region: str) -> bulk.BulkPrices:
            with self._http.stream(self._base() + paths[region], api=bulk.API, region=region) as chunks:
                prices = bulk.parse_bulk_csv(
                    text_lines(chunks, region), region, self._today(), names, options, self.options.log
                )
            if not prices.lines:
                raise changed(bulk.API, "rows (none)", region)
            self.options.log.progress(region, bulk.API, len(prices.rows))
            return prices

        answers = map_regions([region for region in regions if region in paths], fetch, self.options)
        unknown = {name for prices in answers.values() for name in prices.with_gpu} - set(names)
        for name in sorted(unknown):
            self.options.log.skip(
                "instance_type", name, "a machine with GPUs that this version does not know"
            )
        return [row for region in sorted(answers) for row in answers[region].rows]

    def advice(self, regions: Sequence[str]) -> dict[tuple[str, str], spot.Advice]:
        """Interruption bands and savings; without them spot prices stay, so a failure is only remarked."""
        url = self.options.endpoint("aws_spot_advisor", spot.ADVISOR_URL)
        try:
            payload = self._http.get_json(url, api=spot.ADVISOR_API, cached=True)
            return spot.parse_advisor(payload, regions, RowReader("interruption band", self.options.log))
        except ProviderError as error:
            self.options.log.remark(f"interruption bands left out: {error}")
            return {}

    def _base(self) -> str:
        return self.options.endpoint("aws_price_list", bulk.HOST)

    def _index(self) -> object:
        return self._http.get_json(self._base() + bulk.REGION_INDEX, api=bulk.API, cached=True)


def text_lines(chunks: Iterable[bytes], region: str = "") -> Iterator[str]:
    """Lines of UTF-8 text with their ends, from chunks of bytes; holds one chunk and one line.

    Raises:
        SchemaChanged: when the bytes are not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    tail = ""
    try:
        for chunk in chunks:
            *lines, tail = (tail + decoder.decode(chunk)).split("\n")
            for line in lines:
                yield f"{line}\n"
        tail += decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise changed(bulk.API, "text (not UTF-8)", region) from None
    if tail:
        yield tail
