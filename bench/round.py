#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One gossip round: the daemon's links alone, and whole daemons that publish, send, receive and absorb.
The baseline is plain sockets that exchange the same bytes in the same pattern.

Copies are those of a share's bytes: by the daemon itself, and by system calls between process and kernel.
The kernel counts the second kind.
Passes are bytes that the daemons fetch from memory for each byte of a share, both sides together.
Cachegrind counts passes and instructions, so they do not depend on what else the machine does.
The work on an arriving share is also timed in one thread.
"""
import figures
from contenders import SIZES, daemons, links, program, sockets
from counted import instructions, passes


def tell_pair(case, size, results, key):
    milliseconds = [result["seconds"] * 1e3 for result in results[key]]
    base = [result["seconds"] * 1e3 for result in results["sockets"]]
    bandwidth = size / (sorted(milliseconds)[len(milliseconds) // 2] / 1e3) / 1e9
    cpu = sorted(result["cpu_seconds"] for result in results[key])[len(milliseconds) // 2]
    figures.tell("round", case, "ms", milliseconds, "plain sockets", base, gigabytes_per_second=bandwidth,
                 cpu_ns_per_byte=cpu / size * 1e9)


def tell_costs(case, size, results):
    """Where a round of the daemon goes: the steps of the compute thread, and copies of the bytes."""
    for key, name in (("publish_seconds", "publish"), ("absorb_seconds", "absorb")):
        figures.tell("round", f"{case}: {name}", "ms", [result[key] * 1e3 for result in results])
    figures.tell("round", f"{case}: copies of a byte", "copies", [
        (result["bytes_copied"] + result["bytes_read"] + result["bytes_written"]) / size for result in results])
    figures.tell("round", f"{case}: folded while they came", "of all shares", [result["folded"] for result in results])
    figures.tell("round", f"{case}: peak memory", "MiB", [
        result["memory_bytes"] / (1 << 20) for result in results])


def tell_counted(options):
    nodes, size = 2, 16 << 20
    figures.tell("round", f"{nodes} nodes, {SIZES[size]}: passes of a byte", "passes", [passes(options, nodes, size)])
    for nodes, size in ((2, 4096), (4, 4096), (2, 1 << 20)):
        figures.tell("round", f"{nodes} nodes, {SIZES[size]}: instructions of a node and round", "instructions",
                     [instructions(options, nodes, size)])


def tell_receiving(options):
    """What is done with a share that arrives, in one thread that has nothing else to do (bench/receive.c)."""
    contenders = {how: lambda how=how: figures.run(program(options, "receive"), how, 100, 3)
                  for how in ("alone", "absorbed", "folded")}
    taken = {how: [result["seconds"] * 1e3 for result in results]
             for how, results in figures.alternate(options.runs, contenders).items()}
    for how in ("absorbed", "folded"):
        figures.tell("round", f"one thread, 100 MiB, received and {how}", "ms", taken[how], "received alone", taken["alone"])


def measure(options):
    for nodes in (2, 4) if options.quick else (2, 4, 8):
        for size, name in list(SIZES.items())[:3 if options.quick else 4]:
            contenders = {"sockets": lambda: sockets(options, nodes, size),
                          "links": lambda: links(options, nodes, size),
                          "daemons": lambda: daemons(options, nodes, size)}
            results = figures.alternate(options.runs, contenders)
            case = f"{nodes} nodes, {name}"
            tell_pair(f"{case}, links alone", size, results, "links")
            tell_pair(f"{case}, whole daemons", size, results, "daemons")
            if size > 4096:
                tell_costs(case, size, results["daemons"])
    figures.attempt("round", tell_receiving, options)
    figures.attempt("round", tell_counted, options)


figures.main("round", measure, __doc__)
