#!/usr/bin/python3
"""What a node costs as the fleet grows: simulated fleets on one-peer gossip, then real daemons that train.

Bytes and messages per node and round are of the protocol; seconds and memory are of the simulation and of
the daemons on this machine. The growth is the exponent p of a fit c * n^p over all n: 0 is flat.
"""
import json
import math
import os
import subprocess
import sys
import time

import figures

sys.path.insert(0, os.path.join(figures.ROOT, "tests/system"))
import fleet as fleets  # noqa: E402

ROUNDS = 100
LAYERS = "dense 128 relu, dense 10"


def memory_peak(pid):
    """Bytes, or 0 once the process has ended. Not ru_maxrss, which begins with the parent's."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        peak = [line for line in file if line.startswith("VmHWM")]
    return int(peak[0].split()[1]) * 1024 if peak else 0


def simulate(options, nodes, dimension):
    """One simulation: seconds, processor time, bytes and messages per node and round, and memory."""
    sgpctl = os.path.join(options.build, "ctl/sgpctl")
    file = subprocess.run([sgpctl, "topology", "generate", "one-peer-exponential", str(nodes)],
                          stdout=subprocess.PIPE, check=True).stdout
    start, memory, last = time.monotonic(), 0, ""
    process = subprocess.Popen([sgpctl, "simulate", "-", "--json", "--rounds", str(ROUNDS), "--dimension",
                                str(dimension)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(file)
    process.stdin.close()
    for last in process.stdout:
        memory = max(memory, memory_peak(process.pid))
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"the simulation of {nodes} nodes ended with {process.returncode}")
    summary, steps = json.loads(last)["summary"], nodes * ROUNDS
    return {"seconds": time.monotonic() - start, "us": (used.ru_utime + used.ru_stime) / steps * 1e6,
            "bytes": summary["bytes"] / steps, "messages": summary["messages"] / steps, "memory": memory}


def growth(costs):
    """The exponent p of the fit cost = c * n^p, by least squares of the logarithms."""
    points = [(math.log(n), math.log(cost)) for n, cost in costs.items()]
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points))
    return (sum((x - mean_x) * (y - mean_y) for x, y in points) /
            sum((x - mean_x) ** 2 for x, _ in points))


def tell_simulated(options, dimension, sizes):
    results = {n: [simulate(options, n, dimension) for _ in range(options.runs if n < 3000 else 1)]
               for n in sizes}
    for key, unit, name in (("us", "us", "processor time"), ("bytes", "bytes", "bytes"),
                            ("messages", "messages", "messages")):
        values = {n: [result[key] for result in runs] for n, runs in results.items()}
        for n in sizes:
            figures.tell("scale", f"{n} simulated, d = {dimension}: {name} of a node and round", unit,
                         values[n])
        medians = {n: sorted(runs)[len(runs) // 2] for n, runs in values.items()}
        figures.tell("scale", f"d = {dimension}: {name} of a node and round, growth with n", "exponent",
                     [growth(medians)])
    whole = f"{sizes[-1]} nodes by {ROUNDS} rounds, d = {dimension}: the whole simulation"
    figures.tell("scale", whole, "s", [result["seconds"] for result in results[sizes[-1]]])
    figures.tell("scale", whole, "MiB", [result["memory"] / (1 << 20) for result in results[sizes[-1]]])


def status_of(fleet):
    """All nodes' status, once all are training or done."""
    statuses = [node.status() for node in fleet.nodes]
    return statuses if all(status and status["round"] > 0 for status in statuses) else None


def train_daemons(options, nodes, seconds):
    """Daemons that train an MLP on Fashion-MNIST: a round's seconds, a node's bytes and memory."""
    fleet = fleets.Fleet(nodes, options={
        "train.epochs": None, "train.rounds": "1G", "train.batch": "32", "model.layers": LAYERS,
        "data.train": f"{figures.DATA}/train-images-idx3-ubyte.gz",
        "data.labels": f"{figures.DATA}/train-labels-idx1-ubyte.gz",
        "data.label": None, "data.classes": None, "data.holdout": None, "log.level": "warning"})
    try:
        fleet.start()
        first = fleet.wait("all nodes to train", lambda: status_of(fleet), 240)
        begin = time.monotonic()
        sent = [sum(peer["bytes_sent"] for peer in node.json("/v1/peers")) for node in fleet.nodes]
        time.sleep(seconds)
        last, end = status_of(fleet), time.monotonic()
        more = [sum(peer["bytes_sent"] for peer in node.json("/v1/peers")) for node in fleet.nodes]
        rounds = sum(b["round"] - a["round"] for a, b in zip(first, last)) / nodes
        return {"ms": (end - begin) / rounds * 1e3, "bytes": (sum(more) - sum(sent)) / nodes / rounds,
                "memory": sum(memory_peak(node.process.pid) for node in fleet.nodes) / nodes / (1 << 20)}
    finally:
        fleet.close()


def measure(options):
    fleets.SGPD = os.path.join(options.build, "daemon/sgpd")
    sizes = [16, 64, 256, 1024] + ([] if options.quick else [4096, 10000])
    tell_simulated(options, 8, sizes)
    tell_simulated(options, 1000, sizes[:4])
    for nodes in [2, 4, 8, 16] + ([32, 64] if options.full else []):
        seconds, runs = (3, options.runs) if nodes < 32 else (10, 1)
        results = [train_daemons(options, nodes, seconds) for _ in range(runs)]
        for key, unit, name in (("ms", "ms", "a round"), ("bytes", "bytes", "bytes sent of a node and round"),
                                ("memory", "MiB", "peak memory of a node")):
            figures.tell("scale", f"{nodes} daemons, MLP 784-128-10, batch 32: {name}", unit,
                         [result[key] for result in results])


figures.main("scale", measure, __doc__)
