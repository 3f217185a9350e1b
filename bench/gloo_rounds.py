#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rounds by gloo: gloo_rounds.py ring|allreduce NODES BYTES ROUNDS WARMUP [PLACES].

ring: isend and irecv of BYTES along the one-peer exponential graph; allreduce: the sum of all. PLACES is a JSON
list of where each process runs (see places.py). Prints one
JSON object: seconds of a round on the slowest process, and processor seconds of a round on the average one.
"""
import json
import os
import resource
import sys
import tempfile
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing

import figures
import places


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def node(rank, kind, nodes, size, rounds, warmup, where, directory):
    places.take(where[rank])
    os.sched_setaffinity(0, {figures.core_of(rank)})
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{directory}/meet", rank=rank, world_size=nodes)
    give, take = torch.zeros(size // 4), torch.zeros(size // 4)
    hops = [1 << h for h in range(nodes.bit_length()) if 1 << h < nodes]

    def ring(round_number):
        hop = hops[round_number % len(hops)]
        sent = distributed.isend(give, (rank + hop) % nodes)
        received = distributed.irecv(take, (rank - hop) % nodes)
        sent.wait()
        received.wait()

    def all_reduce(_):
        distributed.all_reduce(give)

    step = ring if kind == "ring" else all_reduce
    for number in range(warmup):
        step(number)
    start, used = time.monotonic(), cpu_seconds()
    for number in range(rounds):
        step(warmup + number)
    with open(os.path.join(directory, f"{rank}.json"), "w", encoding="utf-8") as file:
        json.dump([(time.monotonic() - start) / rounds, (cpu_seconds() - used) / rounds], file)
    distributed.barrier()


def main():
    kind, (nodes, size, rounds, warmup) = sys.argv[1], map(int, sys.argv[2:6])
    where = json.loads(sys.argv[6]) if len(sys.argv) > 6 else [{}] * nodes
    with tempfile.TemporaryDirectory() as directory:
        multiprocessing.start_processes(node, (kind, nodes, size, rounds, warmup, where, directory), nodes,
                                        start_method="fork")
        results = []
        for rank in range(nodes):
            with open(os.path.join(directory, f"{rank}.json"), encoding="utf-8") as file:
                results.append(json.load(file))
    print(json.dumps({"seconds": max(seconds for seconds, _ in results),
                      "cpu_seconds": sum(cpu for _, cpu in results) / nodes}))


if __name__ == "__main__":
    main()
