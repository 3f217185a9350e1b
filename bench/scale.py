#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a node as the fleet grows: simulated fleets on one-peer gossip, then real daemons that train.

Bytes and messages per node and round are of the protocol.
Seconds and memory are of the simulation, and of the daemons, which share the cores of this machine.
So a round of the daemons takes longer as n grows, while its processor time should not.
In each fleet the weights must sum to n at the end, and no node may have been taken for absent.
The cost of a simulated round is the difference of two simulations with different numbers of rounds.
Cachegrind counts its instructions, so they do not depend on what else the machine does.
The cost that both have in common is listed separately.
The growth is the exponent p of a fit c * n^p, over all n or, for simulated time, from 16 on: 0 is flat.
"""
import json
import math
import os
import statistics
import subprocess
import tempfile
import time

import counted
import figures
import fleet as fleets

ROUNDS = 100     # of a simulation, at least,
STEPS = 200_000  # and so many of all its nodes together, so that its time can be told from nothing
SMALL = 16       # in smaller fleets each round's line of output weighs on few nodes
LAYERS, MODEL = "dense 128 relu, dense 10", "MLP 784-128-10, batch 32"
SECONDS = 5  # that daemons train while they are measured


def memory(pid, key="VmHWM"):
    """Bytes, or 0 once the process has ended. Not ru_maxrss, which begins with the parent's."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        found = [line for line in file if line.startswith(key)]
    return int(found[0].split()[1]) * 1024 if found else 0


def simulation(options, nodes, dimension, rounds):
    """The command, and its topology file."""
    sgpctl = os.path.join(options.build, "ctl/sgpctl")
    file = subprocess.run([sgpctl, "topology", "generate", "one-peer-exponential", str(nodes)],
                          stdout=subprocess.PIPE, check=True).stdout
    return [sgpctl, "simulate", "-", "--json", "--rounds", str(rounds), "--dimension", str(dimension)], file


def simulate_once(options, nodes, dimension, rounds):
    """One simulation: seconds, processor time, bytes, messages and peak memory, start and end included."""
    command, file = simulation(options, nodes, dimension, rounds)
    start, peak, last = time.monotonic(), 0, ""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(file)
    process.stdin.close()
    for last in process.stdout:
        peak = max(peak, memory(process.pid))
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"the simulation of {nodes} nodes ended with {process.returncode}")
    summary = json.loads(last)["summary"]
    return {"us": (used.ru_utime + used.ru_stime) * 1e6, "bytes": summary["bytes"],
            "messages": summary["messages"], "seconds": time.monotonic() - start, "memory": peak}


def simulate(options, nodes, dimension):
    """What a round costs a node, from two simulations, of which the longer one has so many rounds more. What
    both have in common is reading the file, the greetings and the end, once for each link."""
    few, many = ROUNDS // 5, max(ROUNDS, STEPS // nodes)
    short, whole = (simulate_once(options, nodes, dimension, rounds) for rounds in (few, many))
    cost = {key: (whole[key] - short[key]) / nodes / (many - few) for key in ("us", "bytes", "messages")}
    return {**cost, "once": (short["us"] - cost["us"] * nodes * few) / nodes,
            "seconds": whole["seconds"], "memory": whole["memory"]}


def growth(costs):
    """The exponent p of the fit cost = c * n^p, by least squares of the logarithms."""
    points = [(math.log(n), math.log(cost)) for n, cost in costs.items()]
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points))
    return (sum((x - mean_x) * (y - mean_y) for x, y in points) /
            sum((x - mean_x) ** 2 for x, _ in points))


def tell_simulated(options, dimension, sizes):
    results = {n: [simulate(options, n, dimension) for _ in range(options.runs)] for n in sizes}
    for key, unit, name in (("us", "us", "processor time of a node and round"),
                            ("bytes", "bytes", "bytes of a node and round"),
                            ("messages", "messages", "messages of a node and round"),
                            ("once", "us", "start and end, once for each node")):
        values = {n: [result[key] for result in runs] for n, runs in results.items()}
        for n in sizes:
            figures.tell("scale", f"{n} simulated, d = {dimension}: {name}", unit, values[n])
        if key == "once":
            continue
        medians = {n: statistics.median(values[n]) for n in sizes if key != "us" or n >= SMALL}
        figures.tell("scale", f"d = {dimension}: {name}, growth with n", "exponent", [growth(medians)])
        figures.tell("scale", f"d = {dimension}: {name}, {max(medians)} nodes over {min(medians)}", "ratio",
                     [medians[max(medians)] / medians[min(medians)]])
    most = sizes[-1]
    whole = f"{most} nodes by {max(ROUNDS, STEPS // most)} rounds, d = {dimension}: the whole simulation"
    figures.tell("scale", whole, "s", [result["seconds"] for result in results[sizes[-1]]])
    figures.tell("scale", whole, "MiB", [result["memory"] / (1 << 20) for result in results[sizes[-1]]])


def instructions(options, nodes, dimension, rounds):
    """Of a whole simulation."""
    command, file = simulation(options, nodes, dimension, rounds)
    with tempfile.NamedTemporaryFile() as counts:
        subprocess.run(counted.cachegrind(counts.name, "--cache-sim=no") + command, input=file, stdout=subprocess.DEVNULL, check=True)
        return counted.read(counts.name, ("Ir",))


def tell_instructions(options):
    counted.required()
    nodes, few = 16, ROUNDS // 5
    for dimension in (8, 1000):
        more = instructions(options, nodes, dimension, ROUNDS) - instructions(options, nodes, dimension, few)
        figures.tell("scale", f"{nodes} simulated, d = {dimension}: instructions of a node and round", "instructions",
                     [more / (ROUNDS - few) / nodes])


def status_of(fleet):
    """All nodes' status, once all are training or done."""
    statuses = [node.status() for node in fleet.nodes]
    return statuses if all(status and status["round"] > 0 for status in statuses) else None


def moment(fleet):
    """Sums over the fleet: rounds, bytes sent, processor time; and the clock."""
    rounds = sum(status["round"] for status in fleet.wait("all nodes to answer", lambda: status_of(fleet)))
    sent = sum(peer["bytes_sent"] for node in fleet.nodes for peer in node.json("/v1/peers"))
    return {"rounds": rounds, "bytes": sent, "clock": time.monotonic(),
            "cpu": sum(figures.spent(node.process.pid)[0] for node in fleet.nodes)}


def expect_sound(fleet):
    """Pause all: nothing may have been lost, and nobody taken for absent because the machine is busy."""
    for node in fleet.nodes:
        node.json("/v1/pause", "POST")
    weight = sum(status["weight"] for status in fleet.quiet())
    absent = [node.name for node in fleet.nodes if "event=absent" in node.log()]
    if abs(weight - fleet.n) > 1e-9 or absent:
        raise RuntimeError(f"{fleet.n} daemons: weights of {weight}, thought absent by {absent}")


def train_daemons(nodes, seconds):
    """Daemons that train an MLP on Fashion-MNIST: what a node and round costs, memory, and the start."""
    fleet = fleets.Fleet(nodes, options={
        "train.epochs": None, "train.rounds": "1G", "train.batch": "32", "model.layers": LAYERS,
        "data.train": f"{figures.DATA}/train-images-idx3-ubyte.gz",
        "data.labels": f"{figures.DATA}/train-labels-idx1-ubyte.gz",
        "data.label": None, "data.classes": None, "data.holdout": None})
    try:
        begin = time.monotonic()
        fleet.start()
        fleet.wait("all nodes to train", lambda: status_of(fleet), 240)
        started, first = time.monotonic() - begin, moment(fleet)
        time.sleep(seconds)
        resident = sum(memory(node.process.pid, "VmRSS") for node in fleet.nodes)
        last = moment(fleet)
        expect_sound(fleet)
        more = {key: last[key] - first[key] for key in first}
        return {"start": started, "rounds": more["rounds"] / nodes,
                "round": more["clock"] / more["rounds"] * nodes * 1e3, "cpu": more["cpu"] / more["rounds"] * 1e3,
                "bytes": more["bytes"] / more["rounds"], "resident": resident / nodes / (1 << 20),
                "peak": sum(memory(node.process.pid) for node in fleet.nodes) / nodes / (1 << 20)}
    finally:
        fleet.close()


def tell_daemons(options, sizes):
    measured = (("start", "s", "from the first process until all train"),
                ("rounds", "1", "rounds while they were measured"), ("round", "ms", "a round"),
                ("cpu", "ms", "processor time of a node and round"),
                ("bytes", "bytes", "bytes sent of a node and round"),
                ("resident", "MiB", "memory of a node that trains"),
                ("peak", "MiB", "peak memory of a node, while it reads its data"))
    results = {n: [train_daemons(n, SECONDS) for _ in range(options.runs if n <= 16 else 1)] for n in sizes}
    for n in sizes:
        for key, unit, name in measured:
            figures.tell("scale", f"{n} daemons, {MODEL}: {name}", unit, [result[key] for result in results[n]])
    for key, _, name in measured[3:6]:
        medians = {n: statistics.median(result[key] for result in runs) for n, runs in results.items()}
        figures.tell("scale", f"daemons, {MODEL}: {name}, growth with n", "exponent", [growth(medians)])


def measure(options):
    fleets.SGPD = os.path.join(options.build, "daemon/sgpd")
    sizes = [4, 16, 64, 256, 1024] + ([] if options.quick else [4096, 10000])
    tell_simulated(options, 8, sizes)
    tell_simulated(options, 1000, sizes[:5])
    figures.attempt("scale", tell_instructions, options)
    tell_daemons(options, [2, 4, 8, 16, 32, 64])


figures.main("scale", measure, __doc__)
