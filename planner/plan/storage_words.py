"""Why a way to keep data is taken or not, in words, from its id and its figures."""

from __future__ import annotations

from planner.plan.storage import StorageChoice, StorageReason, StorageWay

_WORDS: dict[StorageReason, str] = {
    "copied": "each node takes {part} ({share_gb:,.4g} GB) once, in {copied_in_s:,.0f} s, while its image is pulled "
    "({image_pull_s:,.0f} s)",
    "streamed": "streamed: a node reads {read} MB/s; {requests:,.0f} requests for objects of {object_mb:,.3g} MB",
    "packed": "packed into shards once, then streamed: a node reads {read} MB/s; {requests:,.0f} requests for objects "
    "of {object_mb:,.3g} MB",
    "volumes": "a volume of each node with {part}, filled while its image is pulled ({image_pull_s:,.0f} s)",
    "shared": "one file system of {capacity:,.0f} GiB for all nodes, which read {read} MB/s each",
    "disk_unknown": "local disk of this type unknown",
    "no_disk": "no local disk",
    "disk_small": "needs {needed_gb:,.0f} GB of local disk, a node has {given_gb:,.0f}",
    "disk_slow": "a node reads {needed_mb_per_s:,.0f} MB/s, its disk gives {given_mb_per_s:,.0f}",
    "copied_late": "copying {share_gb:,.0f} GB to a node takes {copied_in_s:,.0f} s, its image is there after "
    "{image_pull_s:,.0f}: nodes would wait",
    "client_slow": "a node reads {needed_mb_per_s:,.0f} MB/s, one client gets {given_mb_per_s:,.0f}",
    "store_slow": "all nodes read {needed_mb_per_s:,.0f} MB/s, the store gives {given_mb_per_s:,.0f}",
    "volume_slow": "needs {needed_mb_per_s:,.0f} MB/s to be filled in {image_pull_s:,.0f} s and to feed the steps, "
    "a volume gives {given_mb_per_s:,.0f}",
    "volume_late": "a node copies {given_mb_per_s:,.0f} MB/s at most: not filled in {image_pull_s:,.0f} s",
    "outlives": "outlives the machines; {kept:,.0f} kept",
    "holds": "",
    "ends_with_machine": "lost with the machine: a restart would begin from zero",
    "exported": "written at the end and copied out; the copy is in the cost of transfer, what is kept afterwards is "
    "not",
}
_GIB_PER_GB = 1e9 / 2.0**30
_CENT = 0.005


def reason_of(choice: StorageChoice, way: StorageWay) -> str:
    """Say why `way`, one of those of `choice`, is taken or not; one that would do says by how much it is dearer.

    One that costs less is not taken because the workload asks for another, or lines of a fleet share a place.
    """
    figures = way.figures
    whole = figures.get("share_gb", 0.0) * _GIB_PER_GB > choice.size_gib * (1.0 - 1e-9)
    rate = choice.read_mb_per_s
    words = _WORDS[way.reason].format(
        **figures, part="a copy" if whole else "its part", capacity=way.capacity_gib,
        read=f"{rate:,.0f}" if rate >= 10.0 else f"{rate:.2g}",
    )  # fmt: skip
    if way is choice.chosen:
        return words if way.keeps_rule else f"no option is known to be fast enough: {words}"
    if not way.keeps_rule:
        return words
    more = float(way.cost_usd - choice.chosen.cost_usd)
    if more <= -_CENT:
        difference = f"{-more:,.2f} USD less, but not as data.access and storage.data of the workload ask"
    else:
        difference = f"{more:,.2f} USD more" if more >= _CENT else "not cheaper"
    return f"{words}; {difference}" if words else difference
