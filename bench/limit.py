#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The limits of this machine: memory, matrix products, and plain sockets in the pattern of a round.

No code of sgpd runs here.
The other benchmarks take their ratios from the same programs, run in turn with what they measure.
"""
import figures
from contenders import MODELS, SIZES, program, sockets


def column(results, key):
    return [result[key] for result in results]


def measure(options):
    machine = program(options, "machine")
    seconds = 0.3 if options.quick else 1
    memory = [figures.run(machine, "memory", OPENBLAS_NUM_THREADS="1") for _ in range(options.runs)]
    for key in ("memcpy", "triad"):
        figures.tell("limit", key, "GB/s", [value / 1e9 for value in column(memory, key)])
    sgemm = [figures.run(machine, "sgemm", 1) for _ in range(options.runs)]
    figures.tell("limit", "sgemm 2048, 1 thread", "GFLOP/s", [value / 1e9 for value in column(sgemm, "flops")])
    for name, (_, widths) in MODELS.items():
        for batch in (32, 128):
            rows = [figures.run(machine, "model", widths, batch, 1, seconds) for _ in range(options.runs)]
            figures.tell("limit", f"products of {name}, batch {batch}, 1 thread", "rows/s",
                         column(rows, "rows"))
    for nodes in (2, 4) if options.quick else (2, 4, 8):
        for size, name in list(SIZES.items())[:3 if options.quick else 4]:
            results = [sockets(options, nodes, size) for _ in range(options.runs)]
            figures.tell("limit", f"plain sockets, {nodes} nodes, {name}", "ms",
                         [value * 1e3 for value in column(results, "seconds")])


figures.main("limit", measure, __doc__)
