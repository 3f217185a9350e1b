#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program that takes turns, and no step in them: attach_turns.py SOCKET FLOATS TURNS. Prints one JSON object: the
microseconds of a turn, as the median."""
import json
import statistics
import sys
import time

import numpy
import sgp

path, floats, turns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with sgp.attach({"z": numpy.ones(floats, numpy.float32)}, name=path, timeout=60) as node:
    times = [time.perf_counter()]
    for _ in range(turns):
        node.mix()
        times.append(time.perf_counter())
print(json.dumps({"us": 1e6 * statistics.median(after - before for before, after in zip(times, times[1:]))}))
