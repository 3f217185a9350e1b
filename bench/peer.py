#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The same rounds by gloo, PyTorch's library for processors, in turn with sgpd.

The first baseline is isend and irecv along the same edges, which averages nothing.
The second is the all-reduce of data-parallel training, after which every node has the mean of all.
One round of sgpd mixes pairs, and log2 n of them give that mean.

Links alone are also compared with isend and irecv, because neither adds anything up.
The time of sgpd includes publishing, the checksums and, with whole daemons, absorbing.

Between hosts (as root; see bench/links.py) the bytes that a node receives are also compared with its link.
A link can carry 1448 bytes of TCP's payload in every 1514 bytes that the token bucket counts.
"""
import figures
import links as network
from contenders import RATES, SIZES, daemons, gloo, links, torch_python

PAIRS = [("links alone", "ring"), ("whole daemons", "ring"), ("whole daemons", "allreduce")]
BASELINES = {"ring": "gloo isend/irecv", "allreduce": "gloo all-reduce"}


def compare(options, nodes, size, rate=None):
    """The results of all contenders by name; milliseconds."""
    contenders = {
        "links alone": lambda: links(options, nodes, size, rate),
        "ring": lambda: gloo(options, nodes, size, "ring", rate),
        "whole daemons": lambda: daemons(options, nodes, size, rate),
        "allreduce": lambda: gloo(options, nodes, size, "allreduce", rate)}
    results = figures.alternate(options.runs, contenders)
    return {key: [result["seconds"] * 1e3 for result in values] for key, values in results.items()}


def tell_pairs(case, taken):
    for ours, theirs in PAIRS:
        figures.tell("peer", f"{case}, {ours}", "ms", taken[ours], BASELINES[theirs], taken[theirs])


def between_hosts(options):
    for rate, (link, sizes) in RATES.items():
        with network.rate(rate):
            for size in sizes:
                taken = compare(options, 4, size, rate)
                case = f"4 nodes, {SIZES[size]}, links of {link}"
                tell_pairs(case, taken)
                for name in ("links alone", "whole daemons"):
                    figures.tell("peer", f"{case}, {name}", "Mbit/s", [size * 8e-3 / ms for ms in taken[name]],
                                 "payload of the link", [rate * network.PAYLOAD / 1e6] * options.runs)


def over_loopback(options):
    for nodes in (2, 4) if options.quick else (2, 4, 8):
        for size, name in list(SIZES.items())[:3 if options.quick else 4]:
            tell_pairs(f"{nodes} nodes, {name}", compare(options, nodes, size))


def measure(options):
    torch_python()
    over_loopback(options)
    figures.attempt("peer", between_hosts, options)


figures.main("peer", measure, __doc__)
