"""Costs of collective operations: ring and hierarchical algorithms over node and network links (alpha-beta model).

Ring volumes: Thakur et al. 2005 (all-reduce 2(n-1)/n, reduce-scatter and all-gather (n-1)/n of the bytes).
Link shares are nccl-tests-like bus-bandwidth figures, kept in the constants file.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.performance.constants import Constants
from planner.performance.device import Devices
from planner.performance.layouts import Layouts
from planner.performance.work import Work, padded_tokens
from planner.records import record


@record(frozen=True)
class Links:
    """Usable one-direction rates in bytes/s and latencies in s, shape as `Devices`."""

    intra: Floats
    inter_node: Floats
    intra_latency: Floats
    inter_latency: Floats


def build_links(devices: Devices, constants: Constants) -> Links:
    """Turn nominal link speeds into usable ones."""
    pcie = devices.pcie > 0
    share = np.where(devices.rdma > 0, constants["link.rdma_ratio"], constants["link.tcp_ratio"])
    return Links(
        intra=devices.intra_rate
        * np.where(pcie, constants["link.pcie_ratio"], constants["link.nvlink_ratio"]),
        inter_node=devices.node_rate * share,
        intra_latency=np.where(pcie, constants["link.pcie_latency_s"], constants["link.nvlink_latency_s"]),
        inter_latency=np.where(
            devices.rdma > 0, constants["link.rdma_latency_s"], constants["link.tcp_latency_s"]
        ),
    )


def all_reduce_s(
    volume: Floats, members: Floats, in_domain: Floats, sharing: Floats, links: Links, passes: float = 2.0
) -> Floats:
    """Time of one all-reduce (`passes` 2) or of one all-gather or reduce-scatter (`passes` 1), in s.

    Hierarchical: a ring of `in_domain` members on the fast link (of a node, or of a rack where it spans nodes) on the
    full `volume`, then a ring over `members / in_domain` domains on each member's share; a node's network is shared by
    `sharing` accelerators that run it at the same time.

    Args:
        volume: bytes per accelerator before reduction.
        members: accelerators in the group.
        in_domain: of these, how many the fast link joins (>= 1).
        sharing: accelerators per node that use the network at once.
        links: usable rates.
        passes: 2 for all-reduce, 1 for one-way collectives.
    """
    domains = members / in_domain
    inside = passes * (in_domain - 1.0) / in_domain * volume / links.intra
    across = passes * (domains - 1.0) / domains * (volume / in_domain) * sharing / links.inter_node
    across = np.where(domains > 1.0, across, 0.0)
    latency = passes * (
        links.intra_latency * np.minimum(in_domain - 1.0, 4.0)
        + links.inter_latency * np.log2(np.maximum(domains, 1.0))
    )
    return inside + across + latency


def send_s(volume: Floats, crosses: Floats, sharing: Floats, links: Links) -> Floats:
    """Time to hand `volume` bytes to the next pipeline stage, in s."""
    inside = volume / links.intra + links.intra_latency
    across = volume * sharing / links.inter_node + links.inter_latency
    return np.where(crosses > 0, across, inside)


def _all_to_all_s(
    token: Floats, work: Work, layout: Layouts, devices: Devices, links: Links, once_per_node: bool
) -> Floats:
    """Time to hand tokens to their experts: on the fast link and across nodes at once, s.

    Args:
        token: bytes of all tokens of a device, one copy each.
        work: gives the experts that each token goes to.
        layout: gives the expert-parallel degree; where it is above dp x cp, tensor ranks hold experts of their own.
        devices: how many share the fast link and the node's network.
        links: usable rates.
        once_per_node: a token that several experts of one node want crosses the network once and is copied there
            (DeepSeek-V3, arXiv 2412.19437, section 3.2.2).
    """
    ep, k = layout.ep, np.maximum(work.routed, 1.0)
    room = np.maximum(np.floor(devices.domain / layout.tp), 1.0)
    inside = np.minimum(np.where(ep > layout.dp * layout.cp, devices.domain, room), ep)
    near = k * token * (inside - 1.0) / ep / links.intra
    nodes = ep / inside
    copies = k * (1.0 - 1.0 / nodes)
    if once_per_node:
        copies = np.minimum((nodes - 1.0) * (1.0 - (1.0 - 1.0 / nodes) ** k), copies)
    far = np.where(ep > inside, token * copies * devices.count / links.inter_node, 0.0)
    latency = links.intra_latency + np.where(ep > inside, links.inter_latency, 0.0)
    result: Floats = np.maximum(near, far) + latency
    return result


def layer_comm_s(
    work: Work, devices: Devices, layout: Layouts, links: Links, stack: str, c: Constants
) -> Floats:
    """Exposed time of tensor, context and expert parallel traffic of one layer's forward pass, s."""
    tokens = padded_tokens(work, layout.micro_batch) / layout.cp
    volume = tokens * work.hidden * np.minimum(work.element_bytes, 4.0)
    count = devices.count
    # Ranks reach a collective at slightly different times and wait for the last.
    joined = np.minimum(layout.tp, devices.domain)
    once = all_reduce_s(volume, layout.tp, joined, count, links) + c.of_stack("tp.skew_s", stack)
    tensor = 2.0 * once
    tensor = np.where(layout.tp > 1, tensor, 0.0)
    ring = 2.0 * work.kv_width * tokens * work.element_bytes * (layout.cp - 1.0)
    crosses = layout.cp > np.maximum(devices.domain / layout.tp, 1.0)
    context = np.where(layout.cp > 1, send_s(ring, crosses.astype(np.float64), count, links), 0.0)
    exchange = _all_to_all_s(volume / layout.tp, work, layout, devices, links, stack == "tuned")
    experts = 2.0 * np.where((layout.ep > 1) & (work.routed > 0), exchange, 0.0)
    # The ring of keys and values goes round once more for their gradients.
    exposed = c.of_stack("tp.exposed", stack) * tensor + 1.5 * c["cp.exposed_ratio"] * context
    result: Floats = exposed + c.of_stack("ep.exposed", stack) * experts
    return result
