#!/usr/bin/python3
"""The same rounds by gloo, PyTorch's library for processors, in turn with ours: isend and irecv along the
same edges, which averages nothing, and the all-reduce that data-parallel training uses.

Links alone are held against isend and irecv too, for neither adds anything up. Ours includes publishing,
the checksums and, with whole daemons, absorbing.
"""
import figures
from contenders import SIZES, daemons, gloo, links, torch_python

PAIRS = [("links alone", "ring"), ("whole daemons", "ring"), ("whole daemons", "allreduce")]
BASELINES = {"ring": "gloo isend/irecv", "allreduce": "gloo all-reduce"}


def measure(options):
    torch_python()
    for nodes in (2, 4) if options.quick else (2, 4, 8):
        for size, name in list(SIZES.items())[:3 if options.quick else 4]:
            results = figures.alternate(options.runs, {
                "links alone": lambda: links(options, nodes, size),
                "ring": lambda: gloo(options, nodes, size, "ring"),
                "whole daemons": lambda: daemons(options, nodes, size),
                "allreduce": lambda: gloo(options, nodes, size, "allreduce")})
            taken = {key: [result["seconds"] * 1e3 for result in values] for key, values in results.items()}
            for ours, theirs in PAIRS:
                figures.tell("peer", f"{nodes} nodes, {name}, {ours}", "ms", taken[ours], BASELINES[theirs],
                             taken[theirs])


figures.main("peer", measure, __doc__)
